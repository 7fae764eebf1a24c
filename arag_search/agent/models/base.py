"""ChatModel: the interface between the agent and a language model.

A model gets a request (messages, tools) and returns one reply. It keeps no state between calls, so
that one object may serve several threads and questions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from arag_search.agent.models.usage import Usage
from arag_search.tokens import encodable

Role = Literal["system", "user", "assistant", "tool"]
Verdict = Literal["answer", "calls", "thoughts", "broken off", "unread call", "nothing"]
"""The kinds of reply. An "unread call" is the markup of a call that the server did not read."""
NO_CALL = "none"
"""The choice of tools of a request whose reply must be the answer."""
REFUSED = "refusal"
"""The ending of a reply whose text says that the model declines."""
UNNAMED = "none"
"""The ending of a reply that stops within a sentence, and whose endpoint names no ending."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it. ``arguments`` is its text, which may be invalid JSON.
    ``from_text`` says that the reply's text was the call, which the server had not read."""

    id: str
    name: str
    arguments: str
    from_text: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``tool_calls`` are the calls of an assistant message; ``tool_call_id`` is the
    call that a tool message answers. ``beside`` is the ``beside`` of the reply."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    beside: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: all messages so far, and the tools it may call (OpenAI schemas).

    Without tools, and with ``tool_choice`` NO_CALL, the reply must be the answer: some endpoints
    refuse a history with calls if the tools are missing. ``question_id`` names the question in
    errors. Any other ``tool_choice`` is a tool that the model must call; if an endpoint rejects it,
    the request is sent without it. With ``parallel_calls`` one reply may hold several calls.
    ``logprobs`` asks for the log-probabilities of the first token, which an endpoint may not have.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    question_id: str = ""
    tool_choice: str | None = None
    parallel_calls: bool = False
    logprobs: bool = False

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(str(tool.get("function", tool).get("name", "")) for tool in self.tools)

    @property
    def may_call(self) -> bool:
        """Whether the reply may hold calls."""
        return bool(self.tools) and self.tool_choice != NO_CALL


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply: text, calls, or both.

    - ``reasoning``: the thoughts of the model, apart from the text.
    - ``usage``: None if the endpoint reports none.
    - ``cut``: the ending of a reply that did not end well: "length" (the maximum number of tokens),
      "content_filter", REFUSED, UNNAMED, or the endpoint's own word. None: the reply is complete,
      or seems so because the endpoint does not say.
    - ``is_unread``: whether the text, or the ending, belongs to a call that the server did not
      read. ``problem`` is what the server says of it.
    - ``logprobs``: the likeliest first tokens with their log-probabilities, if asked for and given.
    - ``beside``: other parts of the reply of the endpoint, such as thoughts and signatures. It
      is JSON with the endpoint's name, and goes back to that endpoint with the next request.
    - ``other_model``: the name of the model that answered, if another was asked for.
    - ``forms``: the rules that were needed to read the reply.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    usage: Usage | None = None
    cut: str | None = None
    is_unread: bool = False
    logprobs: Mapping[str, float] = field(default_factory=dict[str, float])
    problem: str = ""
    beside: str = ""
    other_model: str = ""
    forms: tuple[str, ...] = field(default=(), compare=False)

    @property
    def verdict(self) -> Verdict:
        """What the reply is. Calls count although the maximum length was reached behind them."""
        if self.tool_calls and self.cut in (None, "length"):
            return "calls"
        if self.cut is not None:
            return "broken off"
        if self.is_unread:
            return "unread call"
        if self.text.strip():
            return "answer"
        return "thoughts" if self.reasoning.strip() else "nothing"


class ChatModel(Protocol):
    """A language model, or a substitute for one."""

    @property
    def name(self) -> str:
        """The name of the model in records and prices."""
        ...

    @property
    def fingerprint(self) -> str:
        """A value that is equal for models with the same configuration; it never holds a secret."""
        ...

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next message.

        Raises ContextLengthError if the request is too long for the model, and another ModelError
        if there is no reply after all retries. Safe to call from several threads.
        """
        ...

    def close(self) -> None:
        """Free connections. May be called twice."""
        ...


def write_message(message: Message) -> dict[str, Any]:
    """Return a message as a JSON object, without what stands beside it."""
    written: dict[str, Any] = {"role": message.role, "content": encodable(message.content)}
    if message.tool_calls:
        written["content"] = written["content"] or None
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": encodable(call.name),
                    "arguments": encodable(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written

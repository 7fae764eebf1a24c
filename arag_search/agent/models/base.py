"""ChatModel: the interface between the agent and a language model.

A model gets a request (messages, tools) and returns one reply. It keeps no state between calls, so
that one object may serve several threads and questions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Cut = Literal["length", "content_filter"]
"""Why a reply is incomplete: it reached the maximum number of tokens, or the endpoint's content
filter withheld the rest."""

MAX_USAGE_TOKENS = 1_000_000_000
"""An upper bound on the tokens of any call: an endpoint that reports more counts something else."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it. ``arguments`` is its text, which may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``tool_calls`` are the calls of an assistant message; ``tool_call_id`` is the
    call that a tool message answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls. The source is ``counted`` if an endpoint reported none and we
    counted them (o200k tokens)."""

    prompt_tokens: int
    completion_tokens: int
    source: Literal["endpoint", "counted"]

    @property
    def is_plausible(self) -> bool:
        """Whether one call can take this many tokens."""
        return is_token_count(self.prompt_tokens) and is_token_count(self.completion_tokens)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: all messages so far, and the tools it may call (OpenAI schemas).

    Without tools, the reply must be the answer. ``question_id`` names the question in errors.
    ``tool_choice`` is a tool that the model must call; if an endpoint rejects it, the request is
    sent without it. With ``parallel_calls`` one reply may hold several calls.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    question_id: str = ""
    tool_choice: str | None = None
    parallel_calls: bool = False


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply: text, calls, or both. ``reasoning`` is what an endpoint returns apart from
    the text.

    ``usage`` is None if the endpoint reports none. ``cut`` says why the reply is
    incomplete; it is None if the reply is complete, or if the endpoint does not say.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    usage: Usage | None = None
    cut: Cut | None = None


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


def is_token_count(number: object) -> bool:
    """Return whether one call can take this number of tokens."""
    return type(number) is int and 0 <= number <= MAX_USAGE_TOKENS

"""ChatModel: the seam between the agent and whatever writes its next move.

A model is given a request (messages, tools) and returns one reply. It keeps nothing between calls,
so that one object may serve several threads and questions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Cut = Literal["length", "content_filter"]
"""Why a reply is not all that the model had to say: it reached the most tokens that a reply may
have, or a filter of the endpoint withheld the rest."""

MAX_USAGE_TOKENS = 1_000_000_000
"""No call takes more: what reports more counts something else."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it. ``arguments`` is its text, which may be broken JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``tool_calls`` are those of an assistant, ``tool_call_id`` is what a message of
    a tool answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls. ``counted`` where an endpoint reported none and the numbers are
    ours (o200k tokens)."""

    prompt_tokens: int
    completion_tokens: int
    source: Literal["endpoint", "counted"]

    @property
    def is_plausible(self) -> bool:
        """Whether one call can have taken so many."""
        return is_token_count(self.prompt_tokens) and is_token_count(self.completion_tokens)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: all messages so far, and the tools it may call (OpenAI schemas).

    Without tools the reply is to be the answer. ``question_id`` names the question in errors.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply: text, calls, or both. ``reasoning`` is what an endpoint gives apart from the text.

    ``usage`` is None where the endpoint reports none. ``cut`` says why the reply ends before its
    end, and is None where it does not, or where the endpoint does not tell.
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
        """What to call it in records and prices."""
        ...

    @property
    def fingerprint(self) -> str:
        """The same for two models that are configured alike; never holds a secret."""
        ...

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next message.

        Raises ContextLengthError where the request is too long for the model, another ModelError
        where there is no reply, retries included. Safe to call from several threads.
        """
        ...

    def close(self) -> None:
        """Free connections. May be called again."""
        ...


def is_token_count(number: object) -> bool:
    """Return whether a number of tokens is one that a call can have taken."""
    return type(number) is int and 0 <= number <= MAX_USAGE_TOKENS

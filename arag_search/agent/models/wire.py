"""Writing messages in the format of chat completions, and reading replies.

Endpoints differ in what they add and leave out, so only the necessary parts of a reply are read and
the others are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from arag_search.agent.models.base import Cut, Message, ModelReply, ToolCall, Usage
from arag_search.tokens import encodable

_MAX_DIGITS = 4_000  # Python converts no more than 4,300
_CUTS: dict[str, Cut] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
"""The meaning of finish reasons. "length" and "content_filter" are OpenAI's; the others come from
servers that pass on the names of another protocol."""


def write_messages(messages: Sequence[Message]) -> Any:
    """Return the messages as JSON objects."""
    return [_write_message(message) for message in messages]


def _write_message(message: Message) -> dict[str, Any]:
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


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Part(BaseModel):
    text: str | None = None


class _Message(BaseModel):
    content: str | list[_Part | str] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


def read_reply(body: str, position: int) -> ModelReply:
    """Return the reply in the body of a response.

    Arguments stay as the model wrote them. A call without an id gets one, made from ``position``
    (the number of messages so far) and its place in the reply. Raises ValueError, saying what is
    wrong, if the body holds no reply.
    """
    try:
        content: object = json.loads(body, parse_int=_number)
    except (ValueError, RecursionError):
        raise ValueError("The endpoint's reply is not JSON") from None
    if not isinstance(content, dict) or not cast(dict[str, object], content).get("choices"):
        raise ValueError("The endpoint's reply holds no choices")
    try:
        completion = _Completion.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"The endpoint's reply is not a chat completion (at {path})") from None
    message = completion.choices[0].message
    calls = [
        ToolCall(
            id=call.id or f"call_{position}_{place}",
            name=call.function.name or "",
            arguments=_arguments_text(call.function.arguments),
        )
        for place, call in enumerate(message.tool_calls or (), start=1)
    ]
    return ModelReply(
        text=_text(message.content) or message.refusal or "",
        tool_calls=tuple(calls),
        reasoning=_reasoning(message),
        usage=_usage(completion.usage),
        cut=_cut(completion.choices[0].finish_reason),
    )


def _number(digits: str) -> float:
    """Read an integer; one with too many digits becomes a float."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _cut(finish_reason: object) -> Cut | None:
    return _CUTS.get(finish_reason.lower()) if isinstance(finish_reason, str) else None


def _arguments_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments or {}, ensure_ascii=False)


def _text(content: str | list[_Part | str] | None) -> str:
    if isinstance(content, list):
        texts = [part if isinstance(part, str) else part.text for part in content]
        return "".join(text for text in texts if text)
    return content or ""


def _reasoning(message: _Message) -> str:
    for text in (message.reasoning_content, message.reasoning):
        if isinstance(text, str) and text:
            return text
    return ""


def _usage(reported: object) -> Usage | None:
    """Return the usage; None if the endpoint reports none, only part of it, or an implausible
    one."""
    if not isinstance(reported, dict):
        return None
    counts = cast(dict[str, Any], reported)
    usage = Usage(counts.get("prompt_tokens", -1), counts.get("completion_tokens", -1), "endpoint")
    return usage if usage.is_plausible else None

"""Messages as chat completions write them, and replies as they read.

Endpoints differ in what they add and leave out, so that only what is needed is read, and anything
else in a reply is let pass.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from arag_search.agent.models.base import Message, ModelReply, ToolCall, Usage
from arag_search.tokens import encodable


def write_messages(messages: Sequence[Message]) -> Any:
    """The messages as JSON objects."""
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
    text: str = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


def read_reply(body: str, position: int) -> ModelReply:
    """The reply in the body of a response.

    Arguments stay as the model wrote them. A call without an id is given one, made of ``position``
    (messages so far) and its place. Raises ValueError, with what is wrong, where there is none.
    """
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("The endpoint's reply is no JSON") from None
    if not isinstance(content, dict) or not cast(dict[str, object], content).get("choices"):
        raise ValueError("The endpoint's reply holds no choices")
    try:
        completion = _Completion.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"The endpoint's reply is no chat completion (at {path})") from None
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
    )


def _arguments_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments or {}, ensure_ascii=False)


def _text(content: str | list[_Part] | None) -> str:
    if isinstance(content, list):
        return "".join(part.text for part in content)
    return content or ""


def _reasoning(message: _Message) -> str:
    for given in (message.reasoning_content, message.reasoning):
        if isinstance(given, str) and given:
            return given
    return ""


def _usage(reported: object) -> Usage | None:
    """None where the endpoint reports none, or only a part."""
    if not isinstance(reported, dict):
        return None
    counts = cast(dict[str, object], reported)
    prompt, completion = counts.get("prompt_tokens"), counts.get("completion_tokens")
    if type(prompt) is not int or type(completion) is not int:
        return None
    return Usage(prompt, completion, "endpoint")

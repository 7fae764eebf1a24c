"""Writing messages in the format of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arag_search.agent.models.base import Message
from arag_search.tokens import encodable


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

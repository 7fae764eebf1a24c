"""Bytes of clients: a JSON-RPC message, or the error that answers them.

The SDK drops a line that it cannot read. It answers a body that it cannot read without an id, so
that the sender would wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from arag_search.errors import AragError, ArgumentError

BUSY, UNAVAILABLE = -32010, -32011
"""The codes of JSON-RPC for failures that pass; any other is an internal error."""
RETRY_AFTER_S = 5
MAX_MESSAGE_BYTES = 1 << 20
END_BYTES = 4096
"""How much of each end of a message is searched for its id."""
_OTHER = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,500}")\s*'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _OTHER + rb"\s*,\s*)*" + _ID + rb"[,}]")
_ID_LAST = re.compile(_ID + rb"(?:,\s*" + _OTHER + rb"\s*)*\}\s*\Z")
"""Only the last member of the message itself is followed by a single brace."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape of JSON; half of a pair, which a client has cut or made of an emoji, is a group."""
_NOT_A_MESSAGE = ArgumentError(
    "The message is not valid JSON-RPC 2.0.",
    allowed="a JSON object in UTF-8 with fewer than 200 levels, as the protocol requires; "
    "over stdio one per line",
)


@dataclass(frozen=True, slots=True)
class BadMessage:
    """The fault of bytes that are no message. ``id`` is None if none can be read."""

    id: RequestId | None
    code: int
    what: AragError

    @property
    def answer(self) -> str:
        """The JSON of the protocol's error for the sender."""
        error = ErrorData(code=self.code, message=str(self.what))
        message = JSONRPCError(jsonrpc="2.0", id=self.id, error=error)
        return message.model_dump_json(by_alias=True, exclude_unset=True)


def read_message(data: bytes) -> JSONRPCMessage | BadMessage:
    """Read one message. A byte order mark before it is passed over, and half of a pair of escapes
    is U+FFFD. An id that is neither a string nor a whole number is an error. Otherwise the SDK
    would treat the request as a notification, and its sender would wait for an answer."""
    try:
        data = data.removeprefix(b"\xef\xbb\xbf")
        loaded: object = from_json(
            _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], data)
        )
    except ValueError:
        return BadMessage(id_at_ends(data), PARSE_ERROR, _NOT_A_MESSAGE)
    fields = cast(dict[str, object], loaded) if isinstance(loaded, dict) else {}
    id_ = fields.get("id")
    try:
        message = jsonrpc_message_adapter.validate_python(loaded, by_name=False)
    except ValidationError:
        message = None
    if message is not None and not (isinstance(message, JSONRPCNotification) and "id" in fields):
        return message
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        id_ = None
    return BadMessage(id_, INVALID_REQUEST, _NOT_A_MESSAGE)


def too_long(data: bytes, max_bytes: int) -> BadMessage:
    """Return the answer to a message of more bytes, of which ``data`` has at least the ends."""
    what = ArgumentError(
        f"The message is longer than {max_bytes:,} bytes.", do="Ask for less at a time."
    )
    return BadMessage(id_at_ends(data), INVALID_REQUEST, what)


def id_at_ends(data: bytes) -> RequestId | None:
    """Return the id of a message that is not parsed: clients write it first or last."""
    match = _ID_FIRST.match(data[:END_BYTES]) or _ID_LAST.search(data[-END_BYTES:])
    try:
        return None if match is None else cast(RequestId, from_json(match[1]))
    except ValueError:  # an escape or a byte that no text has
        return None

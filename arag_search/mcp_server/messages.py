"""Messages of clients: a JSON-RPC message, or an error in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from mcp import types
from pydantic import ValidationError

from arag_search.corpus import is_unicode
from arag_search.errors import ArgumentError

_NOT_A_MESSAGE = ArgumentError(
    "The message is not valid JSON-RPC 2.0.",
    allowed="a JSON object in UTF-8 with fewer than 200 levels, as the protocol requires; "
    "over stdio one per line",
)
_ID_IN_FLIGHT = ArgumentError(
    "Another request of this session has the same id, and is not answered yet.",
    allowed="an id that no other request of the session has",
    do="Number the requests of a session.",
)


@dataclass(frozen=True, slots=True)
class BadMessage:
    """The answer to an invalid message; ``id`` is None if the sender named none."""

    id: types.RequestId | None
    error: types.ErrorData

    def answer(self, id_: types.RequestId) -> types.JSONRPCError:
        """Return the protocol's error for the request of this id."""
        return types.JSONRPCError(jsonrpc="2.0", id=id_, error=self.error)


def read_message(data: bytes) -> types.JSONRPCMessage | BadMessage:
    """Read one message. An id that is neither a string nor a whole number is an error: otherwise
    the SDK would treat the request as a notification, and its sender would wait for an answer."""
    try:
        message = types.JSONRPCMessage.model_validate_json(data)
    except ValidationError:
        return _bad_message(data)
    root = message.root
    is_request = isinstance(root, types.JSONRPCNotification) and "id" in (root.model_extra or {})
    return _bad_message(data) if is_request else message


def id_in_flight(id_: types.RequestId) -> BadMessage:
    """Return the answer to a request whose id is that of an unanswered request."""
    return BadMessage(id_, types.ErrorData(code=types.INVALID_REQUEST, message=str(_ID_IN_FLIGHT)))


def _bad_message(data: bytes) -> BadMessage:
    try:
        loaded: object = json.loads(data)
    except (ValueError, RecursionError):
        code, id_ = types.PARSE_ERROR, None
    else:
        code, id_ = types.INVALID_REQUEST, _id_in(loaded)
    return BadMessage(id_, types.ErrorData(code=code, message=str(_NOT_A_MESSAGE)))


def _id_in(loaded: object) -> types.RequestId | None:
    """Return the id of an otherwise invalid request, or None if it has none."""
    id_ = cast(dict[str, object], loaded).get("id") if isinstance(loaded, dict) else None
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        return None
    return id_ if isinstance(id_, int) or is_unicode(id_) else None

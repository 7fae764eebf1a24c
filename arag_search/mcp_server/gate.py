"""The checks of an HTTP request before the protocol: Origin, token and message.

The SDK's own check of Origin compares beginnings, so that ``localhost:evil.com`` would pass. It
knows no tokens by hash, and answers a body that it cannot read without its id.
"""

from __future__ import annotations

import re

import anyio
from mcp.server.streamable_http import check_accept_headers
from mcp.types import INVALID_REQUEST
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arag_search.errors import AccessError, ArgumentError, UnavailableError
from arag_search.mcp_server.access import AccessFile, note_grant
from arag_search.mcp_server.callers import bearer, is_same, wrong_origin
from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.messages import (
    END_BYTES,
    RETRY_AFTER_S,
    UNAVAILABLE,
    BadMessage,
    id_at_ends,
    read_message,
    too_long,
)

FAILURE = "arag_search.failure"
"""The key in the scope of a request for the status of its failure."""
_JSON = "application/json"
_EVENTS = "text/event-stream"
_OF_EVENTS = re.compile(r"(?i)text/(?:\*|event-stream)")
_LET_IN = "To let the page in: start the server with --allow-host NAME"
_DRAIN_BYTES = 1 << 20
_ENDED = BadMessage(
    None,
    INVALID_REQUEST,
    ArgumentError("The session ended before the answer.", do="Begin another: send initialize."),
)
_DRAIN_S = 2.0
"""How much is read of a body that is refused or too long, and for how long."""


class Gate:
    """An ASGI application that lets messages through to the SDK, or explains why not. It reads a
    message of up to ``max_body_bytes`` as a whole. Once ``stopping`` is set, it refuses messages,
    while those before them are answered."""

    def __init__(
        self,
        app: ASGIApp,
        listening: Listening,
        stopping: anyio.Event,
        max_body_bytes: int,
        access: AccessFile | None = None,
    ) -> None:
        self._app = app
        self._stopping = stopping
        self._ending = anyio.Event()
        self._posts = 0
        self._token = listening.token
        self._origin = re.compile(listening.origin_pattern)
        self._max_body_bytes = max_body_bytes
        self._access = access

    async def end(self, grace_s: float) -> None:
        """Wait until all messages are answered, at most ``grace_s`` seconds. Then end all streams
        and the answers that are left, which the SDK would wait for."""
        with anyio.move_on_after(grace_s):
            while self._posts:
                await anyio.sleep(0.02)
        self._ending.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        response = wrong_origin(request, self._origin, _LET_IN) or self._wrong_token(request)
        body, pieces = b"", iter(list[Message]())
        if request.method == "POST":
            body, is_whole = await _body(receive, 0 if response else self._max_body_bytes)
            response = response or self._wrong_body(body, is_whole)
            pieces = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(pieces, None) or await receive()

        if response is None and self._stopping.is_set():
            response = _too_late(body)
        if response is not None:
            await response(scope, receive, send)
            return
        # The SDK insists on both types for every answer.
        accepts_json, accepts_events = check_accept_headers(request)
        names_events = _OF_EVENTS.search(request.headers.get("accept", ""))
        is_json = request.method == "POST" and not names_events
        if accepts_events or (is_json and (accepts_json or "accept" not in request.headers)):
            MutableHeaders(scope=scope)["accept"] = f"{_JSON}, {_EVENTS}"
        self._posts += request.method == "POST"
        try:
            if not await self._pass_on(scope, again, send, is_json):
                await _too_late(body)(scope, receive, send)
        finally:
            self._posts -= request.method == "POST"

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, is_json: bool) -> bool:
        """Let the SDK answer. Return False if the server ended before it began to."""
        is_begun = is_complete = False

        async def sent(message: Message) -> None:
            nonlocal is_begun, is_complete
            if not is_begun:
                self._begin(message, scope)
            is_begun = True
            is_complete = message["type"].endswith("body") and not message.get("more_body", False)
            await send(message)

        async with anyio.create_task_group() as group:

            async def end() -> None:
                await self._ending.wait()
                group.cancel_scope.cancel()

            group.start_soon(end)
            await self._app(scope, receive, _without_events(sent) if is_json else sent)
            group.cancel_scope.cancel()
        if self._ending.is_set() and is_begun and not is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return is_begun or not self._ending.is_set()

    def _begin(self, start: Message, scope: Scope) -> None:
        """Write into the start of an answer that it is the last, or a failure without events."""
        headers = MutableHeaders(scope=start)
        if self._stopping.is_set():
            headers["connection"] = "close"
        if FAILURE in scope and headers.get("content-type") == _JSON:
            start["status"] = scope[FAILURE]
            if scope[FAILURE] != 500:
                headers["retry-after"] = str(RETRY_AFTER_S)

    def _wrong_token(self, request: Request) -> Response | None:
        """Check the token, and store in the request what the access file grants it."""
        token = bearer(request)
        if self._access is None:
            if self._token is None or is_same(token, self._token):
                return None
            return _wrong_token("Give the client the token that the server was started with.")
        try:
            grant = self._access.grant(token)
        except AccessError as error:
            return PlainTextResponse(str(error), 503)
        if grant is None:
            return _wrong_token("Give the client a token whose hash is in the access file.")
        note_grant(request.scope, grant)
        return None

    def _wrong_body(self, body: bytes, is_whole: bool) -> Response | None:
        message = read_message(body) if is_whole else too_long(body, self._max_body_bytes)
        if not isinstance(message, BadMessage):
            return None
        return Response(message.answer, 400 if is_whole else 413, media_type=_JSON)


async def _body(receive: Receive, max_bytes: int) -> tuple[bytes, bool]:
    """Return a body and whether it is whole, or the two ends of a body that is too long.

    Within bounds, such a body is read on, because its id may stand at its end. A connection that
    closes with unread data would also hide the answer from the client."""
    body, size, is_left = bytearray(), 0, True
    with anyio.CancelScope() as reading:
        while is_left and size <= max_bytes + _DRAIN_BYTES:
            if size >= max_bytes:
                reading.deadline = min(reading.deadline, anyio.current_time() + _DRAIN_S)
            received = await receive()
            piece = received.get("body", b"")
            body += piece
            size += len(piece)
            if size > max_bytes:
                del body[END_BYTES:-END_BYTES]
            is_left = received.get("more_body", False)
    return bytes(body), size <= max_bytes


def _without_events(send: Send) -> Send:
    """Return a function that sends a stream of events as its last one, which is the answer: the
    client does not read events. The SDK decides this for all clients of a server."""
    start: Message | None = None
    events = bytearray()

    async def sent(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=[*message["headers"]])
            if headers.get("content-type", "").startswith(_EVENTS):
                headers["content-type"] = _JSON
                start = {**message, "headers": headers.raw}
                return
        elif start is not None:
            events.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            data = [line[5:] for line in events.splitlines() if line.startswith(b"data:")]
            if not data:
                start["status"] = 500
            await send(start)
            message = {**message, "body": data[-1].strip() if data else _ENDED.answer.encode()}
        await send(message)

    return sent


def _too_late(body: bytes) -> Response:
    """Return the answer to a message that comes too late."""
    error = UnavailableError("The server is shutting down.", do="Try again when it is back.")
    answer = BadMessage(id_at_ends(body), UNAVAILABLE, error).answer
    headers = {"Connection": "close", "Retry-After": str(RETRY_AFTER_S)}
    return Response(answer, 503, headers, _JSON)


def _wrong_token(do: str) -> Response:
    error = AccessError(
        "The token is missing or wrong.", allowed="Authorization: Bearer TOKEN", do=do
    )
    return PlainTextResponse(str(error), 401, {"WWW-Authenticate": "Bearer"})

"""The checks of every HTTP request before the protocol: path, Host, Origin, type and token.

Host and Origin keep out web pages (a page in a browser on this machine could otherwise reach
loopback), and a token keeps out other machines. The SDK's own checks of Host and Origin compare
beginnings, so that ``localhost:evil.com`` would pass.
"""

from __future__ import annotations

import hmac

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, check_accept_headers
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arag_search.errors import AccessError, AragError, ArgumentError, UnavailableError
from arag_search.mcp_server.access import AccessFile, note_grant
from arag_search.mcp_server.listening import (
    HEALTH_PATH,
    PATH,
    Listening,
    name_in_host,
    name_in_origin,
)
from arag_search.mcp_server.messages import END_BYTES, BadMessage, read_message, too_long

_UNREAD = (400, 401, 403, 404, 408, 413, 421, 503)
"""Statuses of answers that may be sent before a request is complete."""
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_JSON = "application/json"
_SHOWN_CHARACTERS = 80
_DRAIN_BYTES = 1 << 20
_DRAIN_S = 2.0
"""How much is read of a body that is refused or too long, and for how long of a refused one."""


class Gate:
    """An ASGI application that lets messages through to the SDK, or explains why not.

    It answers health checks itself. A message is read as a whole here, within ``max_body_bytes``
    and ``read_timeout_s``."""

    def __init__(
        self,
        app: ASGIApp,
        listening: Listening,
        stopping: anyio.Event,
        max_body_bytes: int,
        read_timeout_s: float,
        access: AccessFile | None = None,
    ) -> None:
        self._app = app
        self._stopping = stopping
        self._token = None if listening.token is None else listening.token.encode()
        self._names = admitted_names(listening)
        self._max_body_bytes = max_body_bytes
        self._read_timeout_s = read_timeout_s
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = _closing(send)
        response = (
            self._ending()
            or self._health(request)
            or self._wrong_path(request)
            or self._wrong_header(request)
            or self._wrong_token(request)
        )
        pieces = iter(list[Message]())
        if response is not None:
            await _body(receive, 0, _DRAIN_S)
        elif request.method == "POST":
            body, is_whole = await _body(receive, self._max_body_bytes, self._read_timeout_s)
            response = self._ending() or self._wrong_body(body, is_whole)
            pieces = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(pieces, None) or await receive()

        if response is not None:
            await response(scope, receive, answer)
            return
        if check_accept_headers(request)[1]:  # the SDK insists on both types for every answer
            MutableHeaders(scope=scope)["accept"] = f"{_JSON}, text/event-stream"
        await self._pass_on(scope, again, answer)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK answer, until the server ends: it would wait for calls without a session."""
        is_begun = is_complete = False

        async def sent(message: Message) -> None:
            nonlocal is_begun, is_complete
            is_begun = True
            is_complete = message["type"].endswith("body") and not message.get("more_body", False)
            await send(message)

        async with anyio.create_task_group() as group:

            async def end() -> None:
                await self._stopping.wait()
                group.cancel_scope.cancel()

            group.start_soon(end)
            await self._app(scope, receive, sent)
            group.cancel_scope.cancel()
        ending = self._ending()
        if ending is not None and not is_begun:
            await ending(scope, receive, send)
        elif ending is not None and not is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _ending(self) -> Response | None:
        if not self._stopping.is_set():
            return None
        return _refused(
            503, UnavailableError("The server is shutting down.", do="Try again when it is back.")
        )

    def _health(self, request: Request) -> Response | None:
        """Answer a health check from anybody, whatever the Host header: probes use addresses, and
        the answer reveals nothing else."""
        if request.url.path != HEALTH_PATH or request.method not in ("GET", "HEAD"):
            return None
        return JSONResponse({"status": "ok"})

    def _wrong_path(self, request: Request) -> Response | None:
        if request.url.path.rstrip("/") == PATH:
            return None
        return _refused(404, ArgumentError("There is nothing at this path.", allowed=PATH))

    def _wrong_header(self, request: Request) -> Response | None:
        """Check Host and Origin. Duplicate headers count as missing, because programs differ in
        which one they take."""
        headers = request.headers
        hosts = [name_in_host(value) for value in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._names:
            what, when = "The server is not known by this host name.", "If clients use this name"
            return _refused(421, _wrong_name(what, _shown(headers, "Host"), when))
        origins = [name_in_origin(value) for value in headers.getlist("origin")]
        if len(origins) > 1 or not self._names.issuperset(origins):
            what, when = "Pages of this origin may not use the server.", "To let the page in"
            return _refused(403, _wrong_name(what, _shown(headers, "Origin"), when))
        return None

    def _wrong_token(self, request: Request) -> Response | None:
        """Check the token, and store in the request what the access file grants it. Duplicate
        headers count as missing."""
        headers = request.headers.getlist("authorization")
        kind, _, shown = (headers[0] if len(headers) == 1 else "").partition(" ")
        token = shown.strip() if kind.lower() == "bearer" else ""
        if self._access is not None:
            return self._without_grant(request, token, self._access)
        if self._token is None or hmac.compare_digest(token.encode("latin-1"), self._token):
            return None
        return _wrong_token("Give the client the token that the server was started with.")

    def _without_grant(self, request: Request, token: str, access: AccessFile) -> Response | None:
        try:
            grant = access.grant(token)
        except AccessError as error:
            return _refused(503, error)
        if grant is None:
            return _wrong_token("Give the client a token whose hash is in the access file.")
        note_grant(request.scope, grant)
        return None

    def _wrong_body(self, body: bytes | None, is_whole: bool) -> Response | None:
        if body is None:
            what = f"The request did not arrive within {self._read_timeout_s:g} s."
            return _refused(408, UnavailableError(what, do="Try again."))
        message = read_message(body) if is_whole else too_long(body, self._max_body_bytes)
        if not isinstance(message, BadMessage):
            return None
        return Response(message.answer, 400 if is_whole else 413, media_type=_JSON)


class Pages(CORSMiddleware):
    """An ASGI application: lets pages of admitted origins read the answers of another one."""

    def __init__(self, app: ASGIApp, listening: Listening) -> None:
        super().__init__(
            app,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=(MCP_SESSION_ID_HEADER,),
        )
        self._names = admitted_names(listening)

    def is_allowed_origin(self, origin: str) -> bool:
        """Return whether the name in an Origin header is one of the server's."""
        return name_in_origin(origin) in self._names


def admitted_names(listening: Listening) -> frozenset[str | None]:
    """Return the names that Host and Origin may have."""
    return frozenset((*_LOOPBACK_NAMES, *listening.names))


async def _body(receive: Receive, max_bytes: int, timeout_s: float) -> tuple[bytes | None, bool]:
    """Return a body and whether it is whole; None for one that did not arrive in time. One that is
    too long is read on within bounds, for the id at its end, and because closing a connection with
    unread data would hide the answer from the client. Of such a body, the ends are returned."""
    body, size = bytearray(), 0
    with anyio.move_on_after(timeout_s):
        while size <= max_bytes + _DRAIN_BYTES:
            received = await receive()
            body += received.get("body", b"")
            size += len(received.get("body", b""))
            if size > max_bytes:
                del body[END_BYTES:-END_BYTES]
            if not received.get("more_body", False):
                return bytes(body), size <= max_bytes
    return (bytes(body) if size > max_bytes else None), False


def _closing(send: Send) -> Send:
    """Return a ``send`` that closes the connection after a request that was not read to its end,
    whose rest would be waited for otherwise."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in _UNREAD:
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return sent


def _refused(status: int, error: AragError, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(str(error), status, headers)


def _wrong_token(do: str) -> Response:
    error = AccessError(
        "The token is missing or wrong.", allowed="Authorization: Bearer TOKEN", do=do
    )
    return _refused(401, error, {"WWW-Authenticate": "Bearer"})


def _wrong_name(what: str, where: str, when: str) -> AragError:
    allowed = "names of loopback, and those that the server was started with"
    do = f"{when}: start the server with --allow-host NAME"
    return AccessError(what, where=where, allowed=allowed, do=do)


def _shown(headers: Headers, name: str) -> str:
    value = headers.get(name, "")
    cut = "..." if len(value) > _SHOWN_CHARACTERS else ""
    return f"{name}: {value[:_SHOWN_CHARACTERS]}{cut}"

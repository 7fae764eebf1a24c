"""Conversations that this process holds: what was shown in them, to whom they belong, how many.

Over stdio there is one, and over HTTP each session of a client of 2025 is one. Newer clients have
no sessions over HTTP: every request stands alone, and may reach another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from arag_search.errors import AragError, ArgumentError, UnavailableError
from arag_search.mcp_server.access import grant_in
from arag_search.mcp_server.listening import PATH
from arag_search.mcp_server.messages import END_BYTES, BadMessage, read_message, too_long
from arag_search.tools.base import ReadSet

_SESSION = "arag_search.session"  # the key in the scope of a request
_DRAIN_BYTES = 1 << 20
"""How much of a body is read that is too long."""


@dataclass(slots=True, eq=False)
class Session:
    """The read sets of one conversation, one for each index. ``owner`` is the digest of the token
    that began it (None without an access file), ``in_flight`` the number of its requests."""

    owner: str | None = None
    id: str | None = None
    in_flight: int = 0
    _read_sets: dict[str, ReadSet] = field(default_factory=dict[str, ReadSet])

    def read_set(self, index: str) -> ReadSet:
        """Return what was shown from an index. A call works on a copy, which is added when its
        reply is made. So a call that was cancelled before has shown nothing, and a reply that was
        lost in transit counts as shown."""
        return self._read_sets.setdefault(index, ReadSet(is_kept=False))


def session_in(scope: Mapping[str, Any]) -> Session:
    """Return the session of a request over HTTP; a new one for a request that stands alone."""
    session = scope.get(_SESSION)
    return session if isinstance(session, Session) else Session()


class Sessions:
    """An ASGI application: reads bodies, and passes messages to the SDK, which keeps the sessions.

    A session belongs to the token that began it, and one more than ``most`` replaces the one that
    has been idle the longest: without a request in flight or an open stream. The SDK refuses
    clients when there are too many sessions, so that vanished ones would keep others out.
    """

    def __init__(
        self, manager: StreamableHTTPSessionManager, most: int, read_timeout_s: float
    ) -> None:
        self._manager = manager
        self._max_body_bytes = manager.max_request_body_size
        self._most = most
        self._read_timeout_s = read_timeout_s
        self._sessions: list[Session] = []  # the one that was used last is the last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, message = b"", None
        if scope["method"] == "POST":
            body, is_whole = await self._body(receive)
            if body is None:
                await self._too_slow()(scope, receive, send)
                return
            message = read_message(body) if is_whole else too_long(body, self._max_body_bytes)
            if isinstance(message, BadMessage):
                status = 400 if is_whole else 413
                refusal = Response(message.answer, status, media_type="application/json")
                await refusal(scope, receive, send)
                return
        pieces = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(pieces, None) or await receive()

        headers = Headers(scope=scope)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        session_id = headers.get(MCP_SESSION_ID_HEADER)
        opens = isinstance(message, JSONRPCRequest) and message.method == "initialize"
        if version not in (None, *HANDSHAKE_PROTOCOL_VERSIONS) or not (session_id or opens):
            await self._manager.handle_request(scope, again, send)
            return
        session = self._known(session_id, scope) if session_id else await self._opened(scope)
        if isinstance(session, AragError):
            refusal = PlainTextResponse(str(session), 404 if session_id else 503)
            await refusal(scope, again, send)
        else:
            await self._ask(session, scope, again, send)

    async def _body(self, receive: Receive) -> tuple[bytes | None, bool]:
        """Return a body and whether it is whole; None for one that did not arrive in time. One that
        is too long is read on within bounds, for the id at its end, and because closing a
        connection with unread data would hide the answer. Of such a body, the ends are returned."""
        body, size = bytearray(), 0
        with anyio.move_on_after(self._read_timeout_s):
            while size <= self._max_body_bytes + _DRAIN_BYTES:
                received = await receive()
                body += received.get("body", b"")
                size += len(received.get("body", b""))
                if size > self._max_body_bytes:
                    del body[END_BYTES:-END_BYTES]
                if not received.get("more_body", False):
                    return bytes(body), size <= self._max_body_bytes
        return (bytes(body), False) if size > self._max_body_bytes else (None, False)

    def _too_slow(self) -> Response:
        error = UnavailableError(
            f"The request did not arrive within {self._read_timeout_s:g} s.", do="Try again."
        )
        return PlainTextResponse(str(error), 408)

    def _known(self, session_id: str, scope: Scope) -> Session | AragError:
        """Return the session with an id, if it belongs to the token of a request."""
        grant = grant_in(scope)
        for session in self._sessions:
            if session.id == session_id and session.owner == (grant and grant.digest):
                return session
        return ArgumentError("No session of this token has this id.", do="Begin a new session.")

    async def _opened(self, scope: Scope) -> Session | AragError:
        """Return a new session, for which the one that has been idle the longest may end."""
        grant = grant_in(scope)
        session = Session(grant and grant.digest)
        idle: Session | None = None
        if len(self._sessions) >= self._most:
            idle = next((other for other in self._sessions if not other.in_flight), None)
            if idle is None:
                return UnavailableError(
                    f"All {self._most} sessions are in use.",
                    allowed=f"at most {self._most} with a request in flight or an open stream",
                    do="Try again in a moment, or end a session.",
                )
            self._sessions.remove(idle)
        session.in_flight += 1  # until the request counts
        self._sessions.append(session)
        if idle is not None:
            await self._end(idle)
        session.in_flight -= 1
        return session

    async def _ask(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to a session; it was last used when the request ended."""
        is_over = False

        async def sent(message: Message) -> None:
            nonlocal is_over
            if message["type"] == "http.response.start":
                status = message["status"]
                is_over = status == 404 or (scope["method"] == "DELETE" and status < 400)
                if session.id is None and status < 400:
                    session.id = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
            await send(message)

        scope[_SESSION] = session
        session.in_flight += 1
        try:
            await self._manager.handle_request(scope, receive, sent)
        finally:
            session.in_flight -= 1
            if session in self._sessions:
                self._sessions.remove(session)
                if session.id is not None and not is_over:
                    self._sessions.append(session)

    async def _end(self, session: Session) -> None:
        """End a session, as its client would."""
        id_ = (session.id or "").encode()
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": PATH,
            "query_string": b"",
            "headers": [(MCP_SESSION_ID_HEADER.encode(), id_)],
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            """Discard the answer, because no client waits for it."""

        await self._manager.handle_request(scope, receive, send)

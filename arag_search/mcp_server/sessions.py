"""The sessions of the protocol over HTTP: their number and their open requests.

If the limit is reached, a new session replaces the one that has been idle the longest. A session is
idle while it has no request in flight and no open stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp import types
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import (
    RequestBodyLimitMiddleware,
    StreamableHTTPSessionManager,
)
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from arag_search.errors import ArgumentError, UnavailableError
from arag_search.mcp_server.access import grant_in
from arag_search.mcp_server.listening import PATH
from arag_search.mcp_server.messages import BadMessage, id_in_flight, read_message
from arag_search.tools.base import ReadSet

_WITHOUT_ID = "server-error"
"""The id in the answer to a message without an id: that of the SDK, whose types have no null."""
_MAX_UNANSWERED = 256
"""The number of remembered ids of requests whose client left before the answer; no more calls than
this run at a time. Otherwise the answer would go to the next request with the same id."""


@dataclass(slots=True, eq=False)
class _Session:
    """The requests of a session: how many are in flight, and the ids that may still be answered.
    ``owner`` is the digest of the token that began it, None without an access file."""

    owner: str | None = None
    in_flight: int = 0
    ids: set[str] = field(default_factory=set[str])
    unanswered: dict[str, None] = field(default_factory=dict[str, None])

    def leave_unanswered(self, id_: str) -> None:
        self.unanswered[id_] = None
        if len(self.unanswered) > _MAX_UNANSWERED:
            del self.unanswered[next(iter(self.unanswered))]


class _Request(NamedTuple):
    """One request over HTTP, its body read."""

    scope: Scope
    receive: Receive
    send: Send
    message: types.JSONRPCMessage | None
    """None for a request that is not a POST."""

    @property
    def id(self) -> types.RequestId | None:
        """The id of the client's request; None if the message is not a request."""
        root = None if self.message is None else self.message.root
        return root.id if isinstance(root, types.JSONRPCRequest) else None

    @property
    def opens_a_session(self) -> bool:
        root = None if self.message is None else self.message.root
        return isinstance(root, types.JSONRPCRequest) and root.method == "initialize"


class Sessions:
    """An ASGI application: passes requests to the SDK's sessions, at most ``most`` at a time.

    It knows every session. It notices that the SDK has ended a session by itself when the session
    is next used or dropped; such sessions have been idle the longest.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, most: int) -> None:
        self._manager = manager
        self._most = most
        self._opening: list[_Session] = []
        self._sessions: dict[str, _Session] = {}  # the one that was used last is the last
        self._bounded = RequestBodyLimitMiddleware(self._read, manager.max_request_body_size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._bounded(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, which the middleware has in one piece, and pass it on."""
        first = await receive()
        message: types.JSONRPCMessage | BadMessage | None = None
        if scope["method"] == "POST" and first["type"] == "http.request":
            message = read_message(first["body"])
        if isinstance(message, BadMessage):
            await _refused(message)(scope, receive, send)
            return
        pieces = iter([first])

        async def again() -> Message:
            return next(pieces, None) or await receive()

        request = _Request(scope, again, send, message)
        session_id = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if session_id in self._sessions:
            session = self._sessions[session_id]
            if session.owner != _owner(scope):
                await _no_such_session()(scope, again, send)
                return
            await self._ask(request, session_id, session)
        elif session_id is None and request.opens_a_session:
            await self._open(request)
        else:  # for the SDK to refuse
            await self._manager.handle_request(scope, again, send)

    async def _ask(self, request: _Request, session_id: str, session: _Session) -> None:
        """Pass a request to a session."""
        asked = request.id
        id_ = None if asked is None else str(asked)  # the SDK too takes 1 for "1"
        if asked is not None and (id_ in session.ids or id_ in session.unanswered):
            refusal = _refused(id_in_flight(asked))
            await refusal(request.scope, request.receive, request.send)
            return
        answer = _Answer(request.send)
        with self._in_flight(session_id, session, id_, answer):
            await self._manager.handle_request(request.scope, request.receive, answer)
        method = request.scope["method"]
        if answer.status == 404 or (method == "DELETE" and answer.status == 200):
            self._sessions.pop(session_id, None)

    async def _open(self, request: _Request) -> None:
        """Pass on a request that begins a session. If there are too many sessions, drop the
        oldest idle one; if no session is idle, reject the request."""
        dropped: str | None = None
        if len(self._sessions) + len(self._opening) >= self._most:
            idle = (id_ for id_, session in self._sessions.items() if not session.in_flight)
            dropped = next(idle, None)
            if dropped is None:
                await self._full()(request.scope, request.receive, request.send)
                return
            del self._sessions[dropped]
        session = _Session(_owner(request.scope), in_flight=1)
        self._opening.append(session)

        def begun(session_id: str) -> None:
            self._opening.remove(session)
            self._sessions[session_id] = session

        try:
            if dropped is not None:
                await self._end(dropped)
            answer = _Answer(request.send, begun)
            await self._manager.handle_request(request.scope, request.receive, answer)
        finally:
            session.in_flight -= 1
            if session in self._opening:
                self._opening.remove(session)

    @contextlib.contextmanager
    def _in_flight(
        self, session_id: str, session: _Session, id_: str | None, answer: _Answer
    ) -> Generator[None]:
        """Count a request of the session; it was last used when the request ended."""
        session.in_flight += 1
        if id_ is not None:
            session.ids.add(id_)
        try:
            yield
        finally:
            session.in_flight -= 1
            if id_ is not None:
                session.ids.discard(id_)
                if not answer.is_whole:
                    session.leave_unanswered(id_)
            if self._sessions.pop(session_id, None) is not None:
                self._sessions[session_id] = session

    async def _end(self, session_id: str) -> None:
        """End a session, as its client would."""
        headers = [(MCP_SESSION_ID_HEADER.encode(), session_id.encode())]
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": PATH,
            "query_string": b"",
            "headers": headers,
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            """Discard the answer, because no client waits for it."""

        await self._manager.handle_request(scope, receive, send)

    def _full(self) -> Response:
        error = UnavailableError(
            f"All {self._most} sessions are in use.",
            allowed=f"at most {self._most} with a request in flight or an open stream",
            do="Try again in a moment, or end a session.",
        )
        return PlainTextResponse(str(error), 503)


class _Answer:
    """A ``send`` that records the status of the answer, and whether all of it was sent. ``begun``
    is called with the id of a session that the answer begins."""

    def __init__(self, send: Send, begun: Callable[[str], None] | None = None) -> None:
        self._send = send
        self._begun = begun
        self.status = 0
        self.is_whole = False

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            session_id = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
            if self._begun is not None and self.status < 400 and session_id is not None:
                self._begun(session_id)
        elif message["type"] == "http.response.body":
            self.is_whole = not message.get("more_body", False)
        await self._send(message)


def _owner(scope: Scope) -> str | None:
    """Return the digest of the token of a request; None without an access file."""
    grant = grant_in(scope)
    return None if grant is None else grant.digest


def _no_such_session() -> Response:
    error = ArgumentError("No session of this token has this id.", do="Begin a new session.")
    return PlainTextResponse(str(error), 404)


def _refused(bad: BadMessage) -> Response:
    """Return the response to a message that reaches no session."""
    error = bad.answer(_WITHOUT_ID if bad.id is None else bad.id)
    text = error.model_dump_json(by_alias=True, exclude_none=True)
    return Response(text, 400, media_type="application/json")


# The passages that a client has been shown since its question began


class Session:
    """The read sets of one connection, one for each index. Two sessions share nothing."""

    def __init__(self) -> None:
        self._read_sets: dict[str, ReadSet] = {}

    def read_set(self, index: str) -> ReadSet:
        """Return what was shown from an index. A call works on a copy, which is added when its
        reply is made. So a call that was cancelled before has shown nothing, and a reply that was
        lost in transit counts as shown until ``reset``."""
        return self._read_sets.setdefault(index, ReadSet(is_kept=False))

    def reset(self) -> None:
        """Begin a new question. Running calls still add to the read set of the previous
        question."""
        self._read_sets = {}

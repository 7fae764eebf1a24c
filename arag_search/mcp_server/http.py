"""The protocol over HTTP, with bounds on the resources of clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Generator
from dataclasses import dataclass

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from arag_search.mcp_server.access import AccessFile
from arag_search.mcp_server.gate import Gate, Pages
from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.messages import MAX_MESSAGE_BYTES
from arag_search.mcp_server.protocol import MAX_SESSIONS, Session

MAX_CONNECTIONS = 512
"""The maximum number of connections. One more replaces the connection that has waited for a request
the longest; if all are being answered, the new one gets status 503. A client holds one for its
stream and one for its requests."""
IDLE_SESSION_S = 30 * 60.0
"""Seconds without a request or an open stream after which a session is dropped."""
READ_TIMEOUT_S = 30.0
"""Seconds that a client may take to send a request."""
_SHUTDOWN_S = 2


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of a server, in the units of their names."""

    max_request_bytes: int = MAX_MESSAGE_BYTES
    max_connections: int = MAX_CONNECTIONS
    max_sessions: int = MAX_SESSIONS
    idle_session_s: float = IDLE_SESSION_S
    read_timeout_s: float = READ_TIMEOUT_S


async def serve_http(
    server: Server[Session],
    listening: Listening,
    stopping: anyio.Event,
    limits: HttpLimits | None = None,
    access: AccessFile | None = None,
) -> None:
    """Serve until ``stopping`` is set; then end all sessions and close the socket. With ``access``,
    only tokens in that file are admitted."""
    limits = limits or HttpLimits()
    manager = StreamableHTTPSessionManager(
        server,
        session_idle_timeout=limits.idle_session_s,
        max_request_body_size=limits.max_request_bytes,
        max_sessions=limits.max_sessions,
    )
    gate = Gate(
        manager.handle_request,
        listening,
        stopping,
        limits.max_request_bytes,
        limits.read_timeout_s,
        access,
    )
    config = uvicorn.Config(
        Pages(gate, listening),
        http=paced(limits.read_timeout_s, limits.max_connections),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        limit_concurrency=limits.max_connections + 1,  # itself included
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    web = _WebServer(config)
    # It warns of every call that the end of the server cancels.
    logging.getLogger("mcp.shared.jsonrpc_dispatcher").setLevel(logging.ERROR)
    async with anyio.create_task_group() as group:
        async with manager.run():
            group.start_soon(web.serve, [listening.socket])
            await stopping.wait()
        # The sessions have ended, so that no connection waits for an open stream.
        web.should_exit = True


class _WebServer(uvicorn.Server):
    """A web server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


# Bounds on the time and number of connections that begin a request without finishing it


def paced(read_timeout_s: float, max_connections: int) -> type[H11Protocol]:
    """Return a protocol for uvicorn that closes a connection after it has waited for the head of a
    request for ``read_timeout_s`` seconds.

    The time begins with the connection and, after an answered request, with the first byte of the
    next one; further bytes do not renew it. Uvicorn's own timer handles a connection that is idle
    between requests, and the reader of a body handles slow bodies.

    Beyond ``max_connections``, the connection that has waited the longest for the rest of a
    request, or for the next one, is closed.
    """
    waiting: dict[Paced, None] = {}  # the one that began to wait last is the last

    class Paced(H11Protocol):
        _head_due: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._await_head()
            self._note_state()
            while len(self.connections) > max_connections:
                oldest = next(iter(waiting))
                if oldest is self:
                    break  # all others are being answered; uvicorn refuses this one
                oldest._make_room()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle and not self.cycle.response_complete:
                self._forget_head()
            else:
                self._await_head()
            self._note_state()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._note_state()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            waiting.pop(self, None)
            super().connection_lost(exc)

        def _note_state(self) -> None:
            """Note whether a request is complete but not answered."""
            if self.cycle and not (self.cycle.response_complete or self.cycle.more_body):
                waiting.pop(self, None)
            else:
                waiting.setdefault(self)

        def _make_room(self) -> None:
            waiting.pop(self, None)
            self.connections.discard(self)
            self.transport.abort()

        def _await_head(self) -> None:
            if self._head_due is None and not self.transport.is_closing():
                self._head_due = self.loop.call_later(read_timeout_s, self.transport.abort)

        def _forget_head(self) -> None:
            if self._head_due is not None:
                self._head_due.cancel()
                self._head_due = None

    return Paced

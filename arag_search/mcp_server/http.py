"""The protocol over HTTP, with bounds on the resources of clients."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from dataclasses import dataclass

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from arag_search.mcp_server.access import AccessFile
from arag_search.mcp_server.gate import Gate, Pages
from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.messages import MAX_MESSAGE_BYTES
from arag_search.mcp_server.pace import paced
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

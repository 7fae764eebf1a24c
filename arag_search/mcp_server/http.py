"""The protocol over HTTP, with bounds on the resources of clients."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from arag_search.errors import ArgumentError
from arag_search.mcp_server.access import AccessFile
from arag_search.mcp_server.gate import Gate
from arag_search.mcp_server.listening import HEALTH_PATH, PATH, Listening
from arag_search.mcp_server.messages import MAX_MESSAGE_BYTES
from arag_search.mcp_server.protocol import MAX_SESSIONS, Session

IDLE_SESSION_S = 30 * 60.0
"""Seconds without a request or an open stream after which a session is dropped."""
_SHUTDOWN_S = 2


async def serve_http(
    server: Server[Session],
    listening: Listening,
    stopping: anyio.Event,
    access: AccessFile | None = None,
    *,
    max_request_bytes: int = MAX_MESSAGE_BYTES,
    max_sessions: int = MAX_SESSIONS,
    idle_session_s: float = IDLE_SESSION_S,
) -> None:
    """Serve until ``stopping`` is set; then end all sessions and close the socket. With ``access``,
    only tokens in that file are admitted."""
    manager = StreamableHTTPSessionManager(
        server,
        session_idle_timeout=idle_session_s,
        max_request_body_size=max_request_bytes,
        max_sessions=max_sessions,
    )
    gate = Gate(manager.handle_request, listening, stopping, max_request_bytes, access)
    config = uvicorn.Config(
        _application(gate, listening),
        http="h11",
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
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


def _application(gate: Gate, listening: Listening) -> Starlette:
    """Return the application: the gate behind checks for requests of browsers, and the answer to
    health checks, whatever their Host: probes use addresses."""
    of_browsers = [
        Middleware(TrustedHostMiddleware, listening.names, www_redirect=False),
        Middleware(
            CORSMiddleware,
            allow_origin_regex=listening.origin_pattern,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=(MCP_SESSION_ID_HEADER,),
        ),
    ]
    paths = [Route(path, gate, middleware=of_browsers) for path in (PATH, f"{PATH}/")]
    return Starlette(
        routes=[*paths, Route(HEALTH_PATH, _health)], exception_handlers={404: _no_path}
    )


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _no_path(_: Request, __: Exception) -> Response:
    return PlainTextResponse(
        str(ArgumentError("There is nothing at this path.", allowed=PATH)), 404
    )


class _WebServer(uvicorn.Server):
    """A web server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

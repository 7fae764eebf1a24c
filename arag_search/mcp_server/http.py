"""The protocol over HTTP, with bounds on the resources of clients."""

from __future__ import annotations

import logging
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import anyio
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
from arag_search.mcp_server.listening import HEALTH_PATH, PATH, READY_PATH, Listening
from arag_search.mcp_server.live import LiveIndexes
from arag_search.mcp_server.messages import MAX_MESSAGE_BYTES
from arag_search.mcp_server.protocol import MAX_SESSIONS, Session
from arag_search.mcp_server.web import WebServer
from arag_search.mcp_server.workers import Workers

if TYPE_CHECKING:
    from arag_search.mcp_server.metrics import Metrics

IDLE_SESSION_S = 30 * 60.0
"""Seconds without a request or an open stream after which a session is dropped."""
GRACE_S = 8.0
"""Seconds for calls that run when the server is stopped; a container has 15 for all of its end."""
KEPT_S = 1.0
"""Seconds for which it is kept whether the indexes can be searched."""
_logger = logging.getLogger(__name__)


async def serve_http(
    server: Server[Session],
    listening: Listening,
    readiness: Readiness,
    stopping: anyio.Event,
    access: AccessFile | None = None,
    *,
    max_request_bytes: int = MAX_MESSAGE_BYTES,
    max_sessions: int = MAX_SESSIONS,
    idle_session_s: float = IDLE_SESSION_S,
    grace_s: float = GRACE_S,
    metrics: Metrics | None = None,
) -> None:
    """Serve until ``stopping`` is set.

    Then refuse new calls. Calls that run have ``grace_s`` seconds to finish. At last all sessions
    end, and the socket is closed. With ``access``, only tokens in that file are admitted.
    ``metrics`` count the sessions.
    """
    manager = StreamableHTTPSessionManager(
        server,
        session_idle_timeout=idle_session_s,
        max_request_body_size=max_request_bytes,
        max_sessions=max_sessions,
    )
    if metrics is not None:
        metrics.sessions = lambda: len(manager._server_instances)  # pyright: ignore[reportPrivateUsage]
    gate = Gate(manager.handle_request, listening, stopping, max_request_bytes, access)
    web = WebServer(_application(gate, listening, readiness, stopping))
    # It warns of every call that the end of the server cancels.
    logging.getLogger("mcp.shared.jsonrpc_dispatcher").setLevel(logging.ERROR)
    async with anyio.create_task_group() as group:
        async with manager.run():
            group.start_soon(web.serve, [listening.socket])
            await stopping.wait()
            await gate.end(grace_s)
        # The sessions have ended, so that no connection waits for an open stream.
        web.should_exit = True


class Readiness:
    """Whether all indexes can be searched, as of a second ago at most."""

    def __init__(self, live: LiveIndexes, workers: Workers) -> None:
        self._ask = partial(workers.beside, live.availability)
        self._asking = anyio.Lock()
        self._until = 0.0
        self._problem = ""

    async def is_given(self) -> bool:
        """Look again if it is time; the log says when it was lost."""
        async with self._asking:
            if monotonic() >= self._until:
                problem = "It does not answer."
                with anyio.move_on_after(5):
                    indexes = await self._ask()
                    problem = next(filter(None, (of.problem for of in indexes.values())), "")
                if problem and not self._problem:
                    _logger.warning("An index cannot be searched. %s", problem)
                self._problem, self._until = problem, monotonic() + KEPT_S
        return not self._problem


def _application(
    gate: Gate, listening: Listening, readiness: Readiness, stopping: anyio.Event
) -> Starlette:
    """Return the application: the gate behind checks for requests of browsers, and the answers to
    probes, whatever their Host: they use addresses."""

    async def ready(_: Request) -> Response:
        is_ready = not stopping.is_set() and await readiness.is_given()
        status = "ok" if is_ready else "unavailable"
        return JSONResponse({"status": status}, 200 if is_ready else 503)

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
    paths += [Route(HEALTH_PATH, _health), Route(READY_PATH, ready)]
    return Starlette(routes=paths, exception_handlers={404: _no_path})


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _no_path(_: Request, __: Exception) -> Response:
    return PlainTextResponse(
        str(ArgumentError("There is nothing at this path.", allowed=PATH)), 404
    )

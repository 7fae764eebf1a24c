"""The protocol over HTTP: who may come in, and how much of everything they may take.

One path, ``/mcp``. Web pages are kept out by Host and Origin (a page in a browser on this machine
could reach loopback otherwise), other machines by a token.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import logging
import os
import re
import socket
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from arag_search.engines.opensearch.address import is_loopback
from arag_search.errors import AccessError, AragError, ArgumentError, UnavailableError
from arag_search.mcp_server.session import Session

PATH = "/mcp"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
MAX_PORT = 65_535
MAX_REQUEST_BYTES = 1 << 20
MAX_CONNECTIONS = 512
"""More are answered with status 503. A client holds one for its stream and one for its requests."""
MAX_SESSIONS = 256
IDLE_SESSION_S = 30 * 60.0
"""Seconds without a request, or an open stream, after which a session is forgotten."""
READ_TIMEOUT_S = 30.0
"""Seconds that a client may take to send a request."""
MIN_TOKEN_CHARACTERS = 16
_SHUTDOWN_S = 2
_UNREAD = (400, 401, 403, 404, 408, 413, 421)
"""Answers that may be given before a request is there."""
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of a server, in the units of their names."""

    max_request_bytes: int = MAX_REQUEST_BYTES
    max_connections: int = MAX_CONNECTIONS
    max_sessions: int = MAX_SESSIONS
    idle_session_s: float = IDLE_SESSION_S
    read_timeout_s: float = READ_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Listening:
    """An open socket, and who may come in by it.

    ``names`` are those that a client may call the server by, besides loopback's. ``token`` is what
    it must show; None where nothing is asked.
    """

    socket: socket.socket
    names: tuple[str, ...]
    token: str | None

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    @property
    def url(self) -> str:
        """Where clients find the server."""
        host, port = self.socket.getsockname()[:2]
        return f"http://{_bracketed(host)}:{port}{PATH}"


def listen(
    host: str, port: int, token_env: str | None, allowed_hosts: Sequence[str] = ()
) -> Listening:
    """Open the socket; port 0 takes any that is free.

    ``token_env`` names the variable with the token. Raises ArgumentError for a host that is not
    loopback without a token, a variable without a good one, and a port that cannot be had.
    """
    if token_env is None and not is_loopback(host):
        raise ArgumentError(
            f"Other machines could reach the server at {host}, and no token is set.",
            where="--host",
            allowed="127.0.0.1, localhost or ::1; any other one with --token-env",
            do="Put a long random token into a variable, and name it with --token-env NAME.",
        )
    if not 0 <= port <= MAX_PORT:
        raise ArgumentError(f"There is no port {port}.", where="--port", allowed=f"0 to {MAX_PORT}")
    token = None if token_env is None else _token_in(token_env)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise _not_listening(host, port, error) from error
    names = (host, *allowed_hosts)
    return Listening(opened, tuple(_bracketed(name) for name in names if name), token)


async def serve_http(
    server: Server[Session, Any],
    listening: Listening,
    stopping: anyio.Event,
    limits: HttpLimits | None = None,
) -> None:
    """Serve until ``stopping`` is set; then end all sessions and close the socket."""
    limits = limits or HttpLimits()
    manager = StreamableHTTPSessionManager(
        server,
        session_idle_timeout=limits.idle_session_s,
        max_request_body_size=limits.max_request_bytes,
        max_sessions=limits.max_sessions,
    )
    config = uvicorn.Config(
        Gate(manager, listening, limits.read_timeout_s),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        limit_concurrency=limits.max_connections,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    web = _WebServer(config)
    # The SDK tells of every stream that ends with its session, with a traceback.
    logger = logging.getLogger("mcp.server.streamable_http")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        async with anyio.create_task_group() as group:
            async with manager.run():
                group.start_soon(web.serve, [listening.socket])
                await stopping.wait()
            # The sessions have ended, so that no connection waits for an open stream.
            web.should_exit = True
    finally:
        logger.setLevel(level)


class _WebServer(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Gate:
    """An ASGI application: lets requests through to the protocol, or says why not."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, listening: Listening, read_timeout_s: float
    ) -> None:
        self._manager = manager
        self._token = None if listening.token is None else listening.token.encode()
        self._headers = TransportSecurityMiddleware(_settings(listening.names))
        self._read_timeout_s = read_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = _closing(send)
        refusal = (
            self._wrong_path(request)
            or await self._headers.validate_request(request, request.method == "POST")
            or self._wrong_token(request)
        )
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        try:
            await self._manager.handle_request(scope, self._bounded(receive), answer)
        except _TooSlow:
            error = UnavailableError(
                f"The request did not arrive within {self._read_timeout_s:g} s.", do="Try again."
            )
            await _refused(408, error)(scope, receive, answer)

    def _wrong_path(self, request: Request) -> Response | None:
        if request.url.path.rstrip("/") == PATH:
            return None
        return _refused(404, ArgumentError("There is nothing at this path.", allowed=PATH))

    def _wrong_token(self, request: Request) -> Response | None:
        if self._token is None:
            return None
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(shown.strip().encode("latin-1"), self._token)
        if kind.lower() == "bearer" and is_right:
            return None
        error = AccessError(
            "The token is missing or wrong.",
            allowed="Authorization: Bearer TOKEN",
            do="Give the client the token that the server was started with.",
        )
        return _refused(401, error, {"WWW-Authenticate": "Bearer"})

    def _bounded(self, receive: Receive) -> Receive:
        """The same, for at most so long until the whole request is there."""
        deadline = anyio.current_time() + self._read_timeout_s
        is_complete = False

        async def received() -> Message:
            nonlocal is_complete
            if is_complete:
                return await receive()
            with anyio.CancelScope(deadline=deadline):
                message = await receive()
                is_complete = not message.get("more_body", False)
                return message
            raise _TooSlow

        return received


class _TooSlow(Exception):
    """A request did not arrive in time."""


def _closing(send: Send) -> Send:
    """The same, ending the connection after a request that was not read whole: its rest would be
    waited for otherwise."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in _UNREAD:
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return sent


def _refused(status: int, error: AragError, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(str(error), status, headers)


def _settings(names: Sequence[str]) -> TransportSecuritySettings:
    """Which Host and Origin headers are taken: by these names, and by those of loopback."""
    known = dict.fromkeys([*_LOOPBACK_NAMES, *names])
    return TransportSecuritySettings(
        allowed_hosts=[form for name in known for form in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{form}"
            for scheme in ("http", "https")
            for name in known
            for form in (name, f"{name}:*")
        ],
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _token_in(variable: str) -> str:
    """The token in a variable. Raises ArgumentError, which never shows it."""
    token = os.environ.get(variable, "").strip()
    if len(token) >= MIN_TOKEN_CHARACTERS and _TOKEN.fullmatch(token):
        return token
    raise ArgumentError(
        f"There is no token in the variable {variable}."
        if not token
        else f"The token in the variable {variable} is too short, or no plain text.",
        where="--token-env",
        allowed=f"{MIN_TOKEN_CHARACTERS} or more characters of printable ASCII, without blanks",
        do=f"Set it, such as: export {variable}=$(openssl rand -hex 32)",
    )


def _not_listening(host: str, port: int, error: OSError) -> ArgumentError:
    if error.errno == errno.EADDRINUSE:
        return ArgumentError(
            f"Port {port} of {host} is taken.",
            where="--port",
            allowed="a free port; 0 takes any",
            do="End the other server, or name another port.",
        )
    return ArgumentError(
        f"The server cannot listen there ({error.strerror}).",
        where=f"{host}, port {port}",
        allowed="an address of this machine, and a port that this user may have",
        do="Mend --host or --port.",
    )

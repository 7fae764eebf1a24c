"""The web server under all HTTP servers of the project."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

_SHUTDOWN_S = 2


class WebServer(uvicorn.Server):
    """A web server that leaves signals to its caller."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=_SHUTDOWN_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

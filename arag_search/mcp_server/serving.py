"""A server from its start until its client or a signal ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable

import anyio

END_S = 12.0
"""Seconds after a signal until the process ends though a client takes no reply."""

Serve = Callable[[anyio.Event], Awaitable[None]]
"""A function that serves until the event is set or no client is left."""


def run_until_signalled(serve: Serve) -> int:
    """Serve until no clients are left, or until SIGTERM or Ctrl-C, and return the exit code: 0 or
    128 + signal. A second signal ends the process."""
    number = anyio.run(_until_signalled, serve)
    return 128 + number if number else 0


async def _until_signalled(serve: Serve) -> int:
    """Serve, and return the number of the signal that ended the server, else 0."""
    stopping = anyio.Event()
    number = 0
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            nonlocal number
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for received in signals:
                    if number:
                        os._exit(128 + received)  # asked twice
                    number = received
                    stopping.set()
                    group.start_soon(give_up)

        async def give_up() -> None:
            await anyio.sleep(END_S)
            os._exit(128 + number)

        group.start_soon(watch)
        await serve(stopping)
        group.cancel_scope.cancel()
    return number

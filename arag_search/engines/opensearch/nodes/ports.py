"""Ports of local nodes: their numbers, and whether they are free."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Sequence

from arag_search.engines.opensearch.nodes.settings import LOOPBACK, Place
from arag_search.errors import ArgumentError, EngineError

TRANSPORT_OFFSET = 100
_POLL_S = 0.1
_HIGHEST = 65_535 - TRANSPORT_OFFSET - 2


def check_number(port: int | None) -> None:
    """Raise ArgumentError for a port that the first node cannot use; 0 stands for any port."""
    if port is not None and port != 0 and not 1024 <= port <= _HIGHEST:
        raise ArgumentError(
            f"Port {port} cannot be the port of the first node.",
            where="--port",
            allowed=f"1024 to {_HIGHEST:,}, or 0 for any free port",
        )


def places(count: int, port: int) -> list[Place]:
    """Assign ports to nodes: HTTP from ``port`` on, transport 100 higher; for 0, any free ports."""
    if port == 0:
        free = _free_ports(2 * count)
        pairs = list(zip(free[::2], free[1::2], strict=True))
    else:
        pairs = [(port + at, port + TRANSPORT_OFFSET + at) for at in range(count)]
    return [Place(f"node-{at}", *pair) for at, pair in enumerate(pairs, 1)]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as bound:
        ports: list[int] = []
        for _ in range(count):
            bound_socket = bound.enter_context(socket.socket())
            bound_socket.bind((LOOPBACK, 0))
            ports.append(bound_socket.getsockname()[1])
        return ports


def check_free(places: Sequence[Place], *, wait_s: float = 0.0) -> None:
    """Raise EngineError, which names every port of these nodes still in use after ``wait_s``.

    The system may release the ports of a killed process only some time after its end.
    """
    numbers = {port for place in places for port in (place.http_port, place.transport_port)}
    end = time.monotonic() + wait_s
    while taken := [port for port in sorted(numbers) if not _is_free(port)]:
        if time.monotonic() >= end:
            break
        time.sleep(_POLL_S)
    if taken:
        named = ", ".join(map(str, taken))
        raise EngineError(
            f"Ports are in use: {named}." if len(taken) > 1 else f"Port {named} is in use.",
            where=LOOPBACK,
            allowed="ports on which nothing listens; a node takes two, 100 apart",
            do="Choose others with --port (0 takes any), or stop the process that listens there.",
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like the node: a port on which only closed connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True

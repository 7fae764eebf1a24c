"""The hosts of a cluster: used in turn, except hosts that are down.

Slow queries fail as requests to a dead node do, so a failure alone says nothing. A host is down if
it does not answer ``GET /`` afterwards.
"""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LOOK_S = 2.0
"""How long a host may take to answer ``GET /``."""
LOOK_EVERY_S = 3.0
"""The shortest time between two such requests to a host that is down."""
SETTLING_S = 30.0
"""How long after its return a host may leave searches unanswered before a query is called slow."""
_LOST = ("N/A", "TIMEOUT", 502, 503, 504)
"""The library's statuses of a failed connection, and the statuses of proxies that reach no host."""


class HostDownError(Exception):
    """The host that a request is for is down; the argument is the library's error of a look."""


@dataclass(eq=False, slots=True)
class _Host:
    connection: Any
    down_since: datetime | None = None
    why: Any = None
    looked_s: float = 0.0
    back_s: float = -math.inf
    looking: Any = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Note whether the host answers now."""
        from opensearchpy.exceptions import TransportError

        self.looked_s = time.monotonic()
        try:
            self.connection.perform_request("GET", "/", timeout=LOOK_S)
        except TransportError as error:
            if error.status_code in _LOST:
                self.down_since = self.down_since or datetime.now().astimezone()
                self.why = error
                return
        if self.down_since is not None:
            self.back_s = time.monotonic()
        self.down_since = None


class Hosts:
    """The hosts, by the library's connections to each. Threads may share it."""

    def __init__(self, connections: Sequence[Any]) -> None:
        self._hosts = [_Host(connection) for connection in connections]
        random.shuffle(self._hosts)  # clients do not all begin with the same one
        self._turns = itertools.count()

    @property
    def down_since(self) -> datetime | None:
        """The local time since which no host answers; None if one does."""
        since = [host.down_since for host in self._hosts if host.down_since is not None]
        return max(since) if len(since) == len(self._hosts) else None

    @property
    def is_settling(self) -> bool:
        """Whether a host has just come back, and may not have opened its indexes yet."""
        return any(time.monotonic() - host.back_s < SETTLING_S for host in self._hosts)

    def request(self, method: str, path: str, **options: Any) -> str:
        """Send a request to the next host, and return the text of its answer. Raises HostDownError
        if the host turns out to be down or all are, otherwise the library's TransportError."""
        from opensearchpy.exceptions import TransportError

        host = self._next()
        try:
            return host.connection.perform_request(method, path, **options)[2]
        except TransportError as error:
            failed_s = time.monotonic()
            if error.status_code in _LOST:
                with host.looking:  # threads whose requests failed together share a look
                    if host.down_since is None and host.looked_s < failed_s:
                        host.look()
                if host.down_since is not None:
                    raise HostDownError(host.why) from error
            raise

    def close(self) -> None:
        """Close the connections."""
        for host in self._hosts:
            host.connection.close()

    def _next(self) -> _Host:
        """Return the next host that is up. One caller at a time looks first whether hosts that are
        down are back. Raises HostDownError if none is up."""
        # While other hosts answer, one that hangs may cost little.
        every_s = LOOK_EVERY_S * (1 if self.down_since else 8)
        for host in self._hosts:
            if host.down_since is not None and host.looking.acquire(blocking=False):
                try:
                    if time.monotonic() - host.looked_s >= every_s:
                        host.look()
                finally:
                    host.looking.release()
        turn = next(self._turns)
        up = [host for host in self._hosts if host.down_since is None]
        if not up:
            raise HostDownError(self._hosts[turn % len(self._hosts)].why)
        return up[turn % len(up)]

"""The hosts of an address: asked in turn, each over connections of its own.

One that does not answer is set aside for a while. Then a single request tries it, and only if that
is answered do others follow.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

from arag_search.engines.opensearch.address import Address
from arag_search.engines.opensearch.connection import ConnectionOptions

POOL_SIZE = 64
"""Connections kept to each host; more threads than that at once share no connection."""

_ASIDE_S = 5.0
_LONGEST_ASIDE_S = 40.0
_QUIET = logging.NullHandler()


@dataclass(slots=True)
class Host:
    """One host. ``transport`` is the library's. It is aside until ``free_at``, a time of
    ``time.monotonic``, 0 while all is well; ``failures`` are those since the last answer."""

    transport: Any = field(repr=False)
    free_at: float = 0.0
    failures: int = 0


class Hosts:
    """All hosts of an address. Threads may share it; forks make their own."""

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.all = tuple(
            Host(_transport(host, address, options))
            for host in random.sample(address.hosts, len(address.hosts))
        )
        """In an order of chance, so that not all clients begin with the first."""
        self._lock = threading.Lock()
        self._turn = 0

    def next(self) -> Host:
        """The host whose turn it is: one that is well or was aside for long enough, else that
        which will be so first."""
        with self._lock:
            now = time.monotonic()
            turn = self.all[self._turn :] + self.all[: self._turn]
            host = next((each for each in turn if each.free_at <= now), None)
            host = host or min(turn, key=lambda each: each.free_at)
            self._turn = (self.all.index(host) + 1) % len(self.all)
            if host.free_at:
                host.free_at = now + _ASIDE_S  # others wait for what becomes of this request
            return host

    def answered(self, host: Host) -> None:
        """The host has answered, whatever."""
        if host.failures:
            with self._lock:
                host.failures, host.free_at = 0, 0.0

    def set_aside(self, host: Host) -> None:
        """The host did not answer, for longer each time."""
        with self._lock:
            aside_s = min(_ASIDE_S * 2**host.failures, _LONGEST_ASIDE_S)
            host.failures += 1
            host.free_at = time.monotonic() + aside_s

    def close(self) -> None:
        """Close the connections."""
        for host in self.all:
            host.transport.close()


def _transport(host: str, address: Address, options: ConnectionOptions) -> Any:
    """The library's transport to one host, with its own retries off."""
    from urllib.parse import urlsplit

    from opensearchpy.serializer import JSONSerializer
    from opensearchpy.transport import Transport

    from arag_search.engines.opensearch.http_connection import HttpConnection

    class Json(JSONSerializer):
        """As the library's, with a faster parser; bodies come as bytes."""

        def loads(self, s: str) -> Any:
            try:
                return orjson.loads(s)
            except orjson.JSONDecodeError:
                return super().loads(s)

        def dumps(self, data: Any) -> Any:
            return data if isinstance(data, bytes) else super().dumps(data)

    logger = logging.getLogger("opensearch")
    if _QUIET not in logger.handlers:
        logger.addHandler(_QUIET)  # else what we raise is on stderr too
    tls: dict[str, Any] = {}
    if address.is_encrypted:
        tls = {
            "use_ssl": True,
            "ca_certs": options.ca_certs,
            "client_cert": options.client_cert,
            "client_key": options.client_key,
        }
    parts = urlsplit(host)
    return Transport(
        [{"host": parts.hostname, "port": parts.port, "url_prefix": address.prefix}],
        connection_class=HttpConnection,
        serializer=Json(),
        http_auth=(options.username, options.password) if options.username else None,
        max_retries=0,
        retry_on_timeout=False,
        retry_on_status=(),
        pool_maxsize=POOL_SIZE,
        headers={"content-type": "application/json"},
        **tls,
    )

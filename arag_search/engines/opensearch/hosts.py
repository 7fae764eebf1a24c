"""The hosts of an address, used in turn, each with its own connections.

A host that does not answer is set aside for a while. Then a single request tries it; others follow
only if that is answered.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from arag_search.engines.opensearch.address import Address, ConnectionOptions

_POOL_SIZE = 64
"""Connections kept open to each host; further threads open one for each request."""

_ASIDE_S = 5.0
_LONGEST_ASIDE_S = 40.0
_QUIET = logging.NullHandler()


@dataclass(slots=True)
class Host:
    """A host. ``transport`` is the library's. The host is set aside until ``free_at``, a time of
    ``time.monotonic``, or 0 while it works; ``failures`` counts those since the last answer."""

    transport: Any = field(repr=False)
    free_at: float = 0.0
    failures: int = 0


class Hosts:
    """All hosts of an address. Threads may share it; forked processes create their own."""

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.all = tuple(
            Host(_transport(host, address, options))
            for host in random.sample(address.hosts, len(address.hosts))
        )
        """In random order, so that not all clients begin with the same host."""
        self._lock = threading.Lock()
        self._turn = 0

    def next(self) -> Host:
        """Return the next host that works or was set aside for long enough. If there is no
        such host, return the one whose time ends first."""
        with self._lock:
            now = time.monotonic()
            turn = self.all[self._turn :] + self.all[: self._turn]
            host = next((host for host in turn if host.free_at <= now), None)
            host = host or min(turn, key=lambda host: host.free_at)
            self._turn = (self.all.index(host) + 1) % len(self.all)
            if host.free_at:
                host.free_at = now + _ASIDE_S  # other requests wait for the outcome of this one
            return host

    def answered(self, host: Host) -> None:
        """Note that the host has answered, with whatever status."""
        if host.failures:
            with self._lock:
                host.failures, host.free_at = 0, 0.0

    def set_aside(self, host: Host) -> None:
        """Set aside a host that did not answer, for longer each time."""
        with self._lock:
            aside_s = min(_ASIDE_S * 2**host.failures, _LONGEST_ASIDE_S)
            host.failures += 1
            host.free_at = time.monotonic() + aside_s

    def close(self) -> None:
        """Close the connections."""
        for host in self.all:
            host.transport.close()


def _transport(host: str, address: Address, options: ConnectionOptions) -> Any:
    """Return the library's transport to a host, with the library's own retries off."""
    from opensearchpy.connection.http_urllib3 import Urllib3HttpConnection
    from opensearchpy.exceptions import HTTP_EXCEPTIONS, TransportError
    from opensearchpy.serializer import JSONSerializer
    from opensearchpy.transport import Transport

    class Http(Urllib3HttpConnection):
        """The library's connections, for refusals whose body has any shape."""

        def _raise_error(
            self, status_code: int, raw_data: str | bytes, content_type: str | None = None
        ) -> None:
            try:
                info = orjson.loads(raw_data)
            except orjson.JSONDecodeError:
                info = None
            raise HTTP_EXCEPTIONS.get(status_code, TransportError)(status_code, raw_data, info)

    class Json(JSONSerializer):
        """The library's serializer with a faster parser. Bodies are bytes already."""

        def loads(self, s: str) -> Any:
            try:
                return orjson.loads(s)
            except orjson.JSONDecodeError:
                return super().loads(s)

        def dumps(self, data: Any) -> Any:
            return data if isinstance(data, bytes) else super().dumps(data)

    for name in ("opensearch", "urllib3"):
        logger = logging.getLogger(name)
        if _QUIET not in logger.handlers:
            logger.addHandler(_QUIET)  # otherwise the libraries print on stderr what we raise
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
        connection_class=Http,
        serializer=Json(),
        http_auth=(options.username, options.password) if options.username else None,
        max_retries=0,
        retry_on_timeout=False,
        retry_on_status=(),
        pool_maxsize=_POOL_SIZE,
        headers={"content-type": "application/json"},
        **tls,
    )

"""The hosts of an address, used in turn, each with its own connections.

A host that does not answer is set aside for a while. Then a single request tries it; others follow
only if that is answered.
"""

from __future__ import annotations

import base64
import functools
import logging
import random
import ssl
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.parse import urlencode

import orjson
from opensearchpy.connection.base import Connection
from opensearchpy.exceptions import (
    HTTP_EXCEPTIONS,
    ConnectionError,
    ConnectionTimeout,
    SSLError,
    TransportError,
)

from arag_search.endpoints.host import HttpHost, UnreadableReplyError
from arag_search.endpoints.refusals import Secrets
from arag_search.engines.opensearch.address import Address, ConnectionOptions

POOL_SIZE = 64
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
    from urllib.parse import urlsplit

    from opensearchpy.serializer import JSONSerializer
    from opensearchpy.transport import Transport

    from arag_search.engines.opensearch.hosts import HttpConnection

    class Json(JSONSerializer):
        """The library's serializer with a faster parser. Bodies are bytes already."""

        def loads(self, s: str) -> Any:
            try:
                return orjson.loads(s)
            except orjson.JSONDecodeError:
                return super().loads(s)

        def dumps(self, data: Any) -> Any:
            return data if isinstance(data, bytes) else super().dumps(data)

    logger = logging.getLogger("opensearch")
    if _QUIET not in logger.handlers:
        logger.addHandler(_QUIET)  # otherwise the library prints on stderr what we raise
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


# HTTP to one host, with the standard library's client
#
# The usual connections of opensearch-py take more of a search's time than parsing and snippets,
# all of it under Python's global lock: with many threads a process does little else. This class
# replaces them, as opensearch-py allows, and raises the same exceptions. A timeout covers the
# whole answer.


MAX_ANSWER_BYTES = 256 << 20
"""A page of the largest passages fits; a larger answer is not one to a request of ours."""

_WITHOUT_PASSAGES = ("/", "/_bulk")
"""Requests whose answers appear in messages and contain nothing of the corpus. Passages are never
changed, even if they happen to contain a password."""


class HttpConnection(Connection):
    """Connections to one host, kept open and used by one thread at a time."""

    headers: dict[str, str]

    def __init__(
        self,
        host: str,
        *,
        http_auth: tuple[str, str] | None = None,
        ca_certs: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        pool_maxsize: int = 10,
        **others: Any,
    ) -> None:
        """Keep ``pool_maxsize`` connections; further threads open one for each request.

        The default of ``ca_certs`` is opensearch-py's: SSL_CERT_FILE or SSL_CERT_DIR, otherwise
        certifi's.
        """
        super().__init__(host=host, **others)
        if http_auth is not None:
            token = base64.b64encode(":".join(http_auth).encode()).decode()
            self.headers["authorization"] = f"Basic {token}"
        self._secrets = Secrets.of_login(*(http_auth or ("", "")))
        self._certificates = (ca_certs, client_cert, client_key)
        self._http = HttpHost(
            self.hostname,
            self.port,
            tls=self._context if self.use_ssl else None,
            max_reply_bytes=MAX_ANSWER_BYTES,
            max_idle=pool_maxsize,
        )

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any, str]:
        """Return status, headers and body of the answer. Raises the exceptions of opensearch-py,
        and UnreadableReplyError."""
        target = self.url_prefix + url
        if params:
            target = f"{target}?{_query_string(tuple(params.items()))}"
        sent: Mapping[str, str] = {**self.headers, **(headers or {})}
        begun = time.perf_counter()
        try:
            reply = self._http.exchange(
                method, target, body, sent, self.timeout if timeout is None else timeout
            )
        except (OSError, HTTPException) as error:
            seconds = time.perf_counter() - begun
            where = self.host + target
            self.log_request_fail(method, where, target, body, seconds, exception=error)
            raise _translated(error) from error
        seconds = time.perf_counter() - begun
        status, received = reply.status, reply.headers
        self._raise_warnings(received.get_all("warning", ()))
        try:
            text = reply.body.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise UnreadableReplyError("is not UTF-8") from None
        where = self.host + target
        is_refused = not 200 <= status < 300 and status not in ignore
        if is_refused or url.endswith(_WITHOUT_PASSAGES):
            text = self._secrets.hide(text)
        if is_refused:
            self.log_request_fail(method, where, target, body, seconds, status, text)
            self._raise_error(status, text, received.get("content-type"))
        self.log_request_success(method, where, target, body, status, text, seconds)
        return status, received, text

    def close(self) -> None:
        """Close the idle connections; others are closed when they are returned."""
        self._http.close()

    def _raise_error(
        self, status_code: int, raw_data: str | bytes, content_type: str | None = None
    ) -> NoReturn:
        """Raise as the library does, for bodies of any shape."""
        try:
            info = orjson.loads(raw_data)
        except orjson.JSONDecodeError:
            info = None
        raise HTTP_EXCEPTIONS.get(status_code, TransportError)(status_code, raw_data, info)

    def _context(self) -> ssl.SSLContext:
        ca_certs, client_cert, client_key = self._certificates
        context = ssl.create_default_context(cafile=ca_certs or self.default_ca_certs())
        if client_cert is not None:
            context.load_cert_chain(client_cert, client_key)
        return context


@functools.lru_cache(maxsize=256)
def _query_string(params: tuple[tuple[str, Any], ...]) -> str:
    """Encode parameters. Cached because a session sends the same with each search."""
    return urlencode(params)


def _translated(error: OSError | HTTPException) -> Exception:
    """Return the exception that opensearch-py has for an error."""
    if isinstance(error, TimeoutError):
        return ConnectionTimeout("TIMEOUT", str(error), error)
    if isinstance(error, ssl.SSLError):
        return SSLError("N/A", str(error), error)
    return ConnectionError("N/A", str(error) or type(error).__name__, error)

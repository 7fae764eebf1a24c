"""HTTP to one host, by the client of the standard library.

The usual connections of opensearch-py take more time of a search than parsing and snippets do, all
of it under Python's lock: with many threads they are what a process is busy with. This class takes
their place (opensearch-py lets any class do so) and keeps their exceptions and their meaning of a
time-out: the longest silence, on connecting and between two pieces of an answer.
"""

from __future__ import annotations

import base64
import functools
import ssl
import time
from collections import deque
from collections.abc import Collection, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
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
from urllib3.util.wait import wait_for_read


class HttpConnection(Connection):
    """Connections to one host, kept open and taken by one thread at a time."""

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
        """``pool_maxsize`` connections are kept; threads beyond that open one for each request.

        Without ``ca_certs`` the certificates count that opensearch-py takes: those of SSL_CERT_FILE
        or SSL_CERT_DIR, else certifi's.
        """
        super().__init__(host=host, **others)
        if http_auth is not None:
            token = base64.b64encode(":".join(http_auth).encode()).decode()
            self.headers["authorization"] = f"Basic {token}"
        self._certificates = (ca_certs, client_cert, client_key)
        self._tls: ssl.SSLContext | None = None
        self._most_idle = pool_maxsize
        self._idle: deque[HTTPConnection] = deque()  # its ends are safe to use from threads
        self._closed = False

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
        """Status, headers and body of the answer."""
        target = self.url_prefix + url
        if params:
            target = f"{target}?{_query_string(tuple(params.items()))}"
        sent: Mapping[str, str] = {**self.headers, **(headers or {})}
        begun = time.perf_counter()
        try:
            status, received, data = self._exchange(
                method, target, body, sent, self.timeout if timeout is None else timeout
            )
        except (OSError, HTTPException) as error:
            seconds = time.perf_counter() - begun
            where = self.host + target
            self.log_request_fail(method, where, target, body, seconds, exception=error)
            raise _translated(error) from error
        seconds = time.perf_counter() - begun
        self._raise_warnings(received.get_all("warning", ()))
        text = data.decode("utf-8", "surrogatepass")
        where = self.host + target
        if not 200 <= status < 300 and status not in ignore:
            self.log_request_fail(method, where, target, body, seconds, status, text)
            self._raise_error(status, text, received.get("content-type"))
        self.log_request_success(method, where, target, body, status, text, seconds)
        return status, received, text

    def close(self) -> None:
        """Close the connections that are idle; others are closed when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _raise_error(
        self, status_code: int, raw_data: str | bytes, content_type: str | None = None
    ) -> NoReturn:
        """As the library's, for a body of whatever shape."""
        try:
            info = orjson.loads(raw_data)
        except orjson.JSONDecodeError:
            info = None
        raise HTTP_EXCEPTIONS.get(status_code, TransportError)(status_code, raw_data, info)

    def _exchange(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> tuple[int, Any, bytes]:
        connection = self._taken(timeout_s)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            data = response.read()
        except BaseException:  # Ctrl-C too: half an answer may be left in it
            connection.close()
            raise
        if response.will_close or self._closed or len(self._idle) >= self._most_idle:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, response.headers, data

    def _taken(self, timeout_s: float) -> HTTPConnection:
        """The connection that was used last, if the server has not closed it; else a new one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            sock = connection.sock
            if sock is not None and not wait_for_read(sock, timeout=0):
                sock.settimeout(timeout_s)
                return connection
            connection.close()
        if not self.use_ssl:
            return HTTPConnection(self.hostname, self.port, timeout=timeout_s)
        if self._tls is None:
            self._tls = self._context()
        return HTTPSConnection(self.hostname, self.port, timeout=timeout_s, context=self._tls)

    def _context(self) -> ssl.SSLContext:
        ca_certs, client_cert, client_key = self._certificates
        context = ssl.create_default_context(cafile=ca_certs or self.default_ca_certs())
        if client_cert is not None:
            context.load_cert_chain(client_cert, client_key)
        return context


@functools.lru_cache(maxsize=256)
def _query_string(params: tuple[tuple[str, Any], ...]) -> str:
    """Kept, for a session sends the same parameters with each search."""
    return urlencode(params)


def _translated(error: OSError | HTTPException) -> Exception:
    """The exception that opensearch-py has for it."""
    if isinstance(error, TimeoutError):
        return ConnectionTimeout("TIMEOUT", str(error), error)
    if isinstance(error, ssl.SSLError):
        return SSLError("N/A", str(error), error)
    return ConnectionError("N/A", str(error) or type(error).__name__, error)

"""The HTTP client beneath openai's: bounds on time and size, for one origin only."""

from __future__ import annotations

import functools
import os
import ssl
import threading
import time
from typing import Any

import httpcore2
import httpx2

from arag_search.errors import ConfigError

CONNECT_TIMEOUT_S = 10.0
_FOLLOWED = frozenset({307, 308})  # other redirects turn a POST into a GET
_MAX_REDIRECTS = 5
_BODY_HEADERS = frozenset(
    {"content-encoding", "content-length", "content-type", "transfer-encoding"}
)
_LATIN = frozenset({"iso-8859-1", "latin-1", "latin1", "windows-1252", "cp1252"})
_WRITTEN_BYTES = 4096
"""What one write sends at most, so that a server that reads slowly does not prolong it."""


class UnreadableReplyError(Exception):
    """A reply that is too large or wrongly compressed; its text continues "The reply "."""


class _Exchange(threading.local):
    """The bounds of the request that a thread waits for: its end, and how many bytes it may still
    receive. Bytes are counted as they come, still compressed, with all that HTTP adds."""

    until = 0.0
    bytes_left = 0

    def left_s(self, error: type[Exception], most_s: float | None = None) -> float:
        """Return the seconds that are left, at most ``most_s``. Raises ``error`` if none are."""
        left_s = self.until - time.monotonic()
        if left_s <= 0:
            raise error("timed out")
        return left_s if most_s is None else min(left_s, most_s)


class _BoundedStream(httpcore2.NetworkStream):
    """A connection, each of whose calls ends with the exchange. A server that sends something now
    and then would else be waited for again each time."""

    def __init__(self, stream: httpcore2.NetworkStream, exchange: _Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, self._exchange.left_s(httpcore2.ReadTimeout))
        self._exchange.bytes_left -= len(data)
        if self._exchange.bytes_left < 0:
            raise UnreadableReplyError("never ends")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_BYTES):
            piece = buffer[start : start + _WRITTEN_BYTES]
            self._stream.write(piece, self._exchange.left_s(httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left_s = self._exchange.left_s(httpcore2.ConnectTimeout, timeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left_s)
        return _BoundedStream(stream, self._exchange)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _BoundedBackend(httpcore2.SyncBackend):
    """The maker of bounded connections."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *options: Any, **named: Any
    ) -> httpcore2.NetworkStream:
        left_s = self._exchange.left_s(httpcore2.ConnectTimeout, timeout)
        stream = super().connect_tcp(host, port, left_s, *options, **named)
        return _BoundedStream(stream, self._exchange)


@functools.lru_cache(maxsize=8)
def _tls_context(*variables: str | None) -> ssl.SSLContext:
    """Return what clients share under these variables of the environment: reading the authorities
    takes longer than a request to a server nearby."""
    return httpx2.create_ssl_context()


class BoundedClient(httpx2.Client):
    """A client that reads whole replies of at most ``max_reply_bytes``, also after decompression.

    An exchange, with its redirects, ends ``timeout_s`` after it began, whatever the server sends.
    Only names that take long to resolve can prolong it. Redirects are followed within one scheme,
    host and port, others are returned, because questions and passages may not go anywhere else.
    Raises ConfigError for a proxy of the environment that is not an HTTP proxy; from ``send`` also
    UnreadableReplyError.
    """

    def __init__(self, *, timeout_s: float, max_reply_bytes: int) -> None:
        connect_s = min(timeout_s, CONNECT_TIMEOUT_S)
        variables = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        try:
            super().__init__(
                verify=_tls_context(*variables),
                timeout=httpx2.Timeout(timeout_s, connect=connect_s),
            )
        except (ValueError, ImportError, httpx2.InvalidURL):
            raise ConfigError(
                "A proxy that the environment names cannot be used.",
                allowed="http://HOST:PORT",
                do="Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or unset it.",
            ) from None
        except OSError as error:
            raise ConfigError(
                f"The certificates that the environment names cannot be read ({error.strerror}).",
                allowed="a file of certificates in SSL_CERT_FILE, or their folder in SSL_CERT_DIR",
                do="Correct the variable, or unset it.",
            ) from None
        self._timeout_s = timeout_s
        self._max_reply_bytes = max_reply_bytes
        self._exchange = _Exchange()
        transports: list[Any] = [self._transport, *self._mounts.values()]
        for transport in filter(None, transports):  # None: no proxy for some host
            transport._pool._network_backend = _BoundedBackend(self._exchange)

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        options["stream"] = True
        self._exchange.until = time.monotonic() + self._timeout_s
        self._exchange.bytes_left = 2 * self._max_reply_bytes
        for _ in range(_MAX_REDIRECTS):
            response = super().send(request, **options)
            try:
                body = self._body(response)
            finally:
                response.close()
            following = response.next_request if response.status_code in _FOLLOWED else None
            if following is None or _origin(following) != _origin(request):
                headers = [
                    (name, value)
                    for name, value in response.headers.multi_items()
                    if name not in _BODY_HEADERS
                ]
                text = _in_utf8(body, response)
                return httpx2.Response(
                    response.status_code, headers=headers, content=text, request=request
                )
            request = following
        raise httpx2.TooManyRedirects(f"redirected {_MAX_REDIRECTS} times", request=request)

    def _body(self, response: httpx2.Response) -> bytes:
        too_large = UnreadableReplyError(f"is larger than {self._max_reply_bytes / 1e6:,.0f} MB")
        if int(response.headers.get("content-length", "0")) > self._max_reply_bytes:
            raise too_large
        if "," in response.headers.get("content-encoding", ""):  # its work has no bound
            raise UnreadableReplyError("is compressed more than once")
        body = bytearray()
        try:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > self._max_reply_bytes:
                    raise too_large
        except httpx2.DecodingError as error:
            raise UnreadableReplyError(f"cannot be decompressed ({error})") from None
        return bytes(body)


def _in_utf8(body: bytes, response: httpx2.Response) -> bytes:
    """Return a body in UTF-8, in which JSON is written whatever the headers say. Python has
    encodings that cannot be read as text, or take for ever, and a server may name any of them."""
    try:
        body.decode()
    except UnicodeDecodeError:
        if response.charset_encoding in _LATIN:
            return body.decode("cp1252", "replace").encode()
        if response.is_success:
            raise UnreadableReplyError("is not in UTF-8") from None
    return body


def _origin(request: httpx2.Request) -> tuple[str, str, int | None]:
    return request.url.scheme, request.url.host, request.url.port

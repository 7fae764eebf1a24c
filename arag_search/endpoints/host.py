"""HTTP to one host, with the standard library's client and bounds that the host cannot exceed.

A time limit covers a whole exchange: connecting, TLS, sending, and every byte of the reply; only
the resolution of host names is exempt. The size of a reply is limited, also after decompression.
Redirects are returned as replies.
"""

from __future__ import annotations

import io
import select
import socket
import ssl
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import Any

_PIECE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The status, headers and decompressed body of a reply."""

    status: int
    headers: HTTPMessage
    body: bytes


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy in front of the host; ``authorization`` is empty if it requires none."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that are sent to the proxy alone."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


class UnreadableReplyError(Exception):
    """A reply that is too large or wrongly compressed; its text continues "The reply "."""


class HttpHost:
    """Connections to one host, kept open and used by one thread at a time.

    ``tls`` creates the context of TLS connections; None is plain HTTP. ``max_idle`` connections
    are kept open; further threads open one for each exchange. ``connect_timeout_s`` limits the
    part of an exchange's time that is spent on connecting.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: Callable[[], ssl.SSLContext] | None,
        max_reply_bytes: int,
        max_idle: int = 10,
        connect_timeout_s: float | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self._host, self._port = host, port
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._max_reply_bytes = max_reply_bytes
        self._max_idle = max_idle
        self._connect_timeout_s = connect_timeout_s
        self._proxy = proxy
        self._idle: deque[_Connection] = deque()  # appending and popping are thread-safe
        self._closed = False

    def exchange(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> HttpReply:
        """Send a request and return the whole reply, whatever its status.

        Raises TimeoutError if that takes longer than ``timeout_s``, UnreadableReplyError, and
        OSError or HTTPException for a connection that failed.
        """
        if self._proxy is not None and self._tls is None:
            target = f"http://{_bracketed(self._host)}:{self._port}{target}"
            headers = {**headers, **self._proxy.headers}
        connection = self._connection()
        connection.deadline = time.monotonic() + timeout_s
        try:
            connection.request(method, target, body, headers)  # pyright: ignore[reportArgumentType]
            with connection.getresponse() as response:
                data = _body(response, self._max_reply_bytes)
        except BaseException:  # also Ctrl-C: half a reply may be left in the connection
            connection.close()
            raise
        if response.will_close or self._closed or len(self._idle) >= self._max_idle:
            connection.close()
        else:
            self._idle.append(connection)
        return HttpReply(response.status, response.headers, data)

    def close(self) -> None:
        """Close the idle connections; others are closed when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def _connection(self) -> _Connection:
        """Return the most recently used connection that the host has not closed, or a new one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if connection.sock is not None and not _has_input(connection.sock):
                return connection
            connection.close()
        proxy = self._proxy
        host, port = (proxy.host, proxy.port) if proxy else (self._host, self._port)
        if self._tls is None:
            connection = _Connection(host, port)
        else:
            if self._context is None:
                self._context = self._tls()
            connection = _TlsConnection(host, port, context=self._context)
            if proxy is not None:
                connection.set_tunnel(self._host, self._port, proxy.headers)
        connection.connect_timeout_s = self._connect_timeout_s
        return connection


class _Connection(HTTPConnection):
    """A connection that times out at ``deadline``, a time of ``time.monotonic``."""

    deadline: float
    connect_timeout_s: float | None

    def __init__(self, host: str, port: int, **options: Any) -> None:
        super().__init__(host, port, **options)
        self._create_connection = self._reach  # what http.client calls

    def response_class(self, sock: socket.socket, **options: Any) -> HTTPResponse:  # pyright: ignore
        reads: Any = _TimedReads(sock, self.deadline)
        return HTTPResponse(reads, **options)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        sock: Any = self.sock
        unsent = memoryview(data)
        while unsent:
            sock.settimeout(_remaining_s(self.deadline))
            unsent = unsent[sock.send(unsent) :]

    def _reach(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Connect to the first of the host's addresses that answers. Each gets an equal share of
        the remaining time."""
        until = self.deadline
        if self.connect_timeout_s is not None:
            until = min(until, time.monotonic() + self.connect_timeout_s)
        places = socket.getaddrinfo(*address, 0, socket.SOCK_STREAM)
        problem: OSError = OSError("getaddrinfo returns an empty list")
        for left, (family, kind, protocol, _name, place) in zip(
            range(len(places), 0, -1), places, strict=True
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_remaining_s(until) / left)
                sock.connect(place)
                sock.settimeout(_remaining_s(self.deadline))
                return sock
            except OSError as error:
                sock.close()
                problem = error
        raise problem


class _TlsConnection(_Connection, HTTPSConnection):  # pyright: ignore
    """A connection with a deadline, over TLS."""


class _TimedReads(io.RawIOBase):
    """A stream of what a socket receives, which times out at a deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._received = sock.makefile("rb", buffering=0)  # keeps the socket open for us

    def makefile(self, mode: str) -> io.BufferedReader:
        """Take the place of the socket when http.client opens it as a file."""
        del mode
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_remaining_s(self._deadline))
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


def _has_input(sock: socket.socket) -> bool:
    """Return whether the other side has sent something, or closed the connection."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _remaining_s(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def _body(response: HTTPResponse, max_bytes: int) -> bytes:
    """Return the body of a reply, decompressed."""
    if response.length is not None:
        if response.length > max_bytes:
            raise _too_large(max_bytes)
        body = response.read()
    else:
        pieces: list[bytes] = []
        size = 0
        while piece := response.read(_PIECE_BYTES):
            size += len(piece)
            if size > max_bytes:
                raise _too_large(max_bytes)
            pieces.append(piece)
        body = b"".join(pieces)
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    return body if encoding in ("identity", "") else _decompressed(body, encoding, max_bytes)


def _decompressed(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decompress a body. We never ask for compression, but accept the usual kinds."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise UnreadableReplyError(
            f"is compressed in a way that was not requested ({encoding[:40]!r})"
        )
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, detected by its header
    try:
        text = decoder.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise UnreadableReplyError(f"cannot be decompressed ({error})") from None
    if len(text) > max_bytes:
        raise _too_large(max_bytes)
    if body and not decoder.eof:
        raise UnreadableReplyError("cannot be decompressed (it is cut off)")
    return text


def _too_large(max_bytes: int) -> UnreadableReplyError:
    return UnreadableReplyError(f"is larger than {max_bytes / 1e6:,.0f} MB")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

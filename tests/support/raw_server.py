"""A server on loopback that answers with raw bytes, as slowly as a test tells it to."""

import socket
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


class RawServer:
    """The answer to every connection, piece by piece with pauses between them, the requests so far,
    and the number of bytes sent."""

    def __init__(self, listener: socket.socket) -> None:
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.pieces: Iterable[bytes] = ()
        self.pause_s = 0.0
        self.requests: list[bytes] = []
        self.sent = 0
        self.closing = threading.Event()

    def reply_with(self, pieces: Iterable[bytes], pause_s: float = 0.0) -> None:
        """Forget earlier requests, and answer with these pieces from now on."""
        self.pieces, self.pause_s = pieces, pause_s
        self.requests, self.sent = [], 0

    def answer(self, connection: socket.socket) -> None:
        """Read a request, and answer until the other side hangs up."""
        with connection, suppress(OSError):
            self.requests.append(_request(connection))
            for piece in self.pieces:
                connection.sendall(piece)
                self.sent += len(piece)
                if self.pause_s and self.closing.wait(self.pause_s):
                    return


def byte_by_byte(reply: bytes) -> list[bytes]:
    """Split a reply into single bytes."""
    return [reply[at : at + 1] for at in range(len(reply))]


def reply(body: bytes, *headers: str) -> bytes:
    """Return a reply of status 200 with this body."""
    lines = [f"Content-Length: {len(body)}", *headers]
    return HEAD + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _received(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < length:
        body += _received(connection)
    return head + b"\r\n\r\n" + body


def _received(connection: socket.socket) -> bytes:
    """Return what has arrived. Raises ConnectionError if the other side has hung up."""
    if not (data := connection.recv(65_536)):
        raise ConnectionError("the request is not whole")
    return data


@contextmanager
def raw_server() -> Generator[RawServer]:
    """Run a server in threads, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)
        server = RawServer(listener)
        threads: list[threading.Thread] = []

        def accept() -> None:
            while not server.closing.is_set():
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connection.settimeout(5)
                    thread = threading.Thread(target=server.answer, args=(connection,))
                    thread.start()
                    threads.append(thread)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server
        finally:
            server.closing.set()
            accepting.join()
            for thread in threads:
                thread.join()

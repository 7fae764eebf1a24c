"""A proxy before a local OpenSearch node, which counts the requests that pass it."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_LOOPBACK = "127.0.0.1"


class Exchange(NamedTuple):
    """A request with its answer: the request, bytes both ways, when it came and was answered."""

    asked: str
    sent: int
    received: int
    begun_s: float
    ended_s: float


class Proxy:
    """What passed the proxy so far. ``before`` is called with a request, such as "GET /a", and its
    body, before it is passed on, and may hold it back. ``delay_s`` holds back all answers."""

    def __init__(self, url: str, delay_s: float) -> None:
        self.url, self.delay_s = url, delay_s
        self.exchanges: list[Exchange] = []
        self.before: Callable[[str, bytes], None] = lambda _, __: None

    def take(self) -> list[Exchange]:
        """Return what has passed since the last call."""
        taken, self.exchanges = self.exchanges, []
        return taken


def steps(exchanges: Sequence[Exchange]) -> int:
    """Return how many of the exchanges took place one after another. They are the longest chain in
    which each came after the answer before it."""
    count, ended_s = 0, 0.0
    for exchange in sorted(exchanges, key=lambda exchange: exchange.ended_s):
        if exchange.begun_s >= ended_s:
            count, ended_s = count + 1, exchange.ended_s
    return count


@contextlib.contextmanager
def counting(host: str, delay_s: float = 0.0) -> Generator[Proxy]:
    """Run a proxy before ``host``, "127.0.0.1:9200" for example, in threads and on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.node = http.client.HTTPConnection(host)

        def finish(self) -> None:
            self.node.close()
            super().finish()

        def pass_on(self) -> None:
            begun_s, asked = time.monotonic(), f"{self.command} {self.path.partition('?')[0]}"
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            proxy.before(asked, body)
            kind = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
            self.node.request(self.command, self.path, body or None, kind)
            answer = self.node.getresponse()
            content = answer.read()
            time.sleep(proxy.delay_s)
            sizes = len(body), len(content)
            proxy.exchanges.append(Exchange(asked, *sizes, begun_s, time.monotonic()))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type") or "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = pass_on

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False  # a client may keep its connections open
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Print nothing of a node that is gone: the client sees that its connection broke."""

    with Server((_LOOPBACK, 0), Handler) as server:
        proxy = Proxy(f"http://{_LOOPBACK}:{server.server_address[1]}", delay_s)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()

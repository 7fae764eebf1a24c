"""A server on loopback that answers as OpenSearch does on a bad day."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch import client

WHOLE: Mapping[str, Any] = {
    "took": 1,
    "timed_out": False,
    "_shards": {"total": 3, "successful": 3, "skipped": 0, "failed": 0},
    "hits": {"total": {"value": 0, "relation": "eq"}, "hits": []},
}
"""The answer of a search without hits."""


@dataclass(frozen=True)
class Answer:
    """The answer to one request; ``silent`` holds the answer back until the server is closed,
    ``broken`` ends the connection at once."""

    body: Any = None
    status: int = 200
    silent: bool = False
    broken: bool = False
    location: str = ""
    """The target of a redirect."""


def version(number: str = "3.9.0", distribution: str | None = "opensearch") -> Answer:
    """Return the answer in which a server states its version."""
    content = {"number": number, **({"distribution": distribution} if distribution else {})}
    return Answer({"version": content})


def refusal(status: int, kind: str, reason: str, **more: Any) -> Answer:
    """Return an error as OpenSearch writes it."""
    cause = {"type": kind, "reason": reason}
    return Answer({"error": {"root_cause": [cause], **cause, **more}, "status": status}, status)


def failed_phase(kind: str, reason: str, status: int = 500) -> Answer:
    """Return the error of a search that failed on its shards for this reason."""
    cause = {"type": kind, "reason": reason}
    error = {
        "root_cause": [],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "phase": "query",
        "failed_shards": [{"shard": 0, "index": "i", "reason": {**cause}}],
    }
    return Answer({"error": error, "status": status}, status)


class UnrulyServer:
    """The answers to give, in order (the last answer again and again) or by a rule from path and
    body, and the requests so far. Requests for the version may have an ``at_root`` of their own,
    which do not count: a client asks so whether the server is there."""

    def __init__(self, port: int, scheme: str) -> None:
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.answers: list[Answer] = []
        self.rule: Callable[[str, bytes], Answer] | None = None
        self.at_root: Answer | None = None
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def reply_with(self, *answers: Answer) -> None:
        """Forget earlier requests, and give these answers from now on."""
        with self._lock:
            self.answers, self.requests = list(answers), []

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if self.at_root is not None and path == "/":
            return self.at_root
        with self._lock:
            self.requests.append((method, path, headers, body))
            if self.rule is not None:
                return self.rule(path, body)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def unruly(
    certificate: Path | None = None, key: Path | None = None, clients: Path | None = None
) -> Iterator[UnrulyServer]:
    """Run a server in a thread, on a free port. With a certificate it speaks TLS, and with the
    certificate of its ``clients`` it rejects all others."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server.answer(self.command, self.path, dict(self.headers), body)
            if answer.silent:
                server.closing.wait()
                self.close_connection = True
                return
            if answer.broken:
                self.connection.close()
                self.close_connection = True
                return
            text = isinstance(answer.body, str)
            sent = (answer.body if text else json.dumps(answer.body)).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "text/html" if text else "application/json")
            self.send_header("Content-Length", str(len(sent)))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def process_request(self, request: Any, client_address: Any) -> None:
            server.connections += 1
            super().process_request(request, client_address)

        def handle_error(self, *_: Any) -> None:
            """Ignore clients that hang up, because tests make them do so."""

    client.KNOWN_SERVERS.clear()  # among them may be one that had the same port
    http = Quiet(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        http.socket = context.wrap_socket(http.socket, server_side=True)
    server = UnrulyServer(http.server_address[1], "http" if certificate is None else "https")
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()

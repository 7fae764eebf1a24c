"""An endpoint on loopback that answers as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The answer to one request. ``cut`` ends the connection in the middle of the body; ``silent``
    holds the answer back until the endpoint is closed."""

    status: int = 200
    body: object = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    silent: bool = False


def completion(
    content: object = None, *calls: tuple[str, object], usage: object = "absent", **message: object
) -> Answer:
    """Return a reply with tool calls, each a name and its arguments."""
    message = {"role": "assistant", "content": content, **message}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"id{place}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for place, (name, arguments) in enumerate(calls, start=1)
        ]
    body: dict[str, object] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    if usage != "absent":
        body["usage"] = usage
    return Answer(body=body)


def embeddings(*vectors: object, order: Sequence[int] | None = None, **fields: object) -> Answer:
    """Return a reply with vectors, listed in ``order`` if it is given."""
    places = range(len(vectors)) if order is None else order
    data = [{"object": "embedding", "index": n, "embedding": vectors[n]} for n in places]
    return Answer(body={"object": "list", "data": data, "model": "m", **fields})


def refusal(
    status: int, message: str, *, headers: Mapping[str, str] | None = None, **error: object
) -> Answer:
    """Return an error as OpenAI writes it."""
    return Answer(status, {"error": {"message": message, **error}}, headers or {})


class Endpoint:
    """The answers to give, in order (the last answer again and again) or by the request, and the
    requests so far."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        self.answers: list[Answer] = []
        self.script: Callable[[dict[str, Any]], Answer] | None = None
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self.peers: list[tuple[str, int]] = []
        """The connections of the requests so far, by the client's end."""
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def reply_with(self, *answers: Answer) -> None:
        """Forget earlier requests, and give these answers from now on."""
        self.answers, self.script = list(answers), None
        self.requests, self.paths, self.keys, self.peers = [], [], [], []

    def reply_by(self, script: Callable[[dict[str, Any]], Answer]) -> None:
        """Forget earlier requests, and answer each from now on as the script does."""
        self.reply_with()
        self.script = script

    def answer(self, path: str, key: str, body: bytes) -> Answer:
        with self._lock:
            self.paths.append(path)
            self.keys.append(key)
            request = json.loads(body)
            self.requests.append(request)
            if self.script is not None:
                return self.script(request)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def running_endpoint() -> Iterator[Endpoint]:
    """Run an endpoint in a thread, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.peers.append(self.client_address)
            answer = endpoint.answer(self.path, self.headers.get("Authorization", ""), body)
            if answer.silent:
                endpoint.closing.wait()
                self.close_connection = True
                return
            is_text = isinstance(answer.body, str)
            content = answer.body if is_text else json.dumps(answer.body)
            assert isinstance(content, str)
            sent = content.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "text/html" if is_text else "application/json")
            self.send_header("Content-Length", str(len(sent)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent[: len(sent) // 2] if answer.cut else sent)
            self.close_connection = answer.cut

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing to stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(server)
        thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.closing.set()
            server.shutdown()
            thread.join()

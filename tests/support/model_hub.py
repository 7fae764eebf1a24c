"""A hub on loopback with one model, which huggingface_hub can download from."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


class Hub:
    """The files of a hub, and the names of those that were fetched. ``error`` is a status and an
    error code for all requests."""

    def __init__(self, url: str, name: str, files: Mapping[str, bytes]) -> None:
        self.url, self.name, self.files = url, name, dict(files)
        self.fetched: list[str] = []
        self.requests = 0
        self.error: tuple[int, str] | None = None

    def answer(self, method: str, path: str) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, headers and body of the answer to a request."""
        self.requests += 1
        path = path.partition("?")[0]
        if self.error:
            return self.error[0], {"X-Error-Code": self.error[1]}, b"{}"
        if path.startswith(f"/api/models/{self.name}/tree/"):
            tree = [
                {"type": "file", "path": name, "size": len(body), "oid": _etag(body)}
                for name, body in self.files.items()
            ]
            return 200, {}, json.dumps(tree).encode()
        if path.startswith(f"/api/models/{self.name}"):
            siblings = [{"rfilename": name} for name in self.files]
            info = {"id": self.name, "sha": COMMIT, "siblings": siblings}
            return 200, {}, json.dumps(info).encode()
        name = path.removeprefix(f"/{self.name}/resolve/").partition("/")[2]
        if name not in self.files:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if method == "GET":
            self.fetched.append(name)
        body = self.files[name]
        return 200, {"ETag": f'"{_etag(body)}"', "X-Repo-Commit": COMMIT}, body


def _etag(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()


@contextmanager
def running_hub(name: str, files: Mapping[str, bytes]) -> Iterator[Hub]:
    """Run a hub in a thread, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = hub.answer(self.command, self.path)
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing to stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub = Hub(f"http://127.0.0.1:{server.server_address[1]}", name, files)
        thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()

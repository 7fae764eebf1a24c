"""What clients see beside slow ones, while the node is down, and as the server ends.

    python -m bench crowd
    python -m bench crowd --passages 20000 --only outages

A node of our own has generated passages, and arag-search mcp serves them over HTTP. Between both, a
proxy delays the requests of slow clients by 3 s. Each client has a session. First one client
searches alone, then beside one and two clients with 16 slow calls each. Then 16 clients search
while the node is killed, and while it hangs. Last, the server is ended while 16 clients search.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import BenchError, nodes
from bench.arguments import BenchParser, names_from, positive
from bench.processes import quiet_environment, run
from bench.proxy import counting
from bench.report.rounds import percentile
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.scale import synthetic
from bench.scale.queries import drawn_queries
from bench.workbench import command_line, say

SHARES, OUTAGES, END = PARTS = ("shares", "outages", "end")
PASSAGES = 200_000
CLIENTS = 16
CALLS = 100
LONGEST_S = 60.0
"""The searches of the client that is measured beside slow ones, and their time at most."""
SLOW = "0sluggish0"
"""A word in the queries of slow clients, by which the proxy knows them."""
DELAY_S = 3.0
DOWN_S = 15.0
"""How long the node is down, or hangs."""
AIM = Target("at most", 3.0)
_HONEST = re.compile(r"does not answer|not available", re.IGNORECASE)
_POLL_S = 0.05
_LIMIT_S = 150.0
_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed aim is not a failure."""
    parser = BenchParser("crowd", __doc__)
    what = f"some of {','.join(PARTS)} (default all)"
    parser.add_argument("--only", type=names_from(PARTS), default=PARTS, help=what)
    parser.add_default("--passages", positive, PASSAGES, "generated passages")
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    measures = {SHARES: shares, OUTAGES: outages, END: end}
    with ExitStack() as stack:
        name = tempfile.TemporaryDirectory(prefix="arag-crowd-", dir=options.work)
        folder = Path(stack.enter_context(name))
        corpus = folder / "corpus.jsonl"
        synthetic.write(options.passages, corpus)
        (node,) = stack.enter_context(nodes.running(folder / "node", heap="1g"))
        say(f"building an index of {options.passages:,} passages")
        build = ("index", corpus, "--to", f"http://{node.host}/crowd", "--format", "documents")
        run((*command_line(), *build))
        sample = [passage.chunk() for passage in synthetic.sample(options.passages, 2_000)]
        drawn = drawn_queries(sample, 200, seed=1750)
        queries = [*drawn["AND"], *drawn["OR"], *drawn["phrase"]]
        for part in options.only:
            say(part)
            with served(node, folder) as server:
                rows = tuple(measures[part](server, node, queries))
            show(options.json, [Figure(part, rows)], circumstances(command, seed=synthetic.SEED))
    return 0


# What is measured


def shares(server: Server, _: nodes.Node, queries: Sequence[str]) -> Iterator[Row]:
    """Yield the latencies of a client alone, and beside one and two slow clients."""
    alone: dict[str, float] = {}
    texts = itertools.cycle(queries)
    for slow in (0, 1, 2):
        with ExitStack() as stack:
            for _number in range(slow):
                stack.enter_context(_slow_client(server, queries))
            if slow:
                time.sleep(2 * DELAY_S)  # until all their calls run or wait
            spent = list[float]()
            with Client(server) as client:
                while len(spent) < CALLS and sum(spent) < LONGEST_S:
                    spent.append(client.search(next(texts)).seconds)
        figures = {"p50": statistics.median(spent), "p95": percentile(spent, 0.95)}
        for name, value in figures.items():
            if slow:
                what = f"{name} beside {slow} slow client{'s' * (slow > 1)} of 16 calls, over alone"
                yield Row(what, value / alone[name], "x", target=AIM)
            else:
                alone[name] = value
                yield Row(f"{name} alone", value * 1000, "ms")


@contextmanager
def _slow_client(server: Server, queries: Sequence[str]) -> Generator[None]:
    """Keep 16 calls running or waiting in one session: fuzzy words and loose phrases."""
    is_over = threading.Event()
    words = [word for text in queries for word in re.findall(r"[a-z]{5,}", text)]
    fuzzy = " OR ".join(f"{word}~2" for word in words[:8])
    loose = " OR ".join(
        f'"{first} {second}"~20' for first, second in itertools.pairwise(words[:40])
    )

    def play(text: str) -> None:
        with Client(server, session) as client:
            while not is_over.is_set():
                client.search(text)

    with Client(server) as first, ThreadPoolExecutor(CLIENTS) as pool:
        session = first.session
        for number in range(CLIENTS):
            pool.submit(play, f"{SLOW} OR {loose if number % 2 else fuzzy}")
        try:
            yield
        finally:
            is_over.set()


def outages(server: Server, node: nodes.Node, queries: Sequence[str]) -> Iterator[Row]:
    """Yield what 16 clients and probes are told while the node is killed, and while it hangs."""

    def revive() -> None:
        nodes.up(node.folder.parent, owned=True)

    kinds: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "killed": (lambda: node.signal(signal.SIGKILL), revive),
        "hung": (lambda: node.signal(signal.SIGSTOP), lambda: node.signal(signal.SIGCONT)),
    }
    for kind, (fail, mend) in kinds.items():
        with _searching(server, queries) as replies:
            time.sleep(3)
            probes = _Probes(server)
            began = time.perf_counter()
            fail()
            with probes:
                time.sleep(DOWN_S)
            mend()
            mended = time.perf_counter()
            _wait(lambda replies=replies, mended=mended: any(
                of.is_good and of.began > mended for of in list(replies)
            ))  # fmt: skip
        down = [of for of in replies if began < of.ended and of.began < mended]
        failed = [of for of in down if not of.is_good]
        honest = [of for of in failed if _HONEST.search(of.text)]
        good = min(of.ended for of in replies if of.is_good and of.began > mended)
        yield Row(f"{kind}: replies that failed", len(failed), "")
        yield Row(f"{kind}: of these, replies that name the outage", len(honest), "")
        if honest:
            first = min(of.ended for of in honest)
            yield Row(f"{kind}: first reply that names it, after", first - began, "s")
        yield Row(f"{kind}: slowest reply", max(of.seconds for of in down), "s")
        yield Row(f"{kind}: slowest list of tools", max(probes.lists), "s")
        if probes.red_s is not None:
            yield Row(f"{kind}: /ready is red after", probes.red_s, "s")
        yield Row(f"{kind}: /health was not ok", probes.sick, "times")
        yield Row(f"{kind}: first good reply after the node is back", good - mended, "s")
        for text, count in Counter(_shape(of.text) for of in failed).most_common(5):
            say(f"  {count} x {text}")


def end(server: Server, _: nodes.Node, queries: Sequence[str]) -> Iterator[Row]:
    """Yield what becomes of the calls of 16 clients when the server gets SIGTERM."""
    with _searching(server, queries, stops_at_error=True) as replies:
        time.sleep(3)
        signalled = time.perf_counter()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(_LIMIT_S)
        ended = time.perf_counter()
    running = [of for of in replies if of.began < signalled < of.ended]
    yield Row("calls that ran at SIGTERM", len(running), "")
    yield Row(
        "of these, lost", sum(not of.is_good for of in running), "", target=Target("at most", 0)
    )
    later = [of for of in replies if of.began > signalled]
    yield Row(
        "later calls that were refused by status 503", sum(of.status == 503 for of in later), ""
    )
    yield Row("the server ended after", ended - signalled, "s", target=Target("at most", 15))
    yield Row("its exit code", code, "")


@contextmanager
def _searching(
    server: Server, queries: Sequence[str], *, stops_at_error: bool = False
) -> Generator[list[Reply]]:
    """Let 16 clients search for the time of the block, and yield the list of their replies."""
    replies: list[Reply] = []
    is_over = threading.Event()

    def play(number: int) -> None:
        with Client(server) as client:
            for at in itertools.count(number):
                reply = client.search(queries[at % len(queries)])
                replies.append(reply)
                if is_over.is_set() or (stops_at_error and not reply.is_good):
                    return
                if not reply.is_good:
                    time.sleep(_POLL_S)

    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(CLIENTS):
            pool.submit(play, 7 * number)
        try:
            yield replies
        finally:
            is_over.set()


class _Probes:
    """Asks /health, /ready and for the list of tools while it is entered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_over = threading.Event()
        self.lists: list[float] = []
        self.red_s: float | None = None
        self.sick = 0

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._threads = ThreadPoolExecutor(2)
        self._threads.submit(self._look)
        self._threads.submit(self._list)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.shutdown()

    def _look(self) -> None:
        while not self._is_over.wait(_POLL_S):
            self.sick += self._server.status("/health") != 200
            if self.red_s is None and self._server.status("/ready") != 200:
                self.red_s = time.perf_counter() - self._began

    def _list(self) -> None:
        with Client(self._server) as client:
            while not self._is_over.wait(_POLL_S):
                self.lists.append(client.request("tools/list", {}).seconds)


def _shape(text: str) -> str:
    return " ".join(re.sub(r"\d+", "N", text).split())[:200]


def _wait(condition: Callable[[], bool]) -> None:
    last = time.monotonic() + _LIMIT_S
    while not condition():
        if time.monotonic() > last:
            raise BenchError(f"No good reply came within {_LIMIT_S:g} s.")
        time.sleep(_POLL_S)


# The server and its clients


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a client: the ``text`` of a tool or an error. ``status`` is 0 if the connection
    broke."""

    began: float
    ended: float
    status: int
    text: str
    is_good: bool

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, by its process."""

    process: subprocess.Popen[bytes]
    host: str

    def status(self, path: str) -> int:
        """Return the status of a GET; 0 if there is no answer within 5 s."""
        try:
            with urllib.request.urlopen(f"http://{self.host}{path}", timeout=5) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@contextmanager
def served(node: nodes.Node, folder: Path) -> Generator[Server]:
    """Serve the index of a node through a proxy."""
    log = folder / "server.log"
    with counting(node.host) as proxy, log.open("wb") as printed:
        proxy.before = lambda _, body: time.sleep(DELAY_S if SLOW.encode() in body else 0)
        location = f"{proxy.url}/crowd"
        command = ("mcp", location, "--transport", "http", "--port", "0")
        process = subprocess.Popen(
            (*command_line(), *command), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            env=quiet_environment(),
        )  # fmt: skip
        try:
            last = time.monotonic() + _LIMIT_S
            while not (url := re.search(rb"http://(\S+)/mcp", log.read_bytes())):
                if process.poll() is not None or time.monotonic() > last:
                    raise BenchError("The server did not start.", where=log.read_text()[-500:])
                time.sleep(_POLL_S)
            yield Server(process, url[1].decode())
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            say("\n".join(f"  log: {line[:200]}" for line in log.read_text().splitlines()[-3:]))


class Client:
    """A client with one connection; a session of its own, or a shared one."""

    def __init__(self, server: Server, session: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(server.host, timeout=_LIMIT_S)
        self.session = session or ""
        if session is None:
            self.request("initialize", _INITIALIZE)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def search(self, query: str) -> Reply:
        """Call the tool logical_search."""
        return self.request("tools/call", {"name": "logical_search", "arguments": {"query": query}})

    def request(self, method: str, params: object) -> Reply:
        """Send a request, and return what came."""
        message = {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}
        headers = dict(_HEADERS)
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        began, status, body = time.perf_counter(), 0, b""
        with suppress(OSError, http.client.HTTPException):
            self._connection.request("POST", "/mcp", json.dumps(message), headers)
            answer = self._connection.getresponse()
            self.session = answer.getheader("Mcp-Session-Id") or self.session
            body, status = answer.read(), answer.status
        if not status:
            self._connection.close()
        ended = time.perf_counter()
        lines = [line[5:] for line in body.splitlines() if line.startswith(b"data:")]
        text, is_good = body.decode(errors="replace"), False
        with suppress(ValueError, KeyError, TypeError):
            said: Any = json.loads(lines[-1] if lines else body)
            is_good = "error" not in said and not said["result"].get("isError")
            text = (
                said["error"]["message"]
                if "error" in said
                else said["result"]["content"][0]["text"]
            )
        return Reply(began, ended, status, text, is_good)

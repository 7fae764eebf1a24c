"""Clients that search while nodes of a cluster die, and compare every answer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from arag_search.engines.opensearch.address import REQUEST_BUDGET_S
from arag_search.errors import AragError
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support import parity
from tests.support.cluster import LocalCluster
from tests.support.parity import Question

CLIENTS = 4
NODES = 3

_SETTLE_S = 1.0

Fault = Callable[[], None]
"""Injects a fault into a cluster and repairs it; clients search meanwhile."""


@dataclass(frozen=True, slots=True)
class Known:
    """A question and its right answer."""

    question: Question
    answer: SearchResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """The requests of all clients during one fault.

    ``wrong`` are questions with another answer, ``failed`` the errors. ``slowest_s`` is the longest
    time of a request.
    """

    requests: int
    wrong: tuple[str, ...]
    failed: tuple[str, ...]
    slowest_s: float

    @property
    def good(self) -> bool:
        """Whether every question had its right answer within the budget."""
        return not self.wrong and not self.failed and self.slowest_s <= REQUEST_BUDGET_S


class Clients:
    """Threads that ask an index one question after another, each with a pause of ``pause_s``
    seconds between them, until they are stopped."""

    def __init__(
        self, index: Index, known: Sequence[Known], count: int = CLIENTS, pause_s: float = 0.0
    ) -> None:
        self._index = index
        self._known = known
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._seconds: list[float] = []
        self._wrong: list[str] = []
        self._failed: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(count)]

    def run(self, fault: Fault, requests: int) -> Outcome:
        """Search during the fault, and until ``requests`` requests have ended since it began."""
        for thread in self._threads:
            thread.start()
        try:
            time.sleep(_SETTLE_S)
            before = self.done
            fault()
            while self.done < before + requests and any(t.is_alive() for t in self._threads):
                time.sleep(0.05)
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()
        return Outcome(
            self.done - before, tuple(self._wrong), tuple(self._failed), max(self._seconds)
        )

    @property
    def done(self) -> int:
        """Requests that have ended, successfully or not."""
        with self._lock:
            return len(self._seconds)

    def _ask(self, seed: int) -> None:
        random = Random(seed)
        while not self._stop.wait(self._pause_s):
            known = random.choice(self._known)
            began = time.monotonic()
            wrong: list[str] = []
            failed: list[str] = []
            try:
                answer = known.question.ask(self._index)
            except AragError as error:
                failed = [f"{known.question.query}: {error}"]
            else:
                kinds = [kind for kind, *_ in parity.differences(known.answer, answer)]
                wrong = [f"{known.question.query}: {', '.join(kinds)}"] if kinds else []
            with self._lock:
                self._seconds.append(time.monotonic() - began)
                self._wrong += wrong
                self._failed += failed


# Faults


def kill(cluster: LocalCluster, node: int) -> None:
    """Kill a node, and start it again a few seconds later."""
    cluster.nodes[node].signal(signal.SIGKILL)
    time.sleep(3.0)
    cluster.revive()


# What is asked


@contextmanager
def known_answers(corpus: Path, folder: Path, count: int) -> Generator[list[Known]]:
    """Index a corpus in ``folder``, and yield questions on it with the answers of embedded
    Lucene."""
    build_index([str(corpus)], folder, BuildOptions())
    with open_index(folder, search_timeout_s=None) as index:
        asked = parity.questions(list(index.scan()), count, count)
        yield [Known(question, question.ask(index)) for question in asked]


def build_with_copies(cluster: LocalCluster, corpus: Path, name: str) -> str:
    """Build an index of a corpus with a shard on each node and one replica of each, and return its
    location."""
    location = f"{cluster.url}/{name}"
    build_index([str(corpus)], location, BuildOptions(shards=NODES))
    cluster.keep_copies(f"{name}*", 1)
    return location

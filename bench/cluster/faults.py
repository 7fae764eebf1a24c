"""Correctness and delay of answers while nodes of a cluster die or hang.

    python -m bench faults
    python -m bench faults --hang-s 60 --json

Runs three OpenSearch processes and an index of three shards, each with one replica; takes about
five minutes. Several clients search all the time and compare every answer with that of embedded
Lucene. Each node in turn is killed and started again (the first host of the address and the cluster
manager among them), two are suspended for a while, and finally all are killed. The exit code is 1
if an answer was wrong or missing.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from arag_search.engines.opensearch.connection import REQUEST_BUDGET_S
from arag_search.errors import AragError, UnavailableError
from arag_search.search.index import Index, open_index
from arag_search.search.results import SearchResult
from bench.arguments import BenchParser, positive
from bench.cluster import parity
from bench.cluster.cluster import LocalCluster, local_cluster
from bench.cluster.parity import Question
from bench.data import default_corpus
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.queries import SEED
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

CLIENTS = 4
REQUESTS = 500
HANG_S = 60.0
NODES = 3

_QUESTIONS = 200
_SETTLE_S = 1.0
_NAME = "arag-faults"

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
    time of a request, ``gap_s`` the longest time in which no client was answered.
    """

    fault: str
    requests: int
    wrong: tuple[str, ...]
    failed: tuple[str, ...]
    slowest_s: float
    gap_s: float

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
        self._times: list[tuple[float, float]] = []
        self._wrong: list[str] = []
        self._failed: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(count)]

    def run(self, name: str, fault: Fault, requests: int) -> Outcome:
        """Search during the fault, and until ``requests`` requests have ended since it began."""
        began = time.monotonic()
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
        return self._outcome(name, began, self.done - before)

    @property
    def done(self) -> int:
        """Requests that have ended, successfully or not."""
        with self._lock:
            return len(self._times)

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
                self._times.append((began, time.monotonic()))
                self._wrong += wrong
                self._failed += failed

    def _outcome(self, name: str, began: float, requests: int) -> Outcome:
        ends = [began, *sorted(end for _, end in self._times)]
        return Outcome(
            fault=name,
            requests=requests,
            wrong=tuple(self._wrong),
            failed=tuple(self._failed),
            slowest_s=max(end - start for start, end in self._times),
            gap_s=max(later - earlier for earlier, later in pairwise(ends)),
        )


# Faults


def kill(cluster: LocalCluster, node: int) -> None:
    """Kill a node, and start it again a few seconds later."""
    cluster.signal(node, signal.SIGKILL)
    time.sleep(3.0)
    cluster.revive()


def hang(cluster: LocalCluster, node: int, seconds: float) -> None:
    """Suspend the process of a node for a time, and wait until it is back in the cluster."""
    cluster.signal(node, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        cluster.signal(node, signal.SIGCONT)
    cluster.wait_until_green()


def give_up_without_nodes(
    cluster: LocalCluster, question: Question, index: Index
) -> tuple[float, UnavailableError | None]:
    """Search while no node runs, and return after how many seconds it ended and with which error;
    None if it was answered. The nodes run again afterwards."""
    for node in range(len(cluster.nodes)):
        cluster.signal(node, signal.SIGKILL)
    began = time.monotonic()
    raised: UnavailableError | None = None
    try:
        question.ask(index)
    except UnavailableError as error:
        raised = error
    seconds = time.monotonic() - began
    cluster.revive()
    return seconds, raised


# What is asked


@contextmanager
def known_answers(corpus: Path, folder: Path, count: int) -> Generator[list[Known]]:
    """Index a corpus in ``folder``, and yield questions on it with the answers of embedded
    Lucene."""
    build_index([str(corpus)], folder, BuildOptions())
    with open_index(folder, search_timeout_s=None) as index:
        asked = parity.questions(list(index.scan()), count, SEED)
        yield [Known(question, question.ask(index)) for question in asked]


def build_with_copies(cluster: LocalCluster, corpus: Path, name: str) -> str:
    """Build an index of a corpus with a shard on each node and one replica of each, and return its
    location."""
    location = f"{cluster.url}/{name}"
    build_index([str(corpus)], location, BuildOptions(shards=NODES))
    cluster.keep_copies(f"{name}*", 1)
    return location


# Command line


def main(arguments: Sequence[str]) -> int:
    """Inject every fault in turn and return the exit code: 1 for a wrong or missing answer."""
    parser = BenchParser("faults", __doc__)
    add = parser.add_argument
    parser.add_default("--corpus", Path, default_corpus(), "corpus to search")
    parser.add_default("--clients", positive, CLIENTS, "client threads")
    add("--hang-s", type=float, default=HANG_S, help="how long nodes hang (default %(default)g)")
    parser.add_printed_json()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    outcomes, gave_up_s, run = _measure(options, command)
    show(options.results, [_figure(outcomes, gave_up_s)], run, as_json=options.json)
    for outcome in outcomes:
        for problem in (*outcome.wrong[:3], *outcome.failed[:3]):
            say(f"{outcome.fault}: {problem}")
    good = all(outcome.good for outcome in outcomes) and 0 < gave_up_s <= REQUEST_BUDGET_S
    return 0 if good else 1


def _measure(
    options: argparse.Namespace, command: str
) -> tuple[list[Outcome], float, dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="arag-faults-") as name:
        folder = Path(name)
        with (
            known_answers(options.corpus, folder / "index", _QUESTIONS) as known,
            local_cluster(folder / "cluster", NODES) as cluster,
            open_index(
                build_with_copies(cluster, options.corpus, _NAME), search_timeout_s=None
            ) as index,
        ):
            run = circumstances(command, index.manifest, seed=SEED)
            outcomes: list[Outcome] = []

            def done(name: str, fault: Fault) -> None:
                outcomes.append(Clients(index, known, options.clients).run(name, fault, REQUESTS))
                say(f"{name}: {outcomes[-1].requests:,} requests")

            for node in range(NODES):
                what = "the manager" if node == cluster.manager() else f"node {node + 1}"
                done(f"{what} killed", lambda node=node: kill(cluster, node))
            manager = cluster.manager()
            other = next(node for node in range(NODES) if node != manager)
            for what, node in ((f"node {other + 1}", other), ("the manager", manager)):
                done(f"{what} hung", lambda node=node: hang(cluster, node, options.hang_s))
            seconds, error = give_up_without_nodes(cluster, known[0].question, index)
            say(str(error))
            return outcomes, seconds if error else 0.0, run


def _figure(outcomes: Sequence[Outcome], gave_up_s: float) -> Figure:
    rows: list[Row] = []
    none, budget = Target("at most", 0), Target("at most", REQUEST_BUDGET_S)
    for outcome in outcomes:
        rows += [
            Row(
                f"{outcome.fault}: requests",
                outcome.requests,
                "",
                target=Target("at least", REQUESTS),
            ),
            Row(f"{outcome.fault}: wrong answers", len(outcome.wrong), "", target=none),
            Row(f"{outcome.fault}: errors", len(outcome.failed), "", target=none),
            Row(f"{outcome.fault}: slowest answer", outcome.slowest_s, "s", target=budget),
            Row(f"{outcome.fault}: longest time without any answer", outcome.gap_s, "s"),
        ]
    rows.append(Row("all nodes killed: until the error", gave_up_s, "s", target=budget))
    return Figure("faults", tuple(rows))

"""All indexes that the replay searches, with the cost of their builds; unavailable ones are
gaps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from arag_search.engines.write import DEFAULT_B, DEFAULT_K1
from arag_search.errors import AragError
from bench import BenchError
from bench.cluster.cluster import LocalCluster, local_cluster, remove_indexes, stored_bytes
from bench.replay.build_cost import Cost, Sources, cost
from bench.replay.peers import Pyserini
from bench.workbench import say

OPTIONAL = ("OpenSearch", "hybrid", "bm25s", "pyserini", "scan")
"""The sides that can be left out; unavailable ones are left out by themselves."""
NOTES = {
    "embedded": "reads and cuts the corpus; chunk and sentence documents",
    "embedded, no sentences": "reads and cuts the corpus; chunk documents",
    "bare Lucene": "chunks are cut beforehand; stores ids and titles alone",
    "scan": "lower-cased texts in memory; nothing is written",
    "bm25s": "words are cut beforehand",
    "OpenSearch": "as embedded; the memory of the node, 512 MB of heap, is not counted",
    "pyserini": "words are cut beforehand; with its Java in one process",
    "hybrid": "vectors of passages beside the index of embedded; one round",
}
"""The sides, in the order of the table, and what their builds do."""

_NAME = "arag-replay"


@dataclass(frozen=True, slots=True)
class BuildCost:
    """The cost of a side over all rounds of building; ``note`` describes its build."""

    name: str
    costs: Sequence[Cost]
    note: str

    @property
    def seconds(self) -> float:
        """The median."""
        return median(cost.seconds for cost in self.costs)


@dataclass(slots=True)
class Builds:
    """Everything that is built in ``folder``, and the sides that were left out or are unavailable.

    Services are stopped with ``stack``.
    """

    stack: ExitStack
    folder: Path
    sources: Sources
    encoder: str
    pyserini_python: str = sys.executable
    without: frozenset[str] = frozenset()
    gaps: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    pyserini: Pyserini | None = None
    cluster: LocalCluster | None = None
    k1: float = DEFAULT_K1
    b: float = DEFAULT_B

    @property
    def vectors(self) -> Path:
        """The folder of the vectors."""
        return self.folder / "vectors"

    def __post_init__(self) -> None:
        for name in sorted(self.without):
            self.gaps[name] = "left out with --without"

    def build(self, rounds: int) -> list[BuildCost]:
        """Build everything in ``rounds`` alternating rounds, vectors once; the last builds stay."""
        kept: dict[str, list[Cost]] = {}
        self._start_services()
        for number in range(rounds):
            self._build_round(number, kept)
        self.attempt("hybrid", lambda: kept.update(hybrid=[self._vectors()]))
        return [BuildCost(name, kept[name], note) for name, note in NOTES.items() if name in kept]

    def _start_services(self) -> None:
        def start_cluster() -> None:
            place = self.folder / "cluster"
            self.cluster = self.stack.enter_context(local_cluster(place, 1))

        def start_pyserini() -> None:
            self.pyserini = self.stack.enter_context(Pyserini(self.pyserini_python))
            self.versions |= self.pyserini.versions

        self.attempt("OpenSearch", start_cluster)
        self.attempt("pyserini", start_pyserini)

    def _build_round(self, number: int, kept: dict[str, list[Cost]]) -> None:
        say(f"replay: building, round {number + 1}")
        for name in ("embedded", "embedded, no sentences", "bare Lucene", "scan", "bm25s"):
            out = str(self.place(name, number))
            self.attempt(
                name, lambda n=name, o=out: kept.setdefault(n, []).append(self._cost(n, o))
            )
        self.attempt("OpenSearch", lambda: kept.setdefault("OpenSearch", []).append(self._served()))
        self.attempt(
            "pyserini", lambda: kept.setdefault("pyserini", []).append(self._of_pyserini())
        )

    def _cost(self, name: str, out: str, extra: Sequence[str] = ()) -> Cost:
        return cost(name, self.sources, out, extra)

    def place(self, name: str, number: int = -1) -> Path:
        """Return the folder of a side: of a round, or of the last round."""
        folder = self.folder / name.replace(", ", "-").replace(" ", "-")
        if number >= 0:
            folder.mkdir(exist_ok=True)
            return folder / str(number)
        return max(folder.iterdir(), key=lambda path: int(path.name))

    def _served(self) -> Cost:
        location = self.served()
        remove_indexes(location)
        built = self._cost("OpenSearch", location)
        if self.cluster is not None:
            self.cluster.set(f"{_NAME}*", {"requests.cache.enable": False})
        return Cost(built.seconds, stored_bytes(location), built.peak_bytes)

    def served(self) -> str:
        """Return the location of the index on OpenSearch."""
        if self.cluster is None:
            raise BenchError("There is no node of OpenSearch.")
        return f"{self.cluster.url}/{_NAME}"

    def _of_pyserini(self) -> Cost:
        """Build in a process of its own, separate from the one that searches."""
        place = self.folder / "pyserini"
        place.mkdir(exist_ok=True)
        with Pyserini(self.pyserini_python) as process:
            out = place / str(len(list(place.iterdir())))
            return Cost(**process.build(self.sources.words, out))

    def _vectors(self) -> Cost:
        say(f"replay: vectors of {self.encoder}")
        out = str(self.vectors)
        return self._cost("vectors", out, (str(self.place("embedded")), self.encoder))

    def attempt(self, name: str, work: Callable[[], object]) -> None:
        """Run ``work`` unless the side is a gap already; if it fails, an optional side becomes a
        gap, and any other raises."""
        if name in self.gaps:
            return
        try:
            work()
        except (AragError, OSError) as error:
            if name not in OPTIONAL:
                raise
            # The whole message may name paths of this machine.
            self.gaps[name] = error.what if isinstance(error, AragError) else str(error.strerror)
            say(f"{name} is left out: {error}")

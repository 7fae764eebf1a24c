"""An index of one engine and size: built, searched, changed and compacted, step by step.

All of it is kept in a folder, until the size is measured, so that an interrupted run goes on where
it stopped.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from bench.cluster.cluster import local_cluster, remove_indexes
from bench.scale import synthetic
from bench.scale.searching import Latency, Searched
from bench.scale.steps import CORPUS, STEPS, Record, Task, run
from bench.workbench import say

EngineName = Literal["lucene", "opensearch"]
ENGINES: tuple[EngineName, ...] = ("lucene", "opensearch")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a change to an index; see Record. ``bytes`` is the size of the index
    afterwards."""

    seconds: float
    processor_s: float
    bytes: int
    peak_bytes: int
    peak_disk: int

    @staticmethod
    def of(record: Record) -> Cost:
        """Return the cost that a record has."""
        return Cost(
            record.seconds, record.processor_s, record.bytes, record.peak_bytes, record.peak_disk
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine at one size.

    ``tenths`` are the passages per second of each tenth of the build, ``processor_tenths`` those
    per second of processor time, which other programs hardly change. ``changes`` are the deletion
    of a share, the addition of as many passages, and the compaction after both. ``load`` is the
    mean load of the machine during the build.
    """

    passages: int
    build: Cost
    tenths: tuple[float, ...]
    processor_tenths: tuple[float, ...]
    load: float
    search: Searched
    changes: Mapping[str, Cost]

    @property
    def latency(self) -> Mapping[str, Latency]:
        """The latency of each class with a single client."""
        return self.search.latency[1]

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Measured:
        """Invert ``to_dict``."""
        return TypeAdapter(Measured).validate_python(content)


@dataclass(frozen=True, slots=True)
class Side:
    """An engine, and where its indexes are: OpenSearch at ``url``, or else on ``nodes`` nodes of
    our own, each with this ``heap``."""

    engine: EngineName
    nodes: int = 1
    url: str | None = None
    heap: str = "1g"

    @property
    def name(self) -> str:
        """The name in the results."""
        return self.engine if self.nodes == 1 else f"{self.engine}, {self.nodes} nodes"

    @property
    def bytes_needed(self) -> int:
        """The disk space for a passage, with the corpus file and a compaction; a cluster keeps a
        copy of each shard."""
        copies = 2 if self.nodes > 1 else 1
        return 4_500 if self.engine == "lucene" else 9_000 * copies

    def folder(self, work: Path, passages: int) -> Path:
        """Return the folder that keeps the index of a size below ``work``."""
        nodes = "" if self.nodes == 1 else f"-{self.nodes}"
        return work / f"{self.engine}{nodes}-{passages}"

    @contextmanager
    def task(self, folder: Path, passages: int, queries: int) -> Generator[Task]:
        """Yield the task of a size; nodes of our own run meanwhile, and an index at ``url`` is
        removed once everything is measured."""
        if self.engine == "lucene":
            disk = str(folder / "index")
            yield Task(disk, passages, str(folder), queries, disk)
            return
        name = f"arag-bench-{passages:012d}"
        shards = self.nodes if self.nodes > 1 else None
        if self.url is not None:
            location = f"{self.url.rstrip('/')}/{name}"
            yield Task(location, passages, str(folder), queries, shards=shards)
            remove_indexes(location)
            return
        data = folder / "nodes"
        with local_cluster(data, self.nodes, heap=self.heap, kept=True) as cluster:
            cluster.wait_until_green()
            nodes = tuple(node.pid for node in cluster.nodes if node.pid is not None)
            location = f"{cluster.url}/{name}"
            yield Task(location, passages, str(folder), queries, str(data), nodes, shards)


def measure(side: Side, folder: Path, passages: int, queries: int) -> Measured:
    """Build an index in ``folder``, unless it is there, and measure it. Raises BenchError."""
    folder.mkdir(parents=True, exist_ok=True)
    with side.task(folder, passages, queries) as task:
        corpus = folder / CORPUS
        if not Record.read(task.record("build")).is_finished and not corpus.exists():
            say(f"{side.name}: writing {passages:,} passages")
            part = corpus.with_suffix(".part")
            synthetic.write(passages, part)
            part.rename(corpus)
        for step in STEPS:
            say(f"{side.name}: {passages:,} passages, {step}")
            run(step, task)
            if step == "build":
                corpus.unlink(missing_ok=True)
    built, *changes = (Record.read(task.record(step)) for step in STEPS if step != "search")
    loads = [point.load for point in built.points]
    searched = TypeAdapter(Searched).validate_json(task.record("search").read_bytes())
    names = [step for step in STEPS if step not in ("build", "search")]
    return Measured(
        passages=passages,
        build=Cost.of(built),
        tenths=built.tenths(lambda point: point.seconds),
        processor_tenths=built.tenths(lambda point: point.processor_s),
        load=sum(loads) / len(loads),
        search=searched,
        changes=dict(zip(names, map(Cost.of, changes), strict=True)),
    )

"""Growth of build time, size and latency with the corpus, to ten million passages.

    python -m bench scale
    python -m bench scale --sizes 10000,30000,100000 --engine opensearch --out scale.json
    python -m bench scale --engine opensearch --nodes 3 --sizes 3000000

Builds synthetic corpora of several sizes on both engines, and measures each size once: its build as
it goes on, opening, searches by 1 and 4 clients, the worst queries, a deletion, an addition and a
compaction. Every measurement is kept in a JSON file and not repeated, and an index is kept in the
folder of --work until it is measured, so that the same command resumes an interrupted run, in the
middle of a build too. A table goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from arag_search.system.durable import write_atomically
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive, whole_from
from bench.cluster.cluster import local_cluster, remove_indexes
from bench.data import corpus_in, is_published
from bench.report.rows import Figure, Row, Target, circumstances, table
from bench.scale import synthetic
from bench.scale.searching import Latency, Searched
from bench.scale.steps import CORPUS, STEPS, Record, Task, run
from bench.scale.words import compared
from bench.workbench import check_room, say

SIZES: Mapping[EngineName, Sequence[int]] = {
    "lucene": (10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000),
    "opensearch": (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000),
}
QUERIES = 200
REPLY_TARGET = Target("at most", 1.4)
RESULTS_VERSION = 2
MIN_ROOM = 1 << 30
_JSON = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS


def main(arguments: Sequence[str]) -> int:
    """Measure the sizes that are not measured yet, and return the exit code."""
    parser = BenchParser("scale", __doc__, resumes=True)
    add = parser.add_argument
    sizes = "; ".join(f"{engine} {','.join(map(str, sizes))}" for engine, sizes in SIZES.items())
    add(
        "--sizes",
        type=_sizes,
        help=f"sizes in passages, each at least 100 (default: {sizes})",
    )
    add(
        "--engine",
        type=names_from(ENGINES),
        default=ENGINES,
        help="the engines: lucene,opensearch, or one of them (default both)",
    )
    parser.add_default("--queries", positive, QUERIES, "queries of each class")
    parser.add_results("--out")
    add("--again", action="store_true", help="measure again sizes that the file already has")
    parser.add_kept_work("indexes", "scale")
    add("--url", help="address of an OpenSearch (default: our own nodes, stopped afterwards)")
    add(
        "--nodes",
        type=int,
        choices=(1, 3),
        default=1,
        help="nodes of OpenSearch, and shards of its index (default 1)",
    )
    parser.add_default("--heap", str, "1g", "memory of each of our own nodes")
    parser.add_data()
    return parser.run(arguments, _grown)


def _grown(options: argparse.Namespace, command: str) -> int:
    results = _Results.read(options.out, options.queries)
    results.run = circumstances(command, seed=synthetic.SEED)
    if not results.corpus and is_published(options.data):
        results.corpus = compared(corpus_in(options.data))
    _measure_all(options, results)
    print(table(results.figures()))
    say(f"Results are in {options.out}.")
    return 0


class _Results:
    """The file of results, all measured with the same settings."""

    def __init__(self, path: Path, queries: int) -> None:
        self._path = path
        self._settings = {
            "queries": queries,
            "seed": synthetic.SEED,
            "generator": synthetic.GENERATOR,
        }
        self.measured: dict[str, dict[int, Measured]] = {}
        self.corpus: Mapping[str, Any] = {}
        self.run: Mapping[str, Any] = {}
        self._runs: dict[str, Any] = {}

    @staticmethod
    def read(path: Path, queries: int) -> _Results:
        """Read the file. Raises BenchError for another kind of file, or other settings."""
        results = _Results(path, queries)
        if path.is_dir():
            raise BenchError("The file of results is a folder.", where=str(path))
        if not path.exists():
            return results
        try:
            content: Any = orjson.loads(path.read_bytes())
            settings, measured = content["settings"], content["measured"]
            results.corpus, results._runs = content["corpus"], content["runs"]
            for side, entries in measured.items():
                sizes = map(Measured.from_dict, entries)
                results.measured[side] = {size.passages: size for size in sizes}
        except (orjson.JSONDecodeError, ValidationError, KeyError, TypeError, AttributeError):
            raise BenchError(
                "The file holds no results of this bench.",
                where=str(path),
                do="Name another file with --out.",
            ) from None
        if settings != results._settings:
            raise BenchError(
                "The results in the file were measured with other settings.",
                where=f"{path}: {settings}",
                allowed=str(results._settings),
                do="Name another file with --out, or pass the same --queries.",
            )
        return results

    def add(self, side: str, measured: Measured) -> None:
        """Keep a measurement, in the file too."""
        self.measured.setdefault(side, {})[measured.passages] = measured
        load = round(os.getloadavg()[0], 2)
        self._runs[f"{side} {measured.passages}"] = {**self.run, "load": load}
        self.write()

    def write(self) -> None:
        """Replace the file."""
        content = {
            "format": RESULTS_VERSION,
            "settings": self._settings,
            "corpus": self.corpus,
            "measured": {
                side: [sizes[size].to_dict() for size in sorted(sizes)]
                for side, sizes in self.measured.items()
            },
            "runs": self._runs,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, orjson.dumps(content, option=_JSON) + b"\n")

    def figures(self) -> list[Figure]:
        """Return the rows of the table."""
        figures = [_corpus_figure(self.corpus)] if self.corpus else []
        for engine, sizes in self.measured.items():
            figures += [_size_figure(engine, sizes[size]) for size in sorted(sizes)]
        return figures


def _size_figure(side: str, measured: Measured) -> Figure:
    build, search, passages = measured.build, measured.search, measured.passages
    rows = [
        Row("build", passages / build.seconds, "passages/s", *_range(measured.tenths)),
        Row("build, processor time", build.processor_s / passages * 1000, "ms/passage"),
        Row("build, memory at most", build.peak_bytes / 1e6, "MB"),
        Row("build, disk at most", build.peak_disk / 1e6, "MB"),
        Row("index", build.bytes / passages, "bytes/passage"),
        Row("opening, with the start of Java", search.opening_s, "s"),
        Row("opening again", search.reopening_s, "s"),
        Row("searches, memory at most", search.peak_bytes / 1e6, "MB"),
    ]
    for clients, classes in search.latency.items():
        for name, latency in classes.items():
            of = f"{name}, {clients} at once" if clients > 1 else name
            rows.append(Row(f"{of}: median", latency.median_ms, "ms"))
            rows.append(Row(f"{of}: 95th percentile", latency.p95_ms, "ms"))
    for name, ratio in search.replies.items():
        rows.append(Row(f"{name}: reply / search", ratio, "x", target=REPLY_TARGET))
    slowest = max(search.worst, key=lambda outcome: outcome.seconds)
    rows.append(Row(f"worst query: {slowest.name}", slowest.seconds, "s"))
    for name, cost in measured.changes.items():
        rows.append(Row(name, cost.seconds, "s"))
        rows.append(Row(f"{name}, disk at most", cost.peak_disk / 1e6, "MB"))
        rows.append(Row(f"{name}, index afterwards", cost.bytes / 1e6, "MB"))
    return Figure(f"{side}, {passages:,} passages, measured", tuple(rows))


def _range(values: Sequence[float]) -> tuple[float, float] | tuple[()]:
    return (min(values), max(values)) if values else ()


def _corpus_figure(corpus: Mapping[str, Any]) -> Figure:
    rows = [
        Row(
            f"{name} (real: {statistic['real']:.3g}{'' if statistic['alike'] else ', NOT ALIKE'})",
            statistic["synthetic"],
            "",
        )
        for name, statistic in corpus.items()
    ]
    return Figure("synthetic words", tuple(rows))


def _measure_all(options: argparse.Namespace, results: _Results) -> None:
    for engine in options.engine:
        nodes = options.nodes if engine == "opensearch" else 1
        side = Side(engine, nodes, options.url, options.heap)
        known = {} if options.again else results.measured.get(side.name, {})
        missing = [size for size in options.sizes or SIZES[engine] if size not in known]
        if not missing:
            say(f"{side.name}: everything is measured.")
            continue
        options.work.mkdir(parents=True, exist_ok=True)
        _check_room(side, options.work, missing[-1])
        for size in missing:
            _check_room(side, options.work, size)
            folder = side.folder(options.work, size)
            results.add(side.name, measure(side, folder, size, options.queries))
            shutil.rmtree(folder)


def _check_room(side: Side, work: Path, size: int) -> None:
    """Check the disk for a size, unless what it takes is partly there from an earlier run."""
    if not side.folder(work, size).exists():
        check_room(work, size * side.bytes_needed + MIN_ROOM)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole_from(100)(piece) for piece in text.split(",")}))


# An index of one engine and size: built, searched, changed and compacted, step by step, and kept in
# a folder until the size is measured.


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

"""Growth of build time, size and latency with the corpus, extrapolated to KILT.

    python -m bench scale
    python -m bench scale --sizes 10000,30000,100000 --engine opensearch --out scale.json
    python -m bench scale --engine opensearch --nodes 3 --sizes 3000000

Builds synthetic corpora of several sizes on both engines, and measures each size once: its build as
it goes on, opening, searches by 1 and 4 clients, the worst queries, a deletion, an addition and a
compaction. A power law is fitted to the sizes. Every measurement is kept in a JSON file and not
repeated, and an index is kept in the folder of --work until it is measured, so that the same
command resumes an interrupted run, in the middle of a build too. A table goes to stdout, a plot
beside the JSON file.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from arag_search.system.durable import write_atomically
from arag_search.system.extras import check_extra
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive, whole_from
from bench.data import corpus_in, is_published
from bench.report.rows import Figure, Row, Target, circumstances, table
from bench.scale import synthetic
from bench.scale.law import TARGET_PASSAGES, laws
from bench.scale.sides import ENGINES, EngineName, Measured, Side, measure
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
    check_extra("bench", "matplotlib")
    results = _Results.read(options.out, options.queries)
    results.run = circumstances(command, seed=synthetic.SEED)
    if not results.corpus and is_published(options.data):
        results.corpus = compared(corpus_in(options.data))
    _measure_all(options, results)
    figures = results.figures()
    from bench.scale.plot import plot

    pictures = plot(results.measured, options.out)
    print(table(figures))
    say(f"Results are in {options.out}, {', '.join(map(str, pictures))}.")
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
            "extrapolated": {
                side: {name: law.to_dict() for name, law in laws(sizes).items()}
                for side, sizes in self.measured.items()
            },
            "runs": self._runs,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, orjson.dumps(content, option=_JSON) + b"\n")

    def figures(self) -> list[Figure]:
        """Return the rows of the table: first the measured, then the extrapolated ones."""
        figures = [_corpus_figure(self.corpus)] if self.corpus else []
        for engine, sizes in self.measured.items():
            for size in sorted(sizes):
                figures.append(_size_figure(engine, sizes[size]))
            if kilt := laws(sizes):
                rows = [law.row(name) for name, law in kilt.items()]
                name = f"{engine}, {TARGET_PASSAGES:,} passages, EXTRAPOLATED"
                figures.append(Figure(name, tuple(rows)))
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

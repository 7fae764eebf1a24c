"""Growth of build time, size and latency with the corpus, extrapolated to KILT.

    python -m bench scale
    python -m bench scale --sizes 10000,30000,100000 --engine opensearch --out scale.json

Builds synthetic corpora of several sizes on both engines, measures each size once, and fits a power
law to the sizes. Every measurement is kept in a JSON file and not repeated, so that the same
command resumes an interrupted run. A table goes to stdout, a plot beside the JSON file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from arag_search.system.durable import write_atomically
from arag_search.system.extras import check_extra
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive, whole_from
from bench.data import corpus_in, is_published
from bench.report.rows import Figure, Row, Target, circumstances, table
from bench.scale import synthetic
from bench.scale.law import TARGET_PASSAGES, laws
from bench.scale.sides import (
    ENGINES,
    FIRST_ROUNDS,
    WARM_UP_PASSAGES,
    WARM_UP_ROUNDS,
    EngineName,
    Measured,
    Side,
    measure,
    open_side,
)
from bench.scale.words import compared
from bench.workbench import BoundedProgress, check_room, say

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUERIES = 200
SAMPLE = 2_000
"""The number of passages from all over a corpus, from which queries are drawn."""
MAX_BUILD_S = 7_200.0
REPLY_TARGET = Target("at most", 1.4)
RESULTS_VERSION = 1
BYTES_NEEDED = 6_000
"""Disk space for a passage during a build, including the corpus file: twice the final size."""
MIN_ROOM = 1 << 30


def main(arguments: Sequence[str]) -> int:
    """Measure the sizes that are not measured yet, and return the exit code."""
    parser = BenchParser("scale", __doc__, resumes=True)
    add = parser.add_argument
    add(
        "--sizes",
        type=_sizes,
        default=SIZES,
        help=f"sizes in passages, each at least 100 (default {','.join(map(str, SIZES))})",
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
    parser.add_work()
    add("--url", help="address of an OpenSearch (default: our own node, stopped afterwards)")
    parser.add_default("--heap", str, "1g", "memory of our own node")
    add(
        "--max-build-s",
        type=float,
        default=MAX_BUILD_S,
        help="longest time for one index (default %(default)g)",
    )
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
        self.measured: dict[EngineName, dict[int, Measured]] = {}
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
            for engine in ENGINES:
                sizes = (Measured.from_dict(entry) for entry in measured.get(engine, ()))
                results.measured[engine] = {size.passages: size for size in sizes}
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
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

    def add(self, engine: EngineName, measured: Measured) -> None:
        """Keep a measurement, in the file too."""
        self.measured.setdefault(engine, {})[measured.passages] = measured
        load = round(os.getloadavg()[0], 2)
        self._runs[f"{engine} {measured.passages}"] = {**self.run, "load": load}
        self.write()

    def write(self) -> None:
        """Replace the file."""
        content = {
            "format": RESULTS_VERSION,
            "settings": self._settings,
            "corpus": self.corpus,
            "measured": {
                engine: [sizes[size].to_dict() for size in sorted(sizes)]
                for engine, sizes in self.measured.items()
            },
            "extrapolated": {
                engine: {name: law.to_dict() for name, law in laws(sizes).items()}
                for engine, sizes in self.measured.items()
            },
            "runs": self._runs,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")

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


def _size_figure(engine: str, measured: Measured) -> Figure:
    rows = [
        Row("build", measured.passages / measured.seconds, "passages/s"),
        Row("index", measured.bytes / measured.passages, "bytes/passage"),
    ]
    for name, latency in measured.latency.items():
        rows.append(Row(f"{name}: median", latency.median_ms, "ms"))
        rows.append(Row(f"{name}: 95th percentile", latency.p95_ms, "ms"))
    for name, ratio in measured.replies.items():
        rows.append(Row(f"{name}: reply / search", ratio, "x", target=REPLY_TARGET))
    return Figure(f"{engine}, {measured.passages:,} passages, measured", tuple(rows))


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
        known = {} if options.again else results.measured.get(engine, {})
        missing = [size for size in options.sizes if size not in known]
        if not missing:
            say(f"{engine}: everything is measured.")
            continue
        with tempfile.TemporaryDirectory(prefix="arag-bench-", dir=options.work) as name:
            folder = Path(name)
            check_room(folder, missing[-1] * BYTES_NEEDED + MIN_ROOM)
            with open_side(engine, folder, options.url, options.heap) as side:
                first = min(WARM_UP_PASSAGES, missing[0])
                _measured(side, folder, first, options, engine, FIRST_ROUNDS)
                for size in missing:
                    measured = _measured(side, folder, size, options, engine, WARM_UP_ROUNDS)
                    results.add(engine, measured)


def _measured(
    side: Side,
    folder: Path,
    size: int,
    options: argparse.Namespace,
    engine: EngineName,
    warm_up_rounds: int,
) -> Measured:
    check_room(folder, size * BYTES_NEEDED + MIN_ROOM)
    corpus = folder / "corpus.jsonl"
    began = time.monotonic()
    written = synthetic.write(size, corpus)
    say(f"{engine}: {size:,} passages, {written >> 20:,} MB of text")
    try:
        sample = [passage.chunk() for passage in synthetic.sample(size, SAMPLE)]
        progress = BoundedProgress(options.max_build_s)
        measured = measure(side, corpus, sample, options.queries, progress, warm_up_rounds)
    finally:
        corpus.unlink()
    say(f"{engine}: {size:,} passages measured in {time.monotonic() - began:.0f} s")
    return measured


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole_from(100)(piece) for piece in text.split(",")}))

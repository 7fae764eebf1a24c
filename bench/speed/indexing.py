"""Our whole build against a bare loop that adds the same documents to Lucene."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from arag_search.engines.lucene import schema
from arag_search.engines.lucene.jvm import java
from arag_search.engines.lucene.location import hold_live
from bench import BenchError
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.bare import index_bare, prepared
from bench.workbench import Workbench, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

OURS, BARE = "ours", "bare loop, one document reused"
OPTIONS = BuildOptions(without=("forms",))
"""Normal forms are made before Lucene sees a text; ``bench forms`` measures them."""
TARGET = Target("at least", 0.6)
WARM_UP = 3
"""The number of rounds until Java has compiled the code in use."""

_INDEX = "org.apache.lucene.index"


def measure(bench: Workbench, rounds: int, *, warm_up: int = WARM_UP) -> Figure:
    """Measure the rates of both, and compare what they built.

    Raises BenchError if the two indexes differ in fields, documents or words.
    """
    say(f"indexing: {len(bench.chunks):,} chunks, {warm_up} + {rounds} rounds")
    ready = [prepared(chunk) for chunk in bench.chunks]
    with bench.room() as room:
        source = str(bench.corpus)
        sides = {
            OURS: _fresh(room / OURS, lambda at: build_index([source], at, OPTIONS)),
            BARE: _fresh(room / BARE, lambda at: index_bare(ready, at)),
        }
        timings = interleaved(sides, rounds, warm_up=warm_up)
        live = hold_live(room / OURS)
        try:
            _compare(live.path, room / BARE)
            sizes = {OURS: size_of(live.path), BARE: size_of(room / BARE)}
        finally:
            live.release()
    return _figure(timings, len(bench.chunks), sizes)


def _figure(timings: Timings, passages: int, sizes: dict[str, int]) -> Figure:
    ratio = timings.ratio(BARE, OURS)
    rows = [Row.of_ratio("rate of ours to the bare loop (one document reused)", ratio, TARGET)]
    for name in timings.seconds:
        rows.append(Row(name, passages / timings.median_s(name), "passages/s"))
    return Figure("indexing", tuple(rows), {"seconds": timings.seconds, "bytes": sizes})


def _fresh(folder: Path, build: Callable[[Path], object]) -> Side:
    """Return a side that builds into a folder that does not exist yet."""

    def run() -> float:
        shutil.rmtree(folder, ignore_errors=True)
        return timed(lambda: build(folder))

    return run


def _compare(ours: Path, bare: Path) -> None:
    for part in (schema.CHUNKS_FOLDER, schema.SENTENCES_FOLDER):
        here, there = contents(ours / part), contents(bare / part)
        if here != there:
            raise BenchError(
                "The bare loop did not index what ours did.", where=f"{part}: {here} | {there}"
            )


def contents(folder: Path) -> dict[str, Any]:
    """Describe a Lucene index for comparison: documents, how each field is indexed and how many
    words it has, and the names of stored fields."""
    directory = java("org.apache.lucene.store.FSDirectory").open(
        java("java.nio.file.Paths").get(str(folder))
    )
    reader = java(f"{_INDEX}.DirectoryReader").open(directory)
    try:
        first = reader.storedFields().document(0).getFields()
        described: dict[str, Any] = {
            "documents": int(reader.numDocs()),
            "stored": sorted({str(field.name()) for field in first}),
        }
        for info in java(f"{_INDEX}.FieldInfos").getMergedFieldInfos(reader):
            name = str(info.name)
            described[f"field {name}"] = (
                str(info.getIndexOptions()),
                str(info.getDocValuesType()),
                int(info.getPointDimensionCount()),
                int(reader.getSumTotalTermFreq(name)),
            )
        return described
    finally:
        reader.close()
        directory.close()


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

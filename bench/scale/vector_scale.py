"""Cost of many vectors in an inverted file: making, opening, searching, adding.

    uv run --extra all python -m bench vector_scale --work FOLDER
    uv run --extra all python -m bench vector_scale --rows 1000000 --added 100000

Shards of synthetic vectors are published with a FAISS index, opened, searched and enlarged. Each
step is kept in the work folder with its seconds and its peak of memory, so that an interrupted run
resumes; the folder of a finished run is removed. The exact neighbours are found in blocks. The
vectors are random directions around random centres, so that recall here is a property of these
alone (`python -m bench recall` measures that of real sentences).
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from arag_search.manifest import Manifest
from arag_search.system.durable import write_atomically
from arag_search.system.progress import Progress
from arag_search.vectors import exact
from arag_search.vectors.base import KEY_BYTES, FloatArray, Nearest, VectorUnit
from arag_search.vectors.faiss_index import AUTO, factory_of
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.folders import sidecar_folder
from arag_search.vectors.storage.manifest import (
    FLAT,
    MANIFEST,
    index_files,
    keys_file,
    ordinals_file,
    trained_file,
)
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.shards import (
    MappedRows,
    StoredType,
    shard_record,
    vectors_role,
)
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.quality.recall import recall
from bench.report.rounds import percentile, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.vectors import (
    QUERIES_SEED,
    SHARD_ROWS,
    TOP,
    anonymous_bytes,
    chunks_from,
    encoder_of,
    manifest_of,
    open_placement,
    peak_anonymous,
    stored_shards,
    synthetic_vectors,
    write_sentences,
)
from bench.workbench import check_room, say

NAME = "vector_scale"
ROWS = 10_000_000
ADDED = 1_000_000
QUERIES = 100
OPENING_TARGET = Target("at most", 2.0)

_UNIT: VectorUnit = "sentence"
_BYTES_A_ROW = 400  # placement, codes, and both once more while they are merged
_BYTES: dict[StoredType, int] = {"float32": 4, "float16": 2}
_MB = 1 << 20
_ADDED = "added: "
_STEPS = (
    "writing shards",
    "writing the placement",
    "writing ordinals",
    "training vectors",
    "adding vectors",
    "merging vectors",
    "taking checksums",
    "searching in blocks, exactly",
    "searching, rescored",
    "searching, not rescored",
)
"""The steps that are measured, in their order, as stages of publishing are named."""


def main(arguments: Sequence[str]) -> int:
    """Measure all steps, or those that an interrupted run has left; return the exit code."""
    parser = BenchParser(NAME, __doc__, resumes=True)
    parser.add_kept_work("the steps of an interrupted run", NAME)
    parser.add_default("--rows", positive, ROWS, "rows that are published")
    parser.add_default("--added", positive, ADDED, "rows that are added afterwards")
    parser.add_default("--dimension", positive, 384, "dimensions of a vector")
    parser.add_argument(
        "--dtype", choices=tuple(_BYTES), default="float16", help="type of the stored vectors"
    )
    parser.add_default("--index", str, AUTO, "FAISS factory with an inverted file")
    parser.add_default("--queries", positive, QUERIES, "queries that are searched for")
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    index = factory_of(options.index, options.rows, options.dimension)
    if index == FLAT:
        raise BenchError(
            f"{options.rows:,} rows have no inverted file of their own.",
            where="--rows",
            do="Name a factory with --index, such as IVF64,PQ8.",
        )
    task = _Task(options.rows, options.added, options.dimension, options.dtype, index)
    work: Path = options.work / task.name
    options.work.mkdir(parents=True, exist_ok=True)
    if not work.exists():
        rows = task.rows + task.added
        check_room(options.work, rows * (task.dimension * _BYTES[task.dtype] + _BYTES_A_ROW))
        work.mkdir()
    run = circumstances(command, seed=QUERIES_SEED)
    show(options.json, [_Scale(task, work, options.queries).figure()], run)
    shutil.rmtree(work)
    return 0


@dataclass(frozen=True, slots=True)
class _Task:
    """The vectors that are published: ``rows`` first, then ``added`` ones. ``name`` is that of the
    folder of the work."""

    rows: int
    added: int
    dimension: int
    dtype: StoredType
    index: str

    @property
    def name(self) -> str:
        index = self.index.replace(",", "-")
        return f"{self.rows}-{self.added}-{self.dimension}-{self.dtype}-{index}"

    @property
    def total(self) -> int:
        """The number of all rows."""
        return self.rows + self.added

    def shards(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number of each shard with its first row and its end."""
        starts = [*range(0, self.rows, SHARD_ROWS), *range(self.rows, self.total, SHARD_ROWS)]
        for number, (first, end) in enumerate(pairwise([*starts, self.total])):
            yield number, first, end


class _Steps:
    """The seconds and the peak of anonymous memory of each step, and other values, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
        self._start_bytes = anonymous_bytes()

    def get(self, name: str) -> Any:
        """Return the value of a step; None if it is not done."""
        return self._kept.get(name)

    def keep(self, name: str, value: object) -> None:
        """Keep the value of a step."""
        self._kept[name] = value
        write_atomically(self._path, orjson.dumps(self._kept))

    @contextmanager
    def measuring(self, name: str) -> Generator[None]:
        """Measure a part of a step. Seconds are added up, the greatest peak counts."""
        before = anonymous_bytes() - self._start_bytes
        began = time.monotonic()
        with peak_anonymous() as peak:
            yield
        seconds, most = self.get(name) or (0.0, 0)
        self.keep(name, [seconds + time.monotonic() - began, max(most, before + peak())])

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a step that was measured; none if it was not needed."""
        if self.get(name) is None:
            return []
        seconds, most = self.get(name)
        return [Row(name, seconds, "s"), Row(f"{name}: peak of memory", most / _MB, "MB")]


class _Stages(Progress):
    """A progress that measures each stage of publishing, step by step. A context manager."""

    def __init__(self, steps: _Steps, label: str) -> None:
        self._steps = steps
        self._label = label
        self._stack = ExitStack()

    def __enter__(self) -> _Stages:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def stage(self, name: str, done: int, total: int) -> None:
        self._stack.close()
        say(f"  {name}: {done:,} of {total:,}")
        if done < total:
            name = name.replace(f"{_UNIT} ", "")
            self._stack.enter_context(self._steps.measuring(f"{self._label}{name}"))


class _Scale:
    """One run in its folder."""

    def __init__(self, task: _Task, work: Path, queries: int) -> None:
        self._task = task
        self._work = work
        self._queries: FloatArray = synthetic_vectors(queries, task.dimension, QUERIES_SEED)
        self._steps = _Steps(work / "steps.json")

    def figure(self) -> Figure:
        """Do all steps that are left, and return their figure."""
        task = self._task
        first = self._published("", task.rows, None)
        self._search("", first)
        all_rows = self._published(_ADDED, task.total, self._folder(first))
        self._search(_ADDED, all_rows)
        trained = [trained_file(self._folder(m), _UNIT).read_bytes() for m in (first, all_rows)]
        if trained[0] != trained[1]:
            raise BenchError("The index was trained again for the rows that were added.")
        rows: list[Row] = []
        for label in ("", _ADDED):
            for step in _STEPS:
                rows += self._steps.rows(f"{label}{step}")
            rows += map(Row.from_dict, self._steps.get(f"{label}search"))
        details = {
            "dimension": task.dimension,
            "dtype": task.dtype,
            "queries": len(self._queries),
            "nprobe": self._steps.get("nprobe"),
        }
        return Figure(
            f"{task.index}, {task.rows:,} rows, {task.added:,} added", tuple(rows), details
        )

    def _folder(self, manifest: Manifest) -> Path:
        return sidecar_folder(self._work / "vectors", manifest.placement)

    def _published(self, label: str, end: int, previous: Path | None) -> Manifest:
        """Publish the rows up to ``end`` unless they are, and return the manifest of their
        index."""
        self._write_shards(label, end)
        manifest = self._placed(label, end)
        if not (self._folder(manifest) / MANIFEST).exists():
            say(f"{end:,} rows: publishing {self._task.index}")
            numbers = [number for number, _, stop in self._task.shards() if stop <= end]
            with _Stages(self._steps, label) as progress:
                publish_sidecar(
                    stored_shards(self._work / "shards")[: len(numbers)],
                    self._work / f"placement-{end}",
                    self._work / "vectors",
                    encoder=encoder_of(self._task.dimension),
                    units=(_UNIT,),
                    dtype=self._task.dtype,
                    index=self._task.index,
                    manifest=manifest,
                    progress=progress,
                    previous=previous,
                )
        return manifest

    def _write_shards(self, label: str, end: int) -> None:
        folder = self._work / "shards"
        folder.mkdir(exist_ok=True)
        for number, first, stop in self._task.shards():
            if stop > end or shard_record(folder, number) is not None:
                continue
            if number % 10 == 0:
                say(f"writing shards: {first:,} of {end:,} rows")
            chunks = list(chunks_from(first, stop - first))
            vectors = synthetic_vectors(stop - first, self._task.dimension, number)
            with self._steps.measuring(f"{label}writing shards"):
                write_sentences(folder, number, chunks, vectors, dtype=self._task.dtype)

    def _placed(self, label: str, end: int) -> Manifest:
        """Write the placement of the rows up to ``end`` unless it is written, and return the
        manifest of their index."""
        folder = self._work / f"placement-{end}"
        manifest = folder / "manifest.json"
        if not manifest.exists():
            say(f"{end:,} rows: writing the placement")
            shutil.rmtree(folder, ignore_errors=True)
            chunks = 0
            with self._steps.measuring(f"{label}writing the placement"):
                with open_placement(folder, (_UNIT,), {}) as placement:
                    for _, first, stop in self._task.shards():
                        for chunk in chunks_from(first, stop - first) if stop <= end else ():
                            placement.add(chunk)
                            chunks += 1
                made = manifest_of(chunks, end, placement.digest)
            write_atomically(manifest, made.to_json().encode())
        return Manifest.from_json(manifest.read_text("utf-8"), str(manifest))

    # Searching

    def _search(self, label: str, manifest: Manifest) -> None:
        """Open and search the rows of an index, unless that is done, and keep the figures."""
        if self._steps.get(f"{label}search") is not None:
            return
        say(f"{manifest.sentences:,} rows: searching")
        rows = self._sizes(label, manifest)
        _evict(self._folder(manifest))
        for state in ("on disk", "in memory"):
            opening = timed(lambda: self._open(manifest).close())
            rows.append(Row(f"{label}opening, files {state}", opening, "s", target=OPENING_TARGET))
        sidecar = self._open(manifest)
        try:
            with self._steps.measuring(f"{label}searching in blocks, exactly"):
                exactly = self._exactly(sidecar)
            self._steps.keep("nprobe", sidecar.manifest.nprobe[_UNIT])
            for name, rescore in (("rescored", True), ("not rescored", False)):
                sidecar.nearest(_UNIT, self._queries, TOP, rescore=rescore)  # reads the files
                near: list[list[Nearest]] = []
                seconds: list[float] = []
                with self._steps.measuring(f"{label}searching, {name}"):
                    for query in self._queries:
                        began = time.perf_counter()
                        near += sidecar.nearest(_UNIT, query[None], TOP, rescore=rescore)
                        seconds.append(time.perf_counter() - began)
                share = recall(exactly, near)
                rows += [
                    Row(f"{label}recall@{TOP} of synthetic vectors, {name}", share, ""),
                    Row(f"{label}a query, {name}: median", percentile(seconds, 0.5) * 1e3, "ms"),
                    Row(f"{label}a query, {name}: 95 %", percentile(seconds, 0.95) * 1e3, "ms"),
                ]
        finally:
            sidecar.close()
        self._steps.keep(f"{label}search", [row.to_dict() for row in rows])

    def _open(self, manifest: Manifest) -> Sidecar:
        return open_vectors(self._work / "vectors", manifest, NAME)

    def _exactly(self, sidecar: Sidecar) -> list[list[Nearest]]:
        """Return the nearest rows of all rows, without the FAISS index."""
        folder, manifest = sidecar.path, sidecar.manifest
        dimension, rows = manifest.encoder.dimension, manifest.rows[_UNIT]
        mapped = MappedRows(manifest.shards_in(folder), _UNIT, dimension, manifest.dtype)
        texts = exact.RowTexts(
            map_array(ordinals_file(folder, _UNIT), "int64", (rows,)),
            map_array(keys_file(folder, _UNIT), "uint8", (rows, KEY_BYTES)),
        )
        best = exact.best_of_all(mapped, self._queries, TOP, None)
        return [
            exact.ranked(mapped, texts, query, candidates, TOP)
            for query, candidates in zip(self._queries, best, strict=True)
        ]

    def _sizes(self, label: str, manifest: Manifest) -> list[Row]:
        """Return the bytes a row of the vectors, of the FAISS index and of the other files."""
        folder = self._folder(manifest)
        files = {path.name: path.stat().st_size for path in folder.iterdir()}
        inverted = {
            path.name for path in (*index_files(folder, _UNIT), trained_file(folder, _UNIT))
        }
        vectors = {
            name
            for name in files
            if name.startswith("shard-") and name.endswith(vectors_role(_UNIT))
        }
        parts = {
            "vectors": vectors,
            "FAISS index": inverted,
            "ordinals, keys and placement": files.keys() - vectors - inverted,
        }
        return [
            Row(
                f"{label}bytes a row, {name}",
                sum(map(files.__getitem__, part)) / manifest.sentences,
                "B",
            )
            for name, part in parts.items()
        ]


def _evict(folder: Path) -> None:
    """Let the system forget the contents of files, so that they are read from the disk again."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

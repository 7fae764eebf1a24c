"""Cost of a condition on searches by vectors, by its share of matches.

    uv run --extra all python -m bench where
    uv run --extra all python -m bench where --sizes 100000 --no-ivf

Each passage has one generated vector, and words that a known share of all passages has. A search
with the condition is compared with the same search without one, in interleaved rounds; both over
flat vectors and over an inverted file. A condition is evaluated once for all searches, so that the
first search under it is measured apart. Times are processor time, so that other programs change
them little; with OPENBLAS_NUM_THREADS=1, idle threads add nothing. The recall of the inverted file,
against the flat vectors under the same condition, is that of generated vectors: random directions
around random centres. Without a condition, it shows how hard these vectors are to find.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import orjson

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.vectors.base import EncoderIdentity, FloatArray
from arag_search.vectors.faiss_index import lists_for
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.rounds import Side, Timings, interleaved
from bench.report.rows import Figure, Row, Target, circumstances, corpus_of, show
from bench.speed.vectors import encoder_of, synthetic_vectors
from bench.workbench import check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

SIZES = (100_000, 1_000_000)
SHARES = (0.001, 0.01, 0.1, 0.5, 1.0)
ROUNDS = 7
QUERIES = 20
TOP_K = 10
RECALL_TARGET = Target("at least", 0.95)
COST_TARGET = Target("at most", 2.0)
PLAIN = "no condition"
SEED = 1741

_MAX_LISTS = 4_096  # training more takes hours on two cores
_MOST_ALONE = 64  # texts: a batch of no more has the vectors of each alone, as of every encoder
_BYTES_A_PASSAGE = 4_000  # text, index and two sidecars


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen sizes and return the exit code."""
    parser = BenchParser("where", __doc__)
    add = parser.add_argument
    add("--sizes", type=positive, nargs="+", default=SIZES, metavar="PASSAGES")
    add("--dimension", type=positive, default=128)
    add("--queries", type=positive, default=QUERIES, metavar="N", help="queries in each round")
    add("--no-ivf", action="store_true", help="measure flat vectors alone")
    parser.add_rounds(ROUNDS)
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    for size in options.sizes:
        with tempfile.TemporaryDirectory(prefix="arag-where-", dir=options.work) as name:
            work = Path(name)
            check_room(work, size * _BYTES_A_PASSAGE)
            encoder = GeneratedEncoder(options.dimension)
            location = _indexed(size, work)
            factories = {"flat": "flat"}
            if not options.no_ivf:
                factories["inverted"] = f"IVF{min(_MAX_LISTS, lists_for(size))},Flat"
            for kind, factory in factories.items():
                say(f"{size:,} passages: {factory} vectors")
                embedding = EmbedOptions(
                    vectors=work / kind, units=("passage",), index=factory, workers=0
                )
                embed_index(location, encoder, embedding)
            nearest: dict[str, list[list[str]]] = {}
            for kind, factory in factories.items():
                with open_index(
                    location, vectors=work / kind, encoder=encoder, search_timeout_s=None
                ) as index:
                    figure = measure(index, kind, options.queries, options.rounds, nearest)
                show(options.json, [_with_factory(figure, factory)], run)
    return 0


def _with_factory(figure: Figure, factory: str) -> Figure:
    return Figure(figure.name, figure.rows, {**figure.details, "factory": factory})


class GeneratedEncoder:
    """An encoder whose vectors are generated from a hash of the text, or of the first of many texts
    that are encoded together."""

    cut_texts = 0

    def __init__(self, dimension: int) -> None:
        self.identity: EncoderIdentity = encoder_of(dimension)

    def encode(self, texts: Sequence[str]) -> FloatArray:
        import numpy as np

        if 1 < len(texts) <= _MOST_ALONE:
            return np.concatenate([self.encode([text]) for text in texts])
        first = hashlib.sha256("".join(texts[:1]).encode()).digest()
        seed = int.from_bytes(first[:6], "big")
        return synthetic_vectors(len(texts), self.identity.dimension, seed)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return self.encode(queries)

    def close(self) -> None:
        """Do nothing."""


def condition_of(share: float) -> str:
    """Return the condition that matches a share of the passages, a word."""
    return f"share{round(share * 1_000):04}"


def _passages(count: int) -> Iterator[bytes]:
    """Generate passages as JSON lines, each with the words of the shares that it belongs to."""
    from random import Random

    random = Random(SEED)
    for number in range(count):
        words = [condition_of(share) for share in SHARES if random.random() < share]
        text = f"Passage number {number} has the marks {' '.join(words)}."
        yield orjson.dumps({"id": str(number), "title": "", "text": text}) + b"\n"


def _indexed(size: int, work: Path) -> Path:
    """Build the index of generated passages, and return its location."""
    corpus, location = work / "corpus.jsonl", work / "index"
    with corpus.open("wb") as file:
        file.writelines(_passages(size))
    say(f"{size:,} passages: indexing")
    build_index([str(corpus)], location, BuildOptions(without=("sentences",)))
    corpus.unlink()
    return location


def measure(
    index: Index, kind: str, queries: int, rounds: int, nearest: dict[str, list[list[str]]]
) -> Figure:
    """Time searches under each condition against those without one.

    ``nearest`` holds the passages that flat vectors return by condition; those of ``kind`` "flat"
    are added, and others compared with them.
    """
    asked = [f"query {number}" for number in range(queries)]
    conditions: Mapping[str, str | None] = {
        PLAIN: None,
        **{f"{share:.1%}": condition_of(share) for share in SHARES},
    }
    rows: list[Row] = []
    recalls: list[Row] = []
    for name, where in conditions.items():
        results = [_nearest(index, query, where) for query in asked]
        if kind == "flat":
            nearest[name] = results
        else:
            target = RECALL_TARGET if where is not None and name == f"{SHARES[0]:.1%}" else None
            recall = _recall(nearest[name], results)
            recalls.append(Row(f"recall@{TOP_K}, {name}", recall, "", target=target))
    timings = _timings(index, asked, conditions, rounds)
    for name, where in conditions.items():
        per_query = timings.median_s(name) * 1_000 / queries
        rows.append(Row(f"a query, {name}", per_query, "ms"))
        if where is not None:
            ratio = timings.ratio(name, PLAIN)
            rows.append(Row.of_ratio(f"{name} over {PLAIN}", ratio, COST_TARGET))
            first = timings.median_s(f"first {name}") * 1_000
            rows.append(Row(f"the first query, {name}", first, "ms"))
    passages = index.manifest.chunks
    matches = {
        name: index.logical_search(where, top_k=1).total
        for name, where in conditions.items()
        if where is not None
    }
    details = {
        "dimension": index.open_vectors().encoder.identity.dimension,
        "queries": queries,
        "matches": matches,
        "corpus": corpus_of(index.manifest),
    }
    return Figure(f"{kind}, {passages:,} passages", (*rows, *recalls), details)


def _timings(
    index: Index, asked: Sequence[str], conditions: Mapping[str, str | None], rounds: int
) -> Timings:
    """Time all queries under each condition, and the first query under a form of it that was not
    asked before."""
    index.encode_queries(asked)
    sides: dict[str, Side] = {}
    new = count()
    for name, where in conditions.items():
        sides[name] = lambda w=where: _spent(lambda: [_nearest(index, query, w) for query in asked])
        if where is not None:
            sides[f"first {name}"] = lambda w=where: _spent(
                lambda: _nearest(index, asked[0], f"{w} AND NOT absent{next(new)}")
            )
    return interleaved(sides, rounds)


def _spent(work: Callable[[], object]) -> float:
    """Run ``work`` and return the seconds of the processor, in all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _nearest(index: Index, query: str, where: str | None) -> list[str]:
    result = index.naive_embedding_search(query, top_k=TOP_K, where=where, snippets=False)
    if len(result.hits) < TOP_K:
        raise BenchError("A search finds too few passages.", where=str(where))
    return [hit.id for hit in result.hits]


def _recall(expected: Sequence[Sequence[str]], got: Sequence[Sequence[str]]) -> float:
    """Return the mean share of the passages of exact searches that were found."""
    shares = [
        len(set(exact) & set(hits)) / len(exact) for exact, hits in zip(expected, got, strict=True)
    ]
    return sum(shares) / len(shares)

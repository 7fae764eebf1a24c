"""Time of our encoder over that of a bare SentenceTransformer, and of ONNX files.

    python -m bench embedding
    python -m bench embedding --sentences 500 --rounds 3 --json embedding.json

All encode the same sentences in the same batches. Hybrid searches by the model and by its ONNX
files, which are exported first, are timed on the same index. Prints a table and adds the figure to
the file of results. See bench/studies/vectors.md.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from arag_search.corpus import Chunk
from arag_search.errors import EncoderNotFoundError
from arag_search.questions.files import load_questions
from arag_search.search.index import Index, open_index
from arag_search.vectors.base import Encoder, EncoderIdentity, FloatArray, unit_rows
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE, local_folder
from arag_search.vectors.encoders.onnx import OnnxEncoder, export_of
from arag_search.vectors.encoders.sentence_transformer import (
    DEFAULT_BATCH_SIZE,
    SentenceTransformerEncoder,
)
from arag_search.vectors.opening import QueryCache
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_in, questions_in
from bench.report.fingerprints import encoder_of
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say, set_up
from index_jobs.embedding.export import export_model
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.plan import EmbedOptions

TARGET = Target("at least", 0.9)
HYBRID_TARGET = Target("at least", 2.5)
SENTENCES = 2_000
ROUNDS = 5
QUERIES = 100
SEED = 1

_TOLERANCE = 1e-6


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed target is not a failure."""
    parser = BenchParser("embedding", __doc__)
    add = parser.add_argument
    add("--encoder", default=OFFLINE_PACKAGE, help="the encoder: a folder or an installed package")
    parser.add_default("--sentences", positive, SENTENCES, "sentences to encode")
    parser.add_default("--batch-size", positive, DEFAULT_BATCH_SIZE, "sentences in a batch")
    parser.add_rounds(ROUNDS)
    parser.add_data()
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    corpus = corpus_in(options.data)
    with set_up(corpus, options.work) as bench, ExitStack() as stack:
        sentences = drawn(bench.chunks, options.sentences)
        run = circumstances(command, bench.manifest)
        for package in ("sentence-transformers", "torch", "onnxruntime"):
            run[package] = version(package)
        questions = questions_in(corpus.parent)
        asked = sentences[:QUERIES]
        if questions.is_file():
            asked = [question.text for question in load_questions(questions)[:QUERIES]]

        def more(encoder: Encoder) -> dict[str, Side]:
            revision = encoder.identity.revision
            folder = export_of(revision) or Path(export_model(options.encoder).folder)
            onnx = OnnxEncoder(options.encoder, folder=folder, query_instruction="")
            encoders: dict[str, Encoder] = {"torch": encoder, "ONNX": onnx}
            sides = stack.enter_context(hybrid_sides(str(bench.index), encoders, asked))
            return {**_query_sides("ONNX", onnx, sentences), **sides}

        figure = measure(
            options.encoder, sentences, options.rounds, batch_size=options.batch_size, more=more
        )
    show(options.json, [figure], run)
    return 0


class _Generated:
    """An encoder with the identity of another one, and generated vectors: how long a search takes
    does not depend on them."""

    def __init__(self, identity: EncoderIdentity) -> None:
        self.identity = identity
        self._random = np.random.default_rng(SEED)

    def encode(self, texts: Sequence[str]) -> FloatArray:
        rows = self._random.normal(size=(len(texts), self.identity.dimension))
        return unit_rows(rows, texts, "generated vectors")

    encode_queries = encode

    def close(self) -> None:
        pass


@contextmanager
def hybrid_sides(
    location: str, encoders: Mapping[str, Encoder], questions: Sequence[str]
) -> Generator[dict[str, Side]]:
    """Yield the sides of hybrid searches with each encoder, all of the same identity, over the same
    vectors of passages. No query is in a cache."""
    first = next(iter(encoders.values()))
    embed_index(location, _Generated(first.identity), EmbedOptions(units=("passage",)))
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_index(location, encoder=encoder))
            for name, encoder in encoders.items()
        }

        def searched(index: Index) -> float:
            cast(QueryCache, index.open_vectors().encoder).forget()
            return timed(lambda: [index.hybrid_search(question) for question in questions])

        yield {
            f"hybrid, {name}": functools.partial(searched, index) for name, index in opened.items()
        }


def drawn(chunks: Sequence[Chunk], count: int) -> list[str]:
    """Return ``count`` sentences from all over the corpus, in its order; all if there are fewer."""
    sentences = [
        text for chunk in chunks for sentence in chunk.sentences() if (text := sentence.strip())
    ]
    step = max(len(sentences) / count, 1)
    return [sentences[int(number * step)] for number in range(min(count, len(sentences)))]


def measure(
    name: str,
    sentences: Sequence[str],
    rounds: int,
    *,
    batch_size: int,
    more: Callable[[Encoder], Mapping[str, Side]] = lambda encoder: {},
) -> Figure:
    """Measure the throughput of both and the gain of sorting batches by length, and compare
    vectors. ``more`` returns the sides of ONNX files and of hybrid searches.

    Raises BenchError if both give different vectors, and what encoders raise.
    """
    folder = local_folder(name)
    if folder is None:
        raise EncoderNotFoundError(
            f"Model {name!r} is not on this machine.", allowed="a folder, an installed package"
        )
    encoder = SentenceTransformerEncoder(name, batch_size=batch_size, query_instruction="")
    bare = _bare(folder, batch_size)
    difference = float(abs(encoder.encode(sentences) - bare(sentences)).max())
    if difference > _TOLERANCE:
        raise BenchError(f"The bare model gives other vectors, by up to {difference:.1e}.")
    say(f"embedding: {len(sentences):,} sentences, 1 + {rounds} rounds")
    sides = {**_sides(encoder, bare, sentences, batch_size), **more(encoder)}
    timings = interleaved(sides, rounds)
    return _figure(timings, encoder, sentences, difference)


def _bare(folder: Path, batch_size: int) -> Callable[[Sequence[str]], Any]:
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(str(folder), local_files_only=True)
    return lambda texts: model.encode(list(texts), batch_size=batch_size, show_progress_bar=False)


def _sides(
    encoder: SentenceTransformerEncoder,
    bare: Callable[[Sequence[str]], Any],
    sentences: Sequence[str],
    batch_size: int,
) -> dict[str, Side]:
    batches = [sentences[at : at + batch_size] for at in range(0, len(sentences), batch_size)]
    queries = sentences[:QUERIES]

    def in_the_order_given() -> None:
        for batch in batches:
            bare(batch)

    return {
        "ours": lambda: timed(lambda: encoder.encode(sentences)),
        "bare": lambda: timed(lambda: bare(sentences)),
        "in the order given": lambda: timed(in_the_order_given),
        "queries, ours": lambda: _one_by_one(encoder.encode_queries, queries),
        "queries, bare": lambda: _one_by_one(bare, queries),
    }


def _query_sides(name: str, encoder: Encoder, sentences: Sequence[str]) -> dict[str, Side]:
    queries = sentences[:QUERIES]
    return {
        name: lambda: timed(lambda: encoder.encode(sentences)),
        f"queries, {name}": lambda: _one_by_one(encoder.encode_queries, queries),
        f"queries together, {name}": lambda: timed(lambda: encoder.encode_queries(queries)),
    }


def _one_by_one(encode: Callable[[Sequence[str]], object], queries: Sequence[str]) -> float:
    return timed(lambda: [encode([query]) for query in queries])


def _figure(
    timings: Timings,
    encoder: SentenceTransformerEncoder,
    sentences: Sequence[str],
    difference: float,
) -> Figure:
    count, queries = len(sentences), min(QUERIES, len(sentences))
    rows = [
        Row.of_ratio("throughput of ours to the bare model", timings.ratio("bare", "ours"), TARGET),
        Row.of_ratio(
            "the same with batches in the order given", timings.ratio("bare", "in the order given")
        ),
        Row.of_ratio("one query alone", timings.ratio("queries, bare", "queries, ours")),
        *(Row(name, count / timings.median_s(name), "/s") for name in ("ours", "bare")),
        *(
            Row(f"one query, {name}", timings.median_s(f"queries, {name}") / queries * 1000, "ms")
            for name in ("ours", "bare")
        ),
        Row("largest difference of two numbers", difference, ""),
    ]
    if "hybrid, ONNX" in timings.seconds:
        rows[-1:-1] = _rows_of_onnx(timings, queries)
    details = {
        "seconds": timings.seconds,
        "sentences": count,
        "mean_characters": sum(map(len, sentences)) / count,
        "encoder": encoder_of(encoder.identity),
    }
    return Figure("embedding", tuple(rows), details)


def _rows_of_onnx(timings: Timings, queries: int) -> list[Row]:
    ratio = timings.ratio
    alone, together = "queries, ONNX", "queries together, ONNX"
    return [
        Row.of_ratio("hybrid search, ONNX to torch", ratio("hybrid, torch", "hybrid, ONNX"),
                     HYBRID_TARGET),
        Row.of_ratio("one query, ONNX to torch", ratio("queries, ours", alone)),
        Row.of_ratio("queries in one pass, to one by one", ratio(alone, together)),
        Row.of_ratio("throughput of ONNX to ours", ratio("ours", "ONNX")),
        *(
            Row(f"{what}, {name}", timings.median_s(f"{side}, {name}") / queries * 1000, "ms")
            for what, side, name in (
                ("one query", "queries", "ONNX"),
                ("hybrid search", "hybrid", "torch"),
                ("hybrid search", "hybrid", "ONNX"),
            )
        ),
    ]  # fmt: skip

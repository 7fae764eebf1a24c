"""Time of our encoder over that of a bare SentenceTransformer.

    python -m bench embedding
    python -m bench embedding --sentences 500 --rounds 3 --json embedding.json

Both encode the same sentences in the same batches. Prints a table and adds the figure to the file
of results. See bench/studies/vectors.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk
from arag_search.errors import EncoderNotFoundError
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE, local_folder
from arag_search.vectors.encoders.sentence_transformer import (
    DEFAULT_BATCH_SIZE,
    SentenceTransformerEncoder,
)
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_in
from bench.report.fingerprints import encoder_of
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say, set_up

TARGET = Target("at least", 0.9)
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
    with set_up(corpus, options.work) as bench:
        sentences = drawn(bench.chunks, options.sentences)
        run = circumstances(command, bench.manifest)
        for package in ("sentence-transformers", "torch"):
            run[package] = version(package)
        figure = measure(options.encoder, sentences, options.rounds, batch_size=options.batch_size)
    show(options.json, [figure], run)
    return 0


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
) -> Figure:
    """Measure the throughput of both and the gain of sorting batches by length, and compare
    vectors.

    Raises BenchError if both give different vectors, and what encoders raise.
    """
    folder = local_folder(name)
    if folder is None:
        raise EncoderNotFoundError(
            f"Model {name!r} is not on this machine.", allowed="a folder, an installed package"
        )
    encoder = SentenceTransformerEncoder(
        name, batch_size=batch_size, query_prefix="", document_prefix=""
    )
    bare = _bare(folder, batch_size)
    difference = float(abs(encoder.encode(sentences) - bare(sentences)).max())
    if difference > _TOLERANCE:
        raise BenchError(f"The bare model gives other vectors, by up to {difference:.1e}.")
    say(f"embedding: {len(sentences):,} sentences, 1 + {rounds} rounds")
    timings = interleaved(_sides(encoder, bare, sentences, batch_size), rounds)
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
    details = {
        "seconds": timings.seconds,
        "sentences": count,
        "mean_characters": sum(map(len, sentences)) / count,
        "encoder": encoder_of(encoder.identity),
    }
    return Figure("embedding", tuple(rows), details)

"""Our encoder against a bare SentenceTransformer over the same sentences in the same batches.

    python -m bench embedding
    python -m bench embedding --sentences 500 --rounds 3 --json embedding.json

Prints a table, and adds what it measured to a JSON file. See bench/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk
from arag_search.errors import AragError, EncoderNotFoundError
from arag_search.vectors.encoders.hub import OFFLINE_PACKAGE
from arag_search.vectors.encoders.model_folder import local_folder
from arag_search.vectors.encoders.sentence_transformer import (
    DEFAULT_BATCH_SIZE,
    SentenceTransformerEncoder,
)
from bench import RESULTS_FOLDER, BenchError
from bench.arguments import command_line, positive
from bench.report.fingerprints import encoder_of
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, table, write_results
from bench.workbench import CORPUS, say, set_up

TARGET = Target("at least", 0.9)
SENTENCES = 2_000
ROUNDS = 5
QUERIES = 100
DATA = Path("..") / "shared" / "data"
RESULTS = RESULTS_FOLDER / "embedding.json"

_TOLERANCE = 1e-6


def main(arguments: Sequence[str]) -> int:
    """Measure and write the results. Exit code 1 for a failure; a missed target is none."""
    given = _parser().parse_args(arguments)
    try:
        with set_up(given.data / CORPUS, given.work) as bench:
            sentences = drawn(bench.chunks, given.sentences)
            manifest = bench.manifest
        figure = measure(given.encoder, sentences, given.rounds, batch_size=given.batch_size)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    run = circumstances(command_line("embedding", arguments), manifest)
    for package in ("sentence-transformers", "torch"):
        run[package] = version(package)
    write_results(given.json, [figure], run)
    print(table([figure]))
    return 0


def drawn(chunks: Sequence[Chunk], count: int) -> list[str]:
    """So many sentences from all over the corpus, in its order; all where there are fewer."""
    sentences = [text for chunk in chunks for one in chunk.sentences() if (text := one.strip())]
    step = max(len(sentences) / count, 1)
    return [sentences[int(number * step)] for number in range(min(count, len(sentences)))]


def measure(name: str, sentences: Sequence[str], rounds: int, *, batch_size: int) -> Figure:
    """Throughput of both, and what the batches sorted by length bring; vectors compared.

    Raises BenchError where both give different vectors, and what encoders raise.
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

    def one_by_one(encode: Callable[[Sequence[str]], object]) -> float:
        return timed(lambda: [encode([query]) for query in queries])

    return {
        "ours": lambda: timed(lambda: encoder.encode(sentences)),
        "bare": lambda: timed(lambda: bare(sentences)),
        "in the order given": lambda: timed(in_the_order_given),
        "queries, ours": lambda: one_by_one(encoder.encode_queries),
        "queries, bare": lambda: one_by_one(bare),
    }


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench embedding",
        description="Measure our encoder against a bare SentenceTransformer.",
    )
    parser.add_argument("--encoder", default=OFFLINE_PACKAGE, help="a folder or installed package")
    parser.add_argument("--sentences", type=positive, default=SENTENCES)
    parser.add_argument("--batch-size", type=positive, default=DEFAULT_BATCH_SIZE)
    parser.add_argument("--rounds", type=positive, default=ROUNDS)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the corpora")
    parser.add_argument("--work", type=Path, help="folder for temporary files")
    parser.add_argument("--json", type=Path, default=RESULTS, help="file of results")
    return parser

"""Evidence and tokens of one search with the question itself, by kind of search.

    python -m bench retrieval
    python -m bench retrieval --sets musique --questions 20 --json retrieval.json
    python -m bench retrieval --judged DIR --queries FILE

Prints the figure and adds it to the file of results.
See bench/studies/retrieval.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from arag_search.evaluation.bootstrap import LEVEL, RESAMPLES, SEED
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive
from bench.data import corpus_file, sets_in
from bench.quality import judged
from bench.quality.data_sets import SETS, drawn, open_kept
from bench.quality.first_stage import (
    BY_WORDS,
    CONTRAST_LEVEL,
    MEASURES,
    SEARCHES,
    Estimates,
    Measured,
    estimates,
    measure,
    verdict,
)
from bench.report.fingerprints import encoder_of, questions_of
from bench.report.rows import Figure, Row, circumstances, corpus_of, show
from bench.workbench import say

NAME = "retrieval"


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add(
        "--sets",
        type=_names,
        default=SETS,
        metavar="A,B",
        help=f"folders of --data with corpus.jsonl and questions.jsonl (default {','.join(SETS)})",
    )
    add(
        "--searches",
        type=names_from(SEARCHES),
        default=tuple(SEARCHES),
        metavar="A,B",
        help=f"searches to measure: {','.join(SEARCHES)} (default all); "
        f"{','.join(sorted(BY_WORDS))} need no vectors",
    )
    add(
        "--questions",
        type=positive,
        metavar="N",
        help="questions of each data set, drawn by a seed",
    )
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of the vectors")
    add(
        "--judged",
        type=Path,
        metavar="DIR",
        help="measure the rankings of a folder of BEIR or MTEB instead: corpus, queries and "
        "judgements",
    )
    add(
        "--queries",
        type=Path,
        metavar="FILE",
        help="with --judged: logical queries by the ids of the needs, such as a model wrote",
    )
    parser.add_data()
    parser.add_kept_work("indexes and vectors", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    if options.queries is not None and options.judged is None:
        raise BenchError("--queries has no effect here.", allowed="--queries with --judged DIR")
    if options.judged is not None:
        return judged.measured(options, command)
    sets: list[Measured] = []
    made_of: dict[str, dict[str, Any]] = {}
    for name, folder in sets_in(options.data, options.sets).items():
        everything = load_questions(folder / "questions.jsonl")
        questions = drawn(everything, options.questions, name)
        encoder = None if set(options.searches) <= BY_WORDS else options.encoder
        with open_kept(corpus_file(folder), options.work / name, encoder) as index:
            sets.append(measure(name, index, questions, say, options.searches))
            made_of[name] = fingerprints(index, everything, questions, encoder)
    estimated = estimates(sets)
    run = circumstances(command, seed=SEED)
    if not set(options.searches) <= BY_WORDS:
        run |= {name: version(name) for name in ("faiss-cpu", "numpy", "sentence-transformers")}
    show(options.json, [figure(sets, estimated, made_of)], run)
    return 0


def fingerprints(
    index: Index,
    everything: Sequence[Question],
    asked: Sequence[Question],
    encoder: str | None,
) -> dict[str, Any]:
    """Return what identifies the index, the vectors, and the questions asked of those in the
    file."""
    return {
        "corpus": corpus_of(index.manifest),
        "encoder": None if encoder is None else encoder_of(index.open_vectors().encoder.identity),
        "questions": {**questions_of(asked), "file": questions_of(everything)},
    }


def figure(
    sets: Sequence[Measured], estimated: Estimates, made_of: dict[str, dict[str, Any]]
) -> Figure:
    """Return all estimates as rows, and the values of every question as details."""
    rows = [
        Row(
            f"{name}: {column.what}, {column.measure}",
            interval.value,
            "",
            interval.low,
            interval.high,
        )
        for name, columns in estimated.items()
        for column, interval in columns.items()
    ]
    details = {
        "intervals": {
            "resamples": RESAMPLES,
            "seed": SEED,
            "level": LEVEL,
            "level_of_differences": CONTRAST_LEVEL,
        },
        "verdicts": {
            f"{name}: {column.what}, {column.measure}": verdict(interval, column.measure)
            for name, columns in estimated.items()
            for column, interval in columns.items()
            if column.is_difference
        },
        "sets": {measured.name: {**made_of[measured.name], **_kept(measured)} for measured in sets},
    }
    return Figure(NAME, tuple(rows), details)


def _kept(measured: Measured) -> dict[str, Any]:
    """Evidence, what found nothing, and a line a question: its values by search."""
    values = {
        question.id: {
            kind: [round(value, 4) for value in answers[at].values]
            for kind, answers in measured.answers.items()
        }
        for at, question in enumerate(measured.questions)
    }
    return {
        "evidence": measured.evidence._asdict(),
        "found_nothing": {kind: _nothing(measured, kind) for kind in measured.answers},
        "refused": {
            kind: sum(a.refused for a in answers) for kind, answers in measured.answers.items()
        },
        "measures": list(MEASURES),
        "values": values,
    }


def _nothing(measured: Measured, kind: str) -> int:
    return sum(not answer.hits for answer in measured.answers[kind])


# Command line


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("no data set is named")
    return names

"""First-stage retrieval: how much evidence one search with the question itself finds, in how many
tokens, by words and by vectors.

    python -m bench retrieval
    python -m bench retrieval --sets musique --questions 20 --json retrieval.json

Prints tables in Markdown, and adds what it measured to a JSON file. See bench/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from arag_search.engines.jars import cache_folder
from arag_search.errors import AragError
from arag_search.evaluation.bootstrap import LEVEL, RESAMPLES, SEED, Interval
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index
from arag_search.vectors.encoders.hub import OFFLINE_PACKAGE
from bench import RESULTS_FOLDER
from bench.arguments import command_line, positive
from bench.quality.data_sets import DATA, SETS, drawn, open_kept
from bench.quality.first_stage import (
    BY_WORDS,
    CONTRAST_LEVEL,
    DIFFERENCES,
    MEASURES,
    SEARCHES,
    Column,
    Estimates,
    Measured,
    estimates,
    measure,
    shown,
    verdict,
)
from bench.report.fingerprints import encoder_of, questions_of
from bench.report.rows import Figure, Row, circumstances, corpus_of, write_results
from bench.workbench import say

NAME = "retrieval"
RESULTS = RESULTS_FOLDER / "retrieval.json"


def main(arguments: Sequence[str]) -> int:
    """Measure what the arguments name. Exit code 1 for a failure."""
    given = _parser().parse_args(arguments)
    work: Path = given.work or cache_folder() / "bench" / NAME
    sets: list[Measured] = []
    made_of: dict[str, dict[str, Any]] = {}
    try:
        for name in given.sets:
            everything = load_questions(given.data / name / "questions.jsonl")
            questions = drawn(everything, given.questions, name)
            corpus = given.data / name / "corpus.jsonl"
            encoder = None if set(given.searches) <= BY_WORDS else given.encoder
            with open_kept(corpus, work / name, encoder) as index:
                sets.append(measure(name, index, questions, say, given.searches))
                made_of[name] = fingerprints(index, everything, questions, encoder)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    found = estimates(sets)
    run = circumstances(command_line("retrieval", arguments), seed=SEED)
    if not set(given.searches) <= BY_WORDS:
        run |= {name: version(name) for name in ("faiss-cpu", "numpy", "sentence-transformers")}
    write_results(given.json, [figure(sets, found, made_of)], run)
    print(tables(sets, found, given.encoder))
    return 0


def fingerprints(
    index: Index,
    everything: Sequence[Question],
    asked: Sequence[Question],
    encoder: str | None,
) -> dict[str, Any]:
    """What was searched, by which vectors, and what was asked of all that the file has."""
    return {
        "corpus": corpus_of(index.manifest),
        "encoder": None if encoder is None else encoder_of(index.open_vectors().encoder.identity),
        "questions": {**questions_of(asked), "file": questions_of(everything)},
    }


def figure(
    sets: Sequence[Measured], found: Estimates, made_of: dict[str, dict[str, Any]]
) -> Figure:
    """All estimates, and the values of every question."""
    rows = [
        Row(f"{name}: {column.what}, {column.measure}", each.value, "", each.low, each.high)
        for name, columns in found.items()
        for column, each in columns.items()
    ]
    details = {
        "intervals": {
            "resamples": RESAMPLES,
            "seed": SEED,
            "level": LEVEL,
            "level_of_differences": CONTRAST_LEVEL,
        },
        "verdicts": {
            f"{name}: {column.what}, {column.measure}": verdict(each, column.measure)
            for name, columns in found.items()
            for column, each in columns.items()
            if column.is_difference
        },
        "sets": {one.name: {**made_of[one.name], **_kept(one)} for one in sets},
    }
    return Figure(NAME, tuple(rows), details)


def _kept(one: Measured) -> dict[str, Any]:
    """Evidence, what found nothing, and a line a question: its values by search."""
    values = {
        question.id: {
            kind: [round(value, 4) for value in answers[at].values]
            for kind, answers in one.answers.items()
        }
        for at, question in enumerate(one.questions)
    }
    return {
        "evidence": one.evidence._asdict(),
        "found_nothing": {kind: _nothing(one, kind) for kind in one.answers},
        "refused": {kind: sum(a.refused for a in found) for kind, found in one.answers.items()},
        "measures": list(MEASURES),
        "values": {id: orjson.Fragment(orjson.dumps(each)) for id, each in values.items()},
    }


# Tables


def tables(sets: Sequence[Measured], found: Estimates, encoder: str) -> str:
    """Means, differences, and what a reader must know of them, in Markdown."""
    searches = list(sets[0].answers)
    lines = [
        f"First-stage retrieval, vectors of {encoder}. In brackets: {LEVEL:.0%} intervals.",
        "",
        *_head("search"),
        *_lines(found, searches, differences=False),
        "",
        f"Paired differences. In brackets: {CONTRAST_LEVEL:.2%} intervals, which hold together at"
        f" {LEVEL:.0%} for each data set. Not resolved: 0 lies in the interval; beside it the"
        " smallest difference that the questions could resolve.",
        "",
        *_head("difference"),
        *_lines(found, [what for what in DIFFERENCES if _is_found(found, what)], differences=True),
        "",
        *map(_note, sets),
    ]
    return "\n".join(lines)


def _is_found(found: Estimates, what: str) -> bool:
    return any(column.what == what for columns in found.values() for column in columns)


def _head(what: str) -> list[str]:
    cells = ("data set", what, *MEASURES)
    return [_line(cells), _line(["---"] * len(cells))]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _lines(found: Estimates, whats: Sequence[str], *, differences: bool) -> list[str]:
    return [
        _line(
            [name, what, *(_cell(columns[Column(what, one)], one, differences) for one in MEASURES)]
        )
        for name, columns in found.items()
        for what in whats
    ]


def _cell(each: Interval, measure: str, is_difference: bool) -> str:
    plus = "+" if is_difference and each.value > 0 else ""
    value, low, high = (shown(number, measure) for number in (each.value, each.low, each.high))
    unresolved = is_difference and not each.is_resolved
    return f"{plus}{value} [{low}, {high}]" + (f" {verdict(each, measure)}" if unresolved else "")


def _note(one: Measured) -> str:
    """How many questions, and what of their evidence cannot be found or is found too easily."""
    evidence = one.evidence
    nothing = [f"{kind} {count}" for kind in one.answers if (count := _nothing(one, kind))]
    return (
        f"- {one.name}: {len(one.questions):,} questions with {evidence.titles:,} titles of"
        f" evidence, {evidence.unresolved:,} of which ({evidence.questions:,} questions) no passage"
        f" has: they count as not found. {evidence.shared:,} titles are those of several passages,"
        f" any of which counts. Questions without a hit: {', '.join(nothing) or 'none'}."
    )


def _nothing(one: Measured, kind: str) -> int:
    return sum(not answer.hits for answer in one.answers[kind])


# Command line


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("no data set is named")
    return names


def _searches(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if not set(names) <= set(SEARCHES):
        raise argparse.ArgumentTypeError(f"{text} is not of {', '.join(SEARCHES)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench retrieval",
        description="Measure the evidence that one search with the question finds.",
    )
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
        type=_searches,
        default=tuple(SEARCHES),
        metavar="A,B",
        help=f"of {','.join(SEARCHES)} (default all); {','.join(sorted(BY_WORDS))} need no vectors",
    )
    add("--questions", type=positive, metavar="N", help="so many of each, drawn by a seed")
    add("--encoder", default=OFFLINE_PACKAGE, help="of the vectors (default %(default)s)")
    add("--data", type=Path, default=DATA, help="folder of the data sets (default %(default)s)")
    add("--work", type=Path, help="where indexes and vectors are kept (default: in the cache)")
    add("--json", type=Path, default=RESULTS, help="file of results (default bench/results)")
    return parser

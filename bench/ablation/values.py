"""All values of an ablation in tables: one row per question, one column per condition, seeds
averaged."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import BenchError
from bench.ablation.cells import INTENTS, VERDICT, Cell, CellRow, Key, read_cell
from bench.ablation.judging.failures import FailureVerdict, failure_verdict_counts
from bench.ablation.judging.intents import (
    Intent,
    IntentMeasures,
    Intents,
    intent_measures,
)
from bench.ablation.measure import comparable

Table = NDArray[np.float64]

SET = "set"
Condition = tuple[tuple[str, str], ...]
"""Factor and level of every factor but the data set, in one order."""

COUNTED = ("searches", "zero_hits", "refused", "repeated_tokens", "failed_tokens")
"""Details that are added up over the questions of a cell."""


def condition_of(key: Key) -> Condition:
    """Return a key without its data set."""
    return tuple((factor, level) for factor, level in key.items() if factor != SET)


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """The properties of a question."""

    id: str
    type: str | None
    unresolved: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over a cell's rows. ``failures`` are wrong answers by their
    category, ``counts`` are by name in COUNTED, None if no row has them. ``intents`` are the
    measures of searches for the same fact, and ``verdicts`` counts of categories of wrong answers,
    as a model judged them; None and empty if none did."""

    rows: int
    failed: int
    failures: Mapping[str, int]
    counts: Mapping[str, float | None]
    intents: IntentMeasures | None = None
    verdicts: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class SetValues:
    """The values of one data set.

    ``tables`` are by measure, of shape (questions, conditions), in the scale in which the measure
    is compared (logarithms for a ratio); NaN marks what could not be measured.
    """

    name: str
    questions: tuple[QuestionLine, ...]
    conditions: tuple[Condition, ...]
    tables: Mapping[str, Table]
    totals: Mapping[Condition, Totals]
    curves: Mapping[Condition, Sequence[Sequence[tuple[float, float]]]]
    fingerprints: Mapping[Condition, Mapping[str, str]]

    @property
    def types(self) -> list[str | None]:
        """The types of the questions, within which they are drawn again."""
        return [question.type for question in self.questions]


def load_values(
    folder: Path, keys: Sequence[Key], measures: Sequence[str]
) -> tuple[list[SetValues], list[Key]]:
    """Load the values of all data sets, and return them with the keys of the missing cells.

    Conditions without a cell for every data set are left out. Raises BenchError if no condition is
    complete, if cells of one data set have different questions, and for broken files.
    """
    paths = {number: folder / Cell(key, {}).file_name for number, key in enumerate(keys)}
    missing = [key for number, key in enumerate(keys) if not paths[number].is_file()]
    lacking = {condition_of(key) for key in missing}
    by_set: dict[str, list[tuple[Cell, list[CellRow]]]] = defaultdict(list)
    for number, key in enumerate(keys):
        if condition_of(key) not in lacking:
            by_set[key.get(SET, "")].append(read_cell(paths[number]))
    if not by_set:
        raise BenchError(
            "There is no condition of which all data sets were measured.",
            where=str(folder),
            do="Let the suite run to its end.",
        )
    return [_set_values(name, cells, measures) for name, cells in by_set.items()], missing


def _set_values(
    name: str, cells: Sequence[tuple[Cell, list[CellRow]]], measures: Sequence[str]
) -> SetValues:
    lines = _questions(name, cells)
    order = {question.id: at for at, question in enumerate(lines)}
    conditions = tuple(condition_of(cell.key) for cell, _ in cells)
    tables = {measure: np.full((len(lines), len(cells)), np.nan) for measure in measures}
    for column, (_, rows) in enumerate(cells):
        for measure, table in tables.items():
            _fill(table[:, column], rows, order, measure)
    return SetValues(
        name,
        lines,
        conditions,
        tables,
        {condition: _totals(rows) for condition, (_, rows) in zip(conditions, cells, strict=True)},
        {condition: _curves(rows) for condition, (_, rows) in zip(conditions, cells, strict=True)},
        {
            condition: cell.fingerprints
            for condition, (cell, _) in zip(conditions, cells, strict=True)
        },
    )


def _questions(name: str, cells: Sequence[tuple[Cell, list[CellRow]]]) -> tuple[QuestionLine, ...]:
    """Return the questions of the first cell of a data set; all other cells must have the same."""
    lines: dict[str, QuestionLine] = {}
    for row in cells[0][1]:
        unresolved = bool(row.details.get("unresolved"))
        lines.setdefault(row.question_id, QuestionLine(row.question_id, row.type, unresolved))
    for cell, rows in cells:
        if {row.question_id for row in rows} != lines.keys():
            raise BenchError(
                f"The cells of {name or 'the data set'} have other questions.",
                where=", ".join(f"{factor}={level}" for factor, level in cell.key.items()),
                do="Run the suite again, so that all of them are measured anew.",
            )
    return tuple(lines.values())


def _fill(column: Table, rows: Sequence[CellRow], order: Mapping[str, int], measure: str) -> None:
    """Write the mean over the seeds of each question to the column."""
    by_question: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        value = row.values.get(measure)
        if value is not None:
            by_question[row.question_id].append(value)
    is_ratio = comparable(measure).scale == "ratio"
    for question, values in by_question.items():  # a few numbers each: plain ones are quicker
        scaled = [math.log(max(value, 1.0)) for value in values] if is_ratio else values
        column[order[question]] = math.fsum(scaled) / len(scaled)


def _totals(rows: Sequence[CellRow]) -> Totals:
    def total(name: str) -> float | None:
        values: list[Any] = [row.details[name] for row in rows if name in row.details]
        return float(sum(values)) if values else None

    failed = sum(bool(row.details.get("failed")) for row in rows)
    failures = Counter(str(failure) for row in rows if (failure := row.details.get("failure")))
    judged = [row.details[INTENTS] for row in rows if INTENTS in row.details]
    verdicts = {
        f"{row.question_id} {row.seed}": FailureVerdict(**row.details[VERDICT])
        for row in rows
        if VERDICT in row.details
    }
    return Totals(
        len(rows),
        failed,
        dict(failures),
        {name: total(name) for name in COUNTED},
        intent_measures(map(_intents, judged)) if judged else None,
        failure_verdict_counts(verdicts),
    )


def _intents(values: Sequence[Mapping[str, Any]] | None) -> Intents:
    """Read the intents of a record from JSON."""
    if values is None:
        return None
    return tuple(Intent(**{name: tuple(of) for name, of in intent.items()}) for intent in values)


def _curves(rows: Sequence[CellRow]) -> list[list[tuple[float, float]]]:
    return [
        [(float(tokens), float(share)) for tokens, share in row.details["curve"]]
        for row in rows
        if "curve" in row.details
    ]

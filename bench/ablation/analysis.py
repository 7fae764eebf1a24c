"""From cells to figures: every condition estimated, the declared contrasts tested.

Intervals are percentiles of resampled questions (paired bootstrap, ``evaluation/bootstrap.py``).
Intervals of contrasts are at a level that is corrected for the number of declared ones. Two
conditions are never called equal: they are "not told apart".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from arag_search.evaluation.bootstrap import (
    LEVEL,
    Difference,
    Interval,
    intervals,
    resampled_means,
    resamples_for,
)
from bench import BenchError
from bench.ablation.cells import Cell, CellRow
from bench.ablation.measure import is_ratio, measure_of
from bench.ablation.suite import SET, Contrast, Levels, Suite, condition_of
from bench.report.rows import MACRO

Table = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The content of a report: cells by data set and condition, and what they show.

    - ``estimates``: by measure, data set (or MACRO) and condition, at LEVEL. They are of the
      questions with a value in all conditions that are compared, in the scale of the measure
      (logarithms for a ratio). A cost per right answer has none without a right answer or a bound
      of its interval.
    - ``means``: arithmetic means of measures that are compared by ratios of geometric means, at
      LEVEL.
    - ``differences``: by contrast and data set (or MACRO), in the scale of the measure.
    """

    suite: Suite
    resamples: int
    cells: dict[tuple[str, Levels], Cell]
    estimates: dict[tuple[str, str, Levels], Interval]
    means: dict[tuple[str, str, Levels], Interval]
    differences: dict[tuple[Contrast, str], Difference]

    @property
    def sets(self) -> list[str]:
        """The data sets."""
        return list(dict.fromkeys(name for name, _ in self.cells))

    @property
    def groups(self) -> list[str]:
        """The data sets, and MACRO if there are several: the last one stands for all."""
        return [*self.sets, MACRO] if len(self.sets) > 1 else [*self.sets]

    @property
    def measures(self) -> list[str]:
        """The measures that have any value."""
        return list(dict.fromkeys(name for name, *_ in self.estimates))


def analyse(suite: Suite, measures: Sequence[str], cells: Iterable[Cell]) -> Analysis:
    """Estimate and compare. Raises BenchError if a data set has no value of the primary measure."""
    level = max((contrast.level for contrast in suite.contrasts), default=LEVEL)
    resamples = resamples_for(level)
    by_place = {(cell.key[SET], condition_of(cell.key)): cell for cell in cells}
    results = Analysis(suite, resamples, by_place, {}, {}, {})
    for name, stratum in product(measures, suite.strata):
        conditions = [suite.condition(stratum, level) for level in suite.compared]
        parts = [_part(results, of, name, conditions) for of in results.sets]
        _estimate(results, name, stratum, conditions, [part for part in parts if part])
    primary = suite.comparison.primary
    measured = {group for name, group, _ in results.estimates if name == primary}
    if lacking := [name for name in results.sets if name not in measured]:
        raise BenchError(
            f"The primary measure {primary} has no value.",
            where=", ".join(lacking),
            do="Compare by another measure, or leave these data sets out.",
        )
    return results


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The questions of a data set with a value in all conditions, a row each, with its type. If
    values are divided by right answers, ``right`` says how far its answers are right."""

    name: str
    types: Sequence[str | None]
    values: Table
    right: Table | None = None

    def means(self) -> Table:
        """Return the value of each condition."""
        return self._over(lambda table: table.mean(axis=0))

    def resampled(self, resamples: int) -> Table:
        """Return the values of the conditions over questions drawn again."""
        return self._over(lambda of: resampled_means(of, self.types, self.name, resamples))

    def _over(self, mean: Callable[[Table], Table]) -> Table:
        if self.right is None:
            return mean(self.values)
        with np.errstate(divide="ignore"):
            return mean(self.values) / mean(self.right)


def _part(results: Analysis, name: str, measure: str, conditions: Sequence[Levels]) -> _Part | None:
    """Return the part of a data set for some conditions; None if no question has all values."""
    cells = [results.cells[name, condition] for condition in conditions]
    columns = [_seed_means(cell.rows, measure) for cell in cells]
    types = {row.question_id: row.type for row in cells[0].rows}
    ids = [id for id in types if all(id in column for column in columns)]
    if not ids:
        return None
    table = np.array([[column[id] for column in columns] for id in ids])
    part = _Part(name, [types[id] for id in ids], table)
    if measure_of(measure).kind.per_right:
        columns = [
            {**_seed_means(cell.rows, "ContainAcc"), **_seed_means(cell.rows, "JudgeAcc")}
            for cell in cells
        ]
        part = replace(part, right=np.array([[column[id] for column in columns] for id in ids]))
    return part


def _seed_means(rows: Sequence[CellRow], measure: str) -> dict[str, float]:
    """Return the mean over the seeds of each question that has a value."""
    by_question: dict[str, list[float]] = defaultdict(list)
    in_logarithms = is_ratio(measure)
    for row in rows:
        value = row.values.get(measure)
        if value is not None:
            scaled = math.log(max(value, 1.0)) if in_logarithms else value
            by_question[row.question_id].append(scaled)
    return {id: math.fsum(values) / len(values) for id, values in by_question.items()}


def _estimate(
    results: Analysis, name: str, stratum: Levels, conditions: list[Levels], data: Sequence[_Part]
) -> None:
    """Add one measure in one stratum, for each data set that has it, then for all together."""
    sign = 1.0 if measure_of(name).kind.higher_is_better else -1.0
    drawn = [part.resampled(results.resamples) for part in data]
    groups = [(part.name, [part], means) for part, means in zip(data, drawn, strict=True)]
    if len(data) > 1:
        groups.append((MACRO, list(data), np.mean(drawn, axis=0)))
    tested = [c for c in results.suite.contrasts if (c.measure, c.stratum) == (name, stratum)]
    for group, parts, means in groups:
        values = _macro_means(parts)
        with np.errstate(invalid="ignore"):  # resamples without a right answer are infinite
            estimates = intervals(values, means, [LEVEL] * len(values))
        for at, estimate in zip(conditions, estimates, strict=True):
            if _is_finite(estimate):
                results.estimates[name, group, at] = estimate
        if is_ratio(name):
            plain = [replace(part, values=np.exp(part.values)) for part in parts]
            again = np.mean([part.resampled(results.resamples) for part in plain], axis=0)
            of_plain = intervals(_macro_means(plain), again, [LEVEL] * len(values))
            results.means.update(
                ((name, group, at), mean) for at, mean in zip(conditions, of_plain, strict=True)
            )
        for contrast in tested:
            first, second = (
                results.suite.compared.index(level) for level in (contrast.first, contrast.second)
            )
            with np.errstate(invalid="ignore"):
                change = means[:, [first]] - means[:, [second]]
                difference = [values[first] - values[second]]
                (interval,) = intervals(difference, change, [contrast.level])
            if not _is_finite(interval):
                continue
            gains = sign * np.concatenate([p.values[:, first] - p.values[:, second] for p in parts])
            results.differences[contrast, group] = Difference.of(interval, gains)


def _is_finite(of: Interval) -> bool:
    return all(map(math.isfinite, (of.value, of.low, of.high)))


def _macro_means(parts: Sequence[_Part]) -> list[float]:
    """Return the value of each condition. It is over the questions of each data set first, then
    over data sets, so that each data set counts the same."""
    return np.mean([part.means() for part in parts], axis=0).tolist()

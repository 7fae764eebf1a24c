"""The analysis of values: estimates with intervals, declared contrasts, and claims over all
policies.

Intervals are percentiles of resampled questions (paired bootstrap, ``evaluation/bootstrap.py``), at
a level that is corrected for the number of declared contrasts. Two conditions are never called
equal: they are "not resolved".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from arag_search.evaluation.bootstrap import (
    LEVEL,
    RESAMPLES,
    Interval,
    intervals,
    resampled_means,
)
from bench import BenchError
from bench.ablation.design import Contrast, Design, Policy, Stratum
from bench.ablation.measure import Comparable, comparable
from bench.ablation.values import Condition, SetValues
from bench.report.rows import MACRO

Table = NDArray[np.float64]

BEYOND = 10
"""The least number of resamples beyond each bound of an interval."""
_SAME = 1e-12  # values that are equal but for the order of summation are equal

Outcome = Literal["first", "second", "depends", "not resolved"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of first and second, in the scale of the measure (of logarithms for a ratio).
    ``interval`` is at the corrected level. Wins are questions on which the first is better.
    """

    interval: Interval
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a first and a second condition, over all policies that were measured.

    One beats the other if the interval is on its side of 0 under every policy; a contrast that is
    resolved under some policies only "depends". ``resolved_for`` counts policies by the side that
    they are resolved for. ``low`` and ``high`` are the least and largest estimate over the
    policies, ``resolution`` the smallest difference that could be resolved in the policy in which
    it is the largest.
    """

    outcome: Outcome
    policies: int
    resolved_for: tuple[int, int]
    low: float
    high: float
    resolution: float

    @staticmethod
    def of(intervals: Sequence[Interval], *, lower_is_better: bool) -> Claim:
        """Return the claim that intervals of first less second support, one for each policy."""
        below = sum(interval.high < 0 for interval in intervals)
        above = sum(interval.low > 0 for interval in intervals)
        first, second = (below, above) if lower_is_better else (above, below)
        outcome: Outcome = "depends" if first or second else "not resolved"
        if len(intervals) in (first, second):
            outcome = "first" if first else "second"
        values = [interval.value for interval in intervals]
        resolution = max(interval.resolution for interval in intervals)
        return Claim(outcome, len(intervals), (first, second), min(values), max(values), resolution)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The content of a report.

    ``estimates`` are by measure, data set (or MACRO) and condition, at LEVEL; ``differences`` by
    contrast, data set (or MACRO) and policy; ``claims`` by primary contrast. ``policies`` were
    measured. ``questions`` counts those with a value in every condition of a stratum, by measure,
    data set and stratum. ``resamples`` is the number of resamples. ``plain_means`` are arithmetic
    means, as estimates, of measures that are compared by ratios of geometric means.
    """

    design: Design
    sets: Sequence[SetValues]
    estimates: dict[tuple[str, str, Condition], Interval]
    differences: dict[tuple[Contrast, str, Policy], Difference]
    claims: dict[Contrast, Claim]
    policies: list[Policy]
    questions: dict[tuple[str, str, Stratum], int]
    resamples: int
    plain_means: dict[tuple[str, str, Condition], float]

    @property
    def set_names(self) -> list[str]:
        """The data sets, and MACRO if there are several."""
        names = [data_set.name for data_set in self.sets]
        return [*names, MACRO] if len(names) > 1 else names

    @property
    def total(self) -> str:
        """The name under which claims are made: MACRO, or the only data set."""
        return self.set_names[-1]

    def estimate(
        self, measure: str, set_name: str, stratum: Stratum, level: str, policy: Policy
    ) -> Interval | None:
        """Return the estimate of a level of the compared factor, or None if there is none."""
        condition = self.design.condition(stratum, policy, level)
        return self.estimates.get((measure, set_name, condition))

    def plain_mean(self, measure: str, set_name: str, stratum: Stratum, level: str) -> float | None:
        """Return the arithmetic mean of a level under the main policy, or None if there is none or
        the measure is not a ratio."""
        condition = self.design.condition(stratum, self.design.main, level)
        return self.plain_means.get((measure, set_name, condition))

    def over_policies(
        self, measure: str, set_name: str, stratum: Stratum, level: str
    ) -> tuple[float, float] | None:
        """Return the least and the largest estimate of a level over all policies, or None if there
        is none."""
        values = [
            interval.value
            for policy in self.policies
            if (interval := self.estimate(measure, set_name, stratum, level, policy))
        ]
        return (min(values), max(values)) if values else None


def analyse(design: Design, sets: Sequence[SetValues]) -> Analysis:
    """Estimate and compare. Raises BenchError if a data set lacks the primary measure."""
    suite = design.suite
    primary = suite.comparison.primary
    # Enough to leave BEYOND of them outside each bound of every interval.
    resamples = max(RESAMPLES, math.ceil(2 * BEYOND / (1 - min(design.levels))))
    policies = [policy for policy in design.policies if _is_there(sets, policy)]
    results = Analysis(design, sets, {}, {}, {}, policies, {}, resamples, {})
    for name, stratum in product(suite.shown_measures, design.strata):
        measured = _Measured.of(design, comparable(name), sets, stratum, resamples)
        if measured is None:
            continue
        results.questions.update(
            {(name, data_set.name, stratum): len(data_set.types) for data_set in measured.data}
        )
        results.estimates.update(measured.estimates())
        results.plain_means.update(measured.plain_means())
        family, level = (
            (design.primary, design.levels[0])
            if name == primary
            else (design.secondary, design.levels[1])
        )
        wanted = [
            contrast
            for contrast in family
            if (contrast.measure, contrast.stratum) == (name, stratum)
        ]
        results.differences.update(measured.differences(design, wanted, results.policies, level))
    _check_primary(primary, sets, results.questions)
    by_contrast: dict[Contrast, list[Interval]] = {}
    for (contrast, name, _), difference in results.differences.items():
        if name == results.total and contrast.measure == primary:
            by_contrast.setdefault(contrast, []).append(difference.interval)
    lower = comparable(primary).lower_is_better
    results.claims.update(
        {
            contrast: Claim.of(over_policies, lower_is_better=lower)
            for contrast, over_policies in by_contrast.items()
        }
    )
    return results


def _is_there(sets: Sequence[SetValues], policy: Policy) -> bool:
    """Return whether a policy was measured in any stratum."""
    return any(set(policy) <= set(condition) for condition in sets[0].conditions)


def _check_primary(
    primary: str, sets: Sequence[SetValues], counted: Collection[tuple[str, str, Stratum]]
) -> None:
    measured = {name for measure, name, _ in counted if measure == primary}
    lacking = [data_set.name for data_set in sets if data_set.name not in measured]
    if lacking:
        raise BenchError(
            f"The primary measure {primary} has no value.",
            where=", ".join(lacking),
            do="Compare by another measure, or leave these data sets out.",
        )


@dataclass(frozen=True, slots=True)
class _DataSet:
    """The values of one data set: a row a question with its type, a column a condition."""

    name: str
    types: Sequence[str | None]
    values: Table


@dataclass(frozen=True, slots=True)
class _Measured:
    """One measure in one stratum, over the data sets that have it: values, and means of resampled
    questions."""

    measure: Comparable
    data: Sequence[_DataSet]
    resampled: Sequence[Table]
    conditions: Sequence[Condition]

    @staticmethod
    def of(
        design: Design,
        measure: Comparable,
        sets: Sequence[SetValues],
        stratum: Stratum,
        resamples: int,
    ) -> _Measured | None:
        """Select the questions with a value in all conditions, and the data sets that have any;
        return None if no data set is left."""
        conditions = [
            condition for condition in sets[0].conditions if set(stratum) <= set(condition)
        ]
        data: list[_DataSet] = []
        for data_set in sets:
            columns = [data_set.conditions.index(condition) for condition in conditions]
            table = data_set.tables[measure.name][:, columns]
            whole: NDArray[np.bool] = ~np.isnan(table).any(axis=1)
            if conditions and whole.any():
                types = [
                    kind for kind, kept in zip(data_set.types, whole.tolist(), strict=True) if kept
                ]
                data.append(_DataSet(data_set.name, types, table[whole]))
        if not data:
            return None
        drawn = [
            resampled_means(data_set.values, data_set.types, data_set.name, resamples)
            for data_set in data
        ]
        return _Measured(measure, data, drawn, conditions)

    def groups(self) -> Iterator[tuple[str, Sequence[_DataSet], Table]]:
        """Yield each data set, then all of them together if there are several."""
        for data_set, means in zip(self.data, self.resampled, strict=True):
            yield data_set.name, [data_set], means
        if len(self.data) > 1:
            yield MACRO, self.data, np.mean(self.resampled, axis=0)

    def estimates(self) -> dict[tuple[str, str, Condition], Interval]:
        """Estimate every condition."""
        estimates: dict[tuple[str, str, Condition], Interval] = {}
        for name, data, means in self.groups():
            values = _macro_means([data_set.values for data_set in data])
            column_intervals = intervals(values, means, [LEVEL] * len(values))
            for condition, interval in zip(self.conditions, column_intervals, strict=True):
                estimates[self.measure.name, name, condition] = interval
        return estimates

    def plain_means(self) -> dict[tuple[str, str, Condition], float]:
        """Return the arithmetic mean of every condition; nothing if the measure is not a ratio."""
        if self.measure.scale != "ratio":
            return {}
        return {
            (self.measure.name, name, condition): value
            for name, data, _ in self.groups()
            for condition, value in zip(
                self.conditions,
                _macro_means([np.exp(data_set.values) for data_set in data]),
                strict=True,
            )
        }

    def differences(
        self,
        design: Design,
        asked: Sequence[Contrast],
        policies: Sequence[Policy],
        level: float,
    ) -> dict[tuple[Contrast, str, Policy], Difference]:
        """Compare the sides of these contrasts under these policies where both were measured."""
        at = {condition: column for column, condition in enumerate(self.conditions)}
        sign = -1.0 if self.measure.lower_is_better else 1.0
        differences: dict[tuple[Contrast, str, Policy], Difference] = {}
        for contrast, policy in product(asked, policies):
            sides = design.sides(contrast, policy)
            if not set(sides) <= at.keys():
                continue
            first, second = (at[side] for side in sides)
            for name, data, means in self.groups():
                paired = [
                    data_set.values[:, [first]] - data_set.values[:, [second]] for data_set in data
                ]
                drawn = means[:, [first]] - means[:, [second]]
                (interval,) = intervals(_macro_means(paired), drawn, [level])
                gains = sign * np.concatenate(paired)
                wins, losses = (int((side * gains > _SAME).sum()) for side in (1, -1))
                ties = len(gains) - wins - losses
                differences[contrast, name, policy] = Difference(interval, wins, losses, ties)
        return differences


def _macro_means(tables: Sequence[Table]) -> list[float]:
    """Return the mean of each column: over the questions of each data set first, then over data
    sets, so that each data set counts the same."""
    return np.mean([table.mean(axis=0) for table in tables], axis=0).tolist()


def natural(measure: Comparable, value: float) -> float:
    """Convert a value from the scale of the measure, logarithms for ratios, to its unit."""
    return math.exp(value) if measure.scale == "ratio" else value

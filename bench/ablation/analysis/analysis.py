"""The analysis of values: estimates with intervals, declared contrasts with their tests, and claims
over all policies."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from bench import BenchError
from bench.ablation.analysis.claims import Claim, Policy, claim
from bench.ablation.analysis.design import Contrast, Design, Stratum
from bench.ablation.analysis.values import Condition, SetValues
from bench.ablation.experiment.measure import Comparable, comparable
from bench.report.statistics import (
    MACRO,
    DataSet,
    holm,
    macro_means,
    mcnemar_p,
    resamples_for,
    sign_flip_p,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

_SAME = 1e-12  # values that are equal but for the order of summation are equal


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of first and second, in the scale of the measure (of logarithms for a ratio).
    ``interval`` is at the corrected level. ``p`` comes from a sign-flip test, or from McNemar's
    exact test (``test`` says which); ``adjusted_p`` is corrected after Holm, and None for single
    data sets, which are not among the declared contrasts. Wins are questions on which the first is
    better.
    """

    interval: Interval
    p: float
    adjusted_p: float | None
    test: str
    wins: int
    losses: int
    ties: int


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
    estimates: Mapping[tuple[str, str, Condition], Interval]
    differences: Mapping[tuple[Contrast, str, Policy], Difference]
    claims: Mapping[Contrast, Claim]
    policies: Sequence[Policy]
    questions: Mapping[tuple[str, str, Stratum], int]
    resamples: int
    plain_means: Mapping[tuple[str, str, Condition], float]

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
    """Estimate, test and judge. Raises BenchError if a data set lacks the primary measure."""
    suite = design.suite
    asked = suite.comparison
    resamples = resamples_for(min(design.levels))
    results = _Results({}, {}, {}, {})
    there = [policy for policy in design.policies if _is_there(sets, policy)]
    for name, stratum in product(suite.shown_measures, design.strata):
        measured = _Measured.of(design, comparable(name), sets, stratum, resamples)
        if measured is None:
            continue
        results.questions.update(
            {(name, data_set.name, stratum): len(data_set.types) for data_set in measured.data}
        )
        results.estimates.update(measured.estimates())
        results.plain_means.update(measured.plain_means())
        is_primary = name == asked.primary
        family = design.primary if is_primary else design.secondary
        wanted = [
            contrast
            for contrast in family
            if (contrast.measure, contrast.stratum) == (name, stratum)
        ]
        level = design.levels[0 if is_primary else 1]
        results.differences.update(measured.differences(design, wanted, there, level))
    _check_primary(asked.primary, sets, results.questions)
    total = MACRO if len(sets) > 1 else sets[0].name
    differences = _adjusted(results.differences, design, there, total)
    claims = _claims(design, differences, total)
    return Analysis(
        design,
        sets,
        results.estimates,
        differences,
        claims,
        there,
        results.questions,
        resamples,
        results.plain_means,
    )


@dataclass(frozen=True, slots=True)
class _Results:
    """The results gathered over measures and strata."""

    estimates: dict[tuple[str, str, Condition], Interval]
    differences: dict[tuple[Contrast, str, Policy], Difference]
    questions: dict[tuple[str, str, Stratum], int]
    plain_means: dict[tuple[str, str, Condition], float]


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
class _Measured:
    """One measure in one stratum, over the data sets that have it: values, and means of resampled
    questions."""

    measure: Comparable
    data: Sequence[DataSet]
    resampled: Sequence[Table]
    conditions: Sequence[Condition]
    is_seeded: bool

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
        import numpy as np

        conditions = [
            condition for condition in sets[0].conditions if set(stratum) <= set(condition)
        ]
        data: list[DataSet] = []
        for data_set in sets:
            columns = [data_set.conditions.index(condition) for condition in conditions]
            table = data_set.tables[measure.name][:, columns]
            whole: NDArray[np.bool] = ~np.isnan(table).any(axis=1)
            if conditions and whole.any():
                types = [
                    kind for kind, kept in zip(data_set.types, whole.tolist(), strict=True) if kept
                ]
                data.append(DataSet(data_set.name, types, table[whole]))
        if not data:
            return None
        drawn = [
            resampled_means(data_set.values, data_set.types, data_set.name, resamples)
            for data_set in data
        ]
        return _Measured(
            measure, data, drawn, conditions, any(data_set.is_seeded for data_set in sets)
        )

    def groups(self) -> Iterator[tuple[str, Sequence[DataSet], Table]]:
        """Yield each data set, then all of them together if there are several."""
        import numpy as np

        for data_set, means in zip(self.data, self.resampled, strict=True):
            yield data_set.name, [data_set], means
        if len(self.data) > 1:
            yield MACRO, self.data, np.mean(self.resampled, axis=0)

    def estimates(self) -> dict[tuple[str, str, Condition], Interval]:
        """Estimate every condition."""
        estimates: dict[tuple[str, str, Condition], Interval] = {}
        for name, data, means in self.groups():
            values = macro_means(data)
            column_intervals = intervals(values.tolist(), means, [LEVEL] * len(values))
            for condition, interval in zip(self.conditions, column_intervals, strict=True):
                estimates[self.measure.name, name, condition] = interval
        return estimates

    def plain_means(self) -> dict[tuple[str, str, Condition], float]:
        """Return the arithmetic mean of every condition; nothing if the measure is not a ratio."""
        import numpy as np

        if self.measure.scale != "ratio":
            return {}
        means: dict[tuple[str, str, Condition], float] = {}
        for name, data, _ in self.groups():
            values = np.mean([np.exp(data_set.values).mean(axis=0) for data_set in data], axis=0)
            for condition, value in zip(self.conditions, values.tolist(), strict=True):
                means[self.measure.name, name, condition] = value
        return means

    def differences(
        self,
        design: Design,
        asked: Sequence[Contrast],
        policies: Sequence[Policy],
        level: float,
    ) -> dict[tuple[Contrast, str, Policy], Difference]:
        """Test these contrasts under these policies where both sides were measured."""
        at = {condition: column for column, condition in enumerate(self.conditions)}
        pairs: dict[tuple[Contrast, Policy], tuple[int, int]] = {}
        for contrast, policy in product(asked, policies):
            sides = design.sides(contrast, policy)
            if sides[0] in at and sides[1] in at:
                pairs[contrast, policy] = (at[sides[0]], at[sides[1]])
        if not pairs:
            return {}
        first, second = ([pair[side] for pair in pairs.values()] for side in (0, 1))
        differences: dict[tuple[Contrast, str, Policy], Difference] = {}
        for name, data, means in self.groups():
            paired = [
                data_set.with_values(data_set.values[:, first] - data_set.values[:, second])
                for data_set in data
            ]
            made = self._tested(paired, means[:, first] - means[:, second], level)
            for (contrast, policy), difference in zip(pairs, made, strict=True):
                differences[contrast, name, policy] = difference
        return differences

    def _tested(self, paired: Sequence[DataSet], means: Table, level: float) -> list[Difference]:
        """Test the difference of each column."""
        import numpy as np

        values = macro_means(paired)
        column_intervals = intervals(values.tolist(), means, [level] * len(values))
        p_values = sign_flip_p(paired).tolist()
        exact = self.measure.scale == "rate" and len(paired) == 1 and not self.is_seeded
        sign = -1.0 if self.measure.lower_is_better else 1.0
        gains = sign * np.concatenate([data_set.values for data_set in paired])
        differences: list[Difference] = []
        for column, (interval, p) in enumerate(zip(column_intervals, p_values, strict=True)):
            wins, losses = (int((side * gains[:, column] > _SAME).sum()) for side in (1, -1))
            ties = len(gains) - wins - losses
            test = "McNemar" if exact else "sign flips"
            p = mcnemar_p(wins, losses) if exact else p
            differences.append(Difference(interval, p, None, test, wins, losses, ties))
        return differences


def _adjusted(
    differences: Mapping[tuple[Contrast, str, Policy], Difference],
    design: Design,
    there: Sequence[Policy],
    total: str,
) -> dict[tuple[Contrast, str, Policy], Difference]:
    """Adjust the p values that claims rest on by Holm's correction, within each family and policy.

    Contrasts that could not be measured count as if they had p = 1.
    """
    adjusted = dict(differences)
    for family, policy in product((design.primary, design.secondary), there):
        keys = [(contrast, total, policy) for contrast in family]
        p_values = [differences[key].p if key in differences else 1.0 for key in keys]
        for key, p in zip(keys, holm(p_values), strict=True):
            if key in differences:
                adjusted[key] = replace(differences[key], adjusted_p=p)
    return adjusted


def _claims(
    design: Design, differences: Mapping[tuple[Contrast, str, Policy], Difference], total: str
) -> dict[Contrast, Claim]:
    lower = comparable(design.suite.comparison.primary).lower_is_better
    over: dict[Contrast, dict[Policy, Interval]] = {}
    for (contrast, name, policy), difference in differences.items():
        if name == total and contrast.measure == design.suite.comparison.primary:
            over.setdefault(contrast, {})[policy] = difference.interval
    return {
        contrast: claim(
            over[contrast],
            design.rule,
            lower_is_better=lower,
            declared=design.policies_of(contrast),
        )
        for contrast in over
    }


def natural(measure: Comparable, value: float) -> float:
    """Convert a value from the scale of the measure, logarithms for ratios, to its unit."""
    return math.exp(value) if measure.scale == "ratio" else value

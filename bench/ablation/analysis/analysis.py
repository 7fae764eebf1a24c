"""From values to what may be said: estimates with intervals, declared contrasts with their tests,
and claims over all policies."""

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
from bench.ablation.experiment.measure import MEASURES, Comparable
from bench.report.statistics import (
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

MACRO = "macro-average"
_SAME = 1e-12  # values that are equal but for the order of summation are equal


@dataclass(frozen=True, slots=True)
class Difference:
    """First less second, in the scale of the measure (of logarithms for a ratio).

    ``interval`` is at the corrected level. ``p`` is of sign flips, or of McNemar's exact test
    (``test`` says which); ``adjusted_p`` after Holm, None for single data sets, which are not
    among the declared contrasts. Wins are questions on which the first is better.
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
    """All that a report tells.

    ``estimates`` are by measure, data set (or MACRO) and condition, at LEVEL; ``differences`` by
    contrast, data set (or MACRO) and policy; ``claims`` by primary contrast. ``policies`` were
    measured. ``questions`` counts those that every condition of a stratum has a value for, by
    measure, data set and stratum. ``resamples`` is how many there were.
    """

    design: Design
    sets: Sequence[SetValues]
    estimates: Mapping[tuple[str, str, Condition], Interval]
    differences: Mapping[tuple[Contrast, str, Policy], Difference]
    claims: Mapping[Contrast, Claim]
    policies: Sequence[Policy]
    questions: Mapping[tuple[str, str, Stratum], int]
    resamples: int

    @property
    def set_names(self) -> list[str]:
        """The data sets, and MACRO where there are several."""
        names = [one.name for one in self.sets]
        return [*names, MACRO] if len(names) > 1 else names

    @property
    def total(self) -> str:
        """The name under which claims are made: MACRO, or the only data set."""
        return self.set_names[-1]

    def estimate(
        self, measure: str, set_name: str, stratum: Stratum, level: str, policy: Policy
    ) -> Interval | None:
        """Of a level of the compared factor; None where there is none."""
        condition = self.design.condition(stratum, policy, level)
        return self.estimates.get((measure, set_name, condition))

    def over_policies(
        self, measure: str, set_name: str, stratum: Stratum, level: str
    ) -> tuple[float, float] | None:
        """The least and the largest estimate of a level; None where there is none."""
        found = [
            each.value
            for policy in self.policies
            if (each := self.estimate(measure, set_name, stratum, level, policy))
        ]
        return (min(found), max(found)) if found else None


def analyse(design: Design, sets: Sequence[SetValues]) -> Analysis:
    """Estimate, test and judge. Raises BenchError where a data set lacks the primary measure."""
    suite = design.suite
    asked = suite.comparison
    resamples = resamples_for(min(design.levels))
    found = _Found({}, {}, {})
    there = [one for one in design.policies if _is_there(sets, one)]
    for name, stratum in product(suite.shown_measures, design.strata):
        measured = _Measured.of(design, MEASURES[name], sets, stratum, resamples)
        if measured is None:
            continue
        found.questions.update({(name, one.name, stratum): len(one.types) for one in measured.data})
        found.estimates.update(measured.estimates())
        is_primary = name == asked.primary
        family = design.primary if is_primary else design.secondary
        wanted = [one for one in family if (one.measure, one.stratum) == (name, stratum)]
        level = design.levels[0 if is_primary else 1]
        found.differences.update(measured.differences(design, wanted, there, level))
    _check_primary(asked.primary, sets, found.questions)
    total = MACRO if len(sets) > 1 else sets[0].name
    differences = _adjusted(found.differences, design, there, total)
    claims = _claims(design, differences, total)
    return Analysis(
        design, sets, found.estimates, differences, claims, there, found.questions, resamples
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What is gathered over measures and strata."""

    estimates: dict[tuple[str, str, Condition], Interval]
    differences: dict[tuple[Contrast, str, Policy], Difference]
    questions: dict[tuple[str, str, Stratum], int]


def _is_there(sets: Sequence[SetValues], policy: Policy) -> bool:
    """Whether a policy was measured in any stratum."""
    return any(set(policy) <= set(one) for one in sets[0].conditions)


def _check_primary(
    primary: str, sets: Sequence[SetValues], counted: Collection[tuple[str, str, Stratum]]
) -> None:
    measured = {name for measure, name, _ in counted if measure == primary}
    lacking = [one.name for one in sets if one.name not in measured]
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
        """Questions without a value in some condition are left out, and data sets in which all
        are; None where no data set is left."""
        import numpy as np

        conditions = [one for one in sets[0].conditions if set(stratum) <= set(one)]
        data: list[DataSet] = []
        for one in sets:
            columns = [one.conditions.index(each) for each in conditions]
            table = one.tables[measure.name][:, columns]
            whole: NDArray[np.bool] = ~np.isnan(table).any(axis=1)
            if conditions and whole.any():
                types = [each for each, kept in zip(one.types, whole.tolist(), strict=True) if kept]
                data.append(DataSet(one.name, types, table[whole]))
        if not data:
            return None
        drawn = [resampled_means(one.values, one.types, one.name, resamples) for one in data]
        return _Measured(measure, data, drawn, conditions, any(one.is_seeded for one in sets))

    def groups(self) -> Iterator[tuple[str, Sequence[DataSet], Table]]:
        """Each data set, then all of them where there are several."""
        import numpy as np

        for one, means in zip(self.data, self.resampled, strict=True):
            yield one.name, [one], means
        if len(self.data) > 1:
            yield MACRO, self.data, np.mean(self.resampled, axis=0)

    def estimates(self) -> dict[tuple[str, str, Condition], Interval]:
        """Of every condition."""
        found: dict[tuple[str, str, Condition], Interval] = {}
        for name, data, means in self.groups():
            values = macro_means(data)
            each = intervals(values.tolist(), means, [LEVEL] * len(values))
            for one, interval in zip(self.conditions, each, strict=True):
                found[self.measure.name, name, one] = interval
        return found

    def differences(
        self,
        design: Design,
        asked: Sequence[Contrast],
        policies: Sequence[Policy],
        level: float,
    ) -> dict[tuple[Contrast, str, Policy], Difference]:
        """Of these contrasts under these policies, where both sides were measured."""
        at = {one: column for column, one in enumerate(self.conditions)}
        pairs: dict[tuple[Contrast, Policy], tuple[int, int]] = {}
        for one, policy in product(asked, policies):
            sides = design.sides(one, policy)
            if sides[0] in at and sides[1] in at:
                pairs[one, policy] = (at[sides[0]], at[sides[1]])
        if not pairs:
            return {}
        first, second = ([pair[side] for pair in pairs.values()] for side in (0, 1))
        found: dict[tuple[Contrast, str, Policy], Difference] = {}
        for name, data, means in self.groups():
            paired = [one.with_values(one.values[:, first] - one.values[:, second]) for one in data]
            made = self._tested(paired, means[:, first] - means[:, second], level)
            for (one, policy), each in zip(pairs, made, strict=True):
                found[one, name, policy] = each
        return found

    def _tested(self, paired: Sequence[DataSet], means: Table, level: float) -> list[Difference]:
        """A difference a column."""
        import numpy as np

        values = macro_means(paired)
        each = intervals(values.tolist(), means, [level] * len(values))
        p_values = sign_flip_p(paired).tolist()
        exact = self.measure.scale == "rate" and len(paired) == 1 and not self.is_seeded
        sign = -1.0 if self.measure.lower_is_better else 1.0
        gains = sign * np.concatenate([one.values for one in paired])
        found: list[Difference] = []
        for column, (interval, p) in enumerate(zip(each, p_values, strict=True)):
            wins, losses = (int((side * gains[:, column] > _SAME).sum()) for side in (1, -1))
            ties = len(gains) - wins - losses
            test = "McNemar" if exact else "sign flips"
            p = mcnemar_p(wins, losses) if exact else p
            found.append(Difference(interval, p, None, test, wins, losses, ties))
        return found


def _adjusted(
    found: Mapping[tuple[Contrast, str, Policy], Difference],
    design: Design,
    there: Sequence[Policy],
    total: str,
) -> dict[tuple[Contrast, str, Policy], Difference]:
    """Holm's correction within each family, policy by policy; of what claims are made on.

    Contrasts that could not be measured count as if they had p = 1.
    """
    adjusted = dict(found)
    for family, policy in product((design.primary, design.secondary), there):
        keys = [(one, total, policy) for one in family]
        p_values = [found[key].p if key in found else 1.0 for key in keys]
        for key, p in zip(keys, holm(p_values), strict=True):
            if key in found:
                adjusted[key] = replace(found[key], adjusted_p=p)
    return adjusted


def _claims(
    design: Design, found: Mapping[tuple[Contrast, str, Policy], Difference], total: str
) -> dict[Contrast, Claim]:
    lower = MEASURES[design.suite.comparison.primary].lower_is_better
    over: dict[Contrast, dict[Policy, Interval]] = {}
    for (one, name, policy), each in found.items():
        if name == total and one.measure == design.suite.comparison.primary:
            over.setdefault(one, {})[policy] = each.interval
    return {
        one: claim(over[one], design.rule, lower_is_better=lower, declared=design.policies_of(one))
        for one in over
    }


def natural(measure: Comparable, value: float) -> float:
    """A value in the unit of the measure: the scale of ratios is that of logarithms."""
    return math.exp(value) if measure.scale == "ratio" else value

"""The questions on which two conditions differ most, with what each of them made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.ablation.analysis.analysis import Analysis, natural
from bench.ablation.analysis.design import Stratum
from bench.ablation.analysis.values import SetValues
from bench.ablation.experiment.measure import MEASURES

MOST = 5
"""So many questions a side, pair and data set."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A question with the values of two levels in the unit of the measure, and their records
    (None: none are kept)."""

    set_name: str
    stratum: Stratum
    question_id: str
    first: str
    second: str
    values: tuple[float, float]
    records: tuple[str | None, str | None]


def differing(analysis: Analysis, most: int = MOST) -> list[Differing]:
    """Of each pair, stratum and data set, under the main policy and by the primary measure: the
    questions that differ most, those first on which the first level is better."""
    found: list[Differing] = []
    for stratum in analysis.design.strata:
        for pair in analysis.design.suite.comparison.pairs:
            for one in analysis.sets:
                found += _of_pair(analysis, one, stratum, pair, most)
    return found


def _of_pair(
    analysis: Analysis, one: SetValues, stratum: Stratum, pair: tuple[str, str], most: int
) -> Sequence[Differing]:
    import numpy as np

    design = analysis.design
    measure = MEASURES[design.suite.comparison.primary]
    conditions = [design.condition(stratum, design.main, level) for level in pair]
    if any(condition not in one.conditions for condition in conditions):
        return []
    columns = [one.conditions.index(condition) for condition in conditions]
    values = one.tables[measure.name][:, columns]
    gains = values[:, 0] - values[:, 1]
    gains = np.nan_to_num(-gains if measure.lower_is_better else gains)
    order: list[int] = np.argsort(-gains, kind="stable").tolist()
    best = [at for at in order[:most] if gains[at] > 0]
    worst = [at for at in order[::-1][:most] if gains[at] < 0]
    return [
        Differing(
            one.name,
            stratum,
            one.questions[at].id,
            *pair,
            (natural(measure, float(values[at, 0])), natural(measure, float(values[at, 1]))),
            (
                one.records[conditions[0]].get(one.questions[at].id),
                one.records[conditions[1]].get(one.questions[at].id),
            ),
        )
        for at in (*best, *worst)
    ]

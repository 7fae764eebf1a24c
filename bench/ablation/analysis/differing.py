"""The questions on which two conditions differ most, with the values of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.ablation.analysis.analysis import Analysis, natural
from bench.ablation.analysis.design import Stratum
from bench.ablation.analysis.values import SetValues
from bench.ablation.experiment.measure import comparable

MOST = 5
"""The number of questions for each side, pair and data set."""


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


def differing(analysis: Analysis) -> list[Differing]:
    """Return the questions that differ most for each pair, stratum and data set, under the main
    policy and by the primary measure; those on which the first level is better come first."""
    differing_questions: list[Differing] = []
    for stratum in analysis.design.strata:
        for pair in analysis.design.suite.comparison.pairs:
            for data_set in analysis.sets:
                differing_questions += _of_pair(analysis, data_set, stratum, pair)
    return differing_questions


def _of_pair(
    analysis: Analysis, data_set: SetValues, stratum: Stratum, pair: tuple[str, str]
) -> Sequence[Differing]:
    import numpy as np

    design = analysis.design
    measure = comparable(design.suite.comparison.primary)
    conditions = [design.condition(stratum, design.main, level) for level in pair]
    if any(condition not in data_set.conditions for condition in conditions):
        return []
    columns = [data_set.conditions.index(condition) for condition in conditions]
    values = data_set.tables[measure.name][:, columns]
    gains = values[:, 0] - values[:, 1]
    gains = np.nan_to_num(-gains if measure.lower_is_better else gains)
    order: list[int] = np.argsort(-gains, kind="stable").tolist()
    best = [at for at in order[:MOST] if gains[at] > 0]
    worst = [at for at in order[::-1][:MOST] if gains[at] < 0]
    return [
        Differing(
            data_set.name,
            stratum,
            data_set.questions[at].id,
            *pair,
            (natural(measure, float(values[at, 0])), natural(measure, float(values[at, 1]))),
            (
                data_set.records[conditions[0]].get(data_set.questions[at].id),
                data_set.records[conditions[1]].get(data_set.questions[at].id),
            ),
        )
        for at in (*best, *worst)
    ]

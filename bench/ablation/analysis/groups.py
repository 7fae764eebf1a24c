"""Estimates for parts of the questions: by number of hops, and by type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arag_search.evaluation.bootstrap import LEVEL, Interval, intervals, resampled_means
from bench.ablation.analysis.analysis import Analysis
from bench.ablation.analysis.design import Stratum
from bench.ablation.analysis.values import QuestionLine, SetValues


@dataclass(frozen=True, slots=True)
class Group:
    """One part of a data set, with the estimate of each compared level under the main policy."""

    measure: str
    set_name: str
    part: str
    questions: int
    estimates: dict[str, Interval]


def groups(analysis: Analysis, measure: str, stratum: Stratum) -> list[Group]:
    """Estimate parts by number of hops, if it is known and differs, then by type if there are
    several."""
    parts: list[Group] = []
    for data_set in analysis.sets:
        for part, rows in _parts(data_set.questions):
            made = _group(analysis, data_set, stratum, measure, part, rows)
            if made is not None:
                parts.append(made)
    return parts


def _parts(questions: Sequence[QuestionLine]) -> list[tuple[str, list[int]]]:
    hops = sorted({question.hops for question in questions if question.hops is not None})
    types = sorted({question.type for question in questions if question.type is not None})
    parts: list[tuple[str, list[int]]] = []
    if len(hops) > 1:
        parts += [
            (
                f"{count} hops",
                [at for at, question in enumerate(questions) if question.hops == count],
            )
            for count in hops
        ]
    if len(types) > 1:
        parts += [
            (name, [at for at, question in enumerate(questions) if question.type == name])
            for name in types
        ]
    return parts


def _group(
    analysis: Analysis,
    data_set: SetValues,
    stratum: Stratum,
    measure: str,
    part: str,
    rows: list[int],
) -> Group | None:
    """Estimate one part; return None if the stratum was not measured or no question has all
    values."""
    import numpy as np

    at = {condition: column for column, condition in enumerate(data_set.conditions)}
    design = analysis.design
    columns = {
        level: at[condition]
        for level in design.compared
        if (condition := design.condition(stratum, design.main, level)) in at
    }
    if not columns:
        return None
    values = data_set.tables[measure][rows][:, list(columns.values())]
    values = values[~np.isnan(values).any(axis=1)]
    if not len(values):
        return None
    means = resampled_means(values, [part] * len(values), f"{data_set.name} {part}")
    estimates = intervals(values.mean(axis=0).tolist(), means, [LEVEL] * len(columns))
    return Group(
        measure, data_set.name, part, len(values), dict(zip(columns, estimates, strict=True))
    )

"""Estimates of parts of the questions: by number of hops, and by type."""

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
    """By number of hops where it is known and differs, then by type where there are several."""
    found: list[Group] = []
    for one in analysis.sets:
        for part, rows in _parts(one.questions):
            made = _group(analysis, one, stratum, measure, part, rows)
            if made is not None:
                found.append(made)
    return found


def _parts(questions: Sequence[QuestionLine]) -> list[tuple[str, list[int]]]:
    hops = sorted({one.hops for one in questions if one.hops is not None})
    types = sorted({one.type for one in questions if one.type is not None})
    parts: list[tuple[str, list[int]]] = []
    if len(hops) > 1:
        parts += [
            (f"{count} hops", [at for at, one in enumerate(questions) if one.hops == count])
            for count in hops
        ]
    if len(types) > 1:
        parts += [
            (name, [at for at, one in enumerate(questions) if one.type == name]) for name in types
        ]
    return parts


def _group(
    analysis: Analysis,
    one: SetValues,
    stratum: Stratum,
    measure: str,
    part: str,
    rows: list[int],
) -> Group | None:
    """None where the stratum was not measured, or no question of the part has all values."""
    import numpy as np

    at = {condition: column for column, condition in enumerate(one.conditions)}
    design = analysis.design
    columns = {
        level: at[condition]
        for level in design.compared
        if (condition := design.condition(stratum, design.main, level)) in at
    }
    if not columns:
        return None
    values = one.tables[measure][rows][:, list(columns.values())]
    values = values[~np.isnan(values).any(axis=1)]
    if not len(values):
        return None
    means = resampled_means(values, [part] * len(values), f"{one.name} {part}")
    each = intervals(values.mean(axis=0).tolist(), means, [LEVEL] * len(columns))
    return Group(measure, one.name, part, len(values), dict(zip(columns, each, strict=True)))

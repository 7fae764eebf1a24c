"""Means over questions as rows with their bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from arag_search.evaluation.bootstrap import LEVEL, intervals, resampled_means
from bench.report.rows import MACRO, Row


def mean_rows(
    tables: Mapping[str, Mapping[str, Sequence[float]]],
    types: Mapping[str, Sequence[str | None]],
    level: Callable[[str], float] = lambda column: LEVEL,
) -> tuple[Row, ...]:
    """Return the mean of each column over the questions of each data set, and of the average of
    several, in which each counts the same. Tables have the same columns. Questions are drawn again
    within their type, the same ones for all columns. ``level`` is the level of a column's
    interval."""
    values: dict[str, list[float]] = {}
    draws: dict[str, np.ndarray] = {}
    for name, columns in tables.items():
        table = np.array(list(columns.values()), float).T
        values[name] = table.mean(axis=0).tolist()
        draws[name] = resampled_means(table, types[name], name)
    if len(tables) > 1:
        average = np.mean(list(draws.values()), axis=0)
        values[MACRO] = np.mean(list(values.values()), axis=0).tolist()
        draws[MACRO] = average
    columns = list(next(iter(tables.values())))
    levels = [level(column) for column in columns]
    return tuple(
        Row(f"{name}: {column}", estimate.value, "", estimate.low, estimate.high)
        for name in values
        for column, estimate in zip(
            columns, intervals(values[name], draws[name], levels), strict=True
        )
    )

"""Means, counts and ratios over questions as rows with their intervals, at 95 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from arag_search.evaluation.bootstrap import LEVEL, intervals, resampled_means
from bench.report.rows import Row


def means(
    columns: Mapping[str, Sequence[float]], name: str, types: Sequence[str | None] | None = None
) -> tuple[Row, ...]:
    """Return the mean of each column over questions with its bootstrap interval. ``name`` is that
    of the draws, within ``types`` of questions if there are any."""
    table = np.array(list(columns.values()), float).T
    draws = resampled_means(table, types or [None] * len(table), name)
    estimates = intervals(list(table.mean(axis=0)), draws, [LEVEL] * len(columns))
    return tuple(
        Row(what, estimate.value, "", estimate.low, estimate.high)
        for what, estimate in zip(columns, estimates, strict=True)
    )

"""Means, counts and ratios over questions as rows with their intervals, at 95 %."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from arag_search.evaluation.bootstrap import LEVEL, intervals, resampled_means
from bench.report.rows import Row, Target


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


def mean(what: str, values: Sequence[float], target: Target | None = None) -> Row:
    """Return a mean with its bootstrap interval; without one for a single value."""
    if len(values) == 1:
        return Row(what, float(values[0]), "", target=target)
    return replace(means({what: values}, what)[0], target=target)


def counted(what: str, flags: Sequence[bool], target: Target | None = None) -> Row:
    """Return how many flags are true, with the interval of Wilson (1927)."""
    count, total, z = sum(flags), len(flags), 1.96
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low, high = (round(total * bound, 1) for bound in (middle - half, middle + half))
    return Row(what, count, f"of {total:,}", max(0.0, low), min(float(total), high), target)

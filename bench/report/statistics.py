"""Tests of differences between conditions that were measured on the same questions.

Estimates and intervals come from ``arag_search.evaluation.bootstrap``; this module has the tests
and their correction. Everything works on a table with one row per question and one column per
comparison: 10,000 draws for 500 questions and 100 columns take about a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arag_search.evaluation.bootstrap import RESAMPLES, SEED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]
    Vector = NDArray[np.float64]

PERMUTATIONS = 10_000
ALPHA = 0.05
MACRO = "macro-average"
"""The name of the average in which each data set counts the same."""

BEYOND = 10
"""The least number of resamples beyond each bound of an interval."""
_TOLERANCE = 1e-9  # statistics that are equal but for the order of summation are equal


@dataclass(frozen=True, slots=True)
class DataSet:
    """The values of one data set: a row a question with its type, a column a condition or
    difference, the same columns in every data set of an analysis."""

    name: str
    types: Sequence[str | None]
    values: Table

    def with_values(self, values: Table) -> DataSet:
        """Return the same questions with other values."""
        return DataSet(self.name, self.types, values)


def macro_means(sets: Sequence[DataSet]) -> Vector:
    """Return the mean of each column: over the questions of each data set first, then over data
    sets, so that each data set counts the same."""
    import numpy as np

    return np.mean([data.values.mean(axis=0) for data in sets], axis=0)


def sign_flip_p(sets: Sequence[DataSet]) -> Vector:
    """Return the two-sided p of each column of paired differences, by flipping their signs.

    The statistic is ``macro_means``. A question's sign is flipped in all columns alike. If a column
    has so few differences other than 0 that all their signs can be enumerated (2^n <=
    PERMUTATIONS), p is exact; otherwise p is (1 + as extreme) / (1 + draws). A column without any
    difference has p = 1. In one data set and for differences of -1, 0 and 1, the exact test is
    McNemar's.
    """
    import numpy as np

    weighted = np.concatenate([data.values / (len(data.types) * len(sets)) for data in sets])
    slack = _TOLERANCE * np.abs(weighted).sum(axis=0)
    observed = np.abs(weighted.sum(axis=0)) - slack
    generator = np.random.default_rng([SEED, *b"sign flips"])
    signs = generator.integers(0, 2, size=(PERMUTATIONS, len(weighted)), dtype=np.int8) * 2 - 1
    drawn = np.abs(signs.astype(np.float64) @ weighted)
    p_values = (1 + (drawn >= observed).sum(axis=0)) / (1 + PERMUTATIONS)
    for column in range(weighted.shape[1]):
        differing = weighted[:, column][weighted[:, column] != 0]
        if 2 ** len(differing) <= PERMUTATIONS:
            sums = np.abs(_all_signs(len(differing)) @ differing)
            p_values[column] = (sums >= observed[column]).mean()
    return p_values


def _all_signs(count: int) -> Table:
    """Return all combinations of signs of ``count`` numbers, one for each row."""
    import numpy as np

    numbers: NDArray[np.int64] = np.arange(2**count, dtype=np.int64)
    bits: NDArray[np.int64] = (numbers[:, None] >> np.arange(count)) & 1
    return bits.astype(np.float64) * 2 - 1


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the exact two-sided p of McNemar's test, for the numbers of questions that were gained
    and lost where two conditions differ; under the null hypothesis, both are equally likely."""
    differing = gained + lost
    tail = sum(math.comb(differing, number) for number in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2**differing)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple tests (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted


def corrected_level(contrasts: int, spared: int = 0) -> float:
    """Return the level of each interval at which ``contrasts`` claims hold together at 1 - ALPHA
    (Bonferroni).

    ``spared`` is the number of policies in which a contrast need not be resolved for a claim.
    Allowing these failures gives a claim more chances to succeed by luck, which the level is
    corrected for by a factor of spared + 1 (the partial conjunction of Benjamini and Heller, 2008).
    """
    return 1 - ALPHA / (contrasts * (spared + 1))


def resamples_for(level: float) -> int:
    """Return the number of resamples for an interval at this level: RESAMPLES, or enough to leave
    BEYOND of them outside each bound."""
    return max(RESAMPLES, math.ceil(2 * BEYOND / (1 - level)))

"""Bootstrap intervals over questions (Efron and Tibshirani 1993, percentile intervals).

Questions are resampled within their type, and all columns of a table with the same draws, so that
the difference of two columns is paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from arag_search.system.extras import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

RESAMPLES = 10_000
SEED = 1678
LEVEL = 0.95
BEYOND = 10
"""The least number of resamples beyond each bound of an interval."""
NOT_TOLD_APART = "not told apart"
"""The words for a difference whose interval holds 0: the questions do not resolve it."""

_DIGITS = 12  # means that are equal but for the order of summation are equal
_SAME = 1e-12  # and so are values


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, such as a mean over questions, with its interval."""

    value: float
    low: float
    high: float

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def resolution(self) -> float:
        """The smallest difference that the questions can resolve: half the width of the
        interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two sides with its interval. Wins are questions on which the side that is
    named first is better."""

    interval: Interval
    wins: int
    losses: int
    ties: int

    @staticmethod
    def of(interval: Interval, gains: Table) -> Difference:
        """Return the difference, with the wins of the ``gains`` of questions, above 0 if better."""
        wins, losses = (int((side * gains > _SAME).sum()) for side in (1, -1))
        return Difference(interval, wins, losses, len(gains) - wins - losses)


def import_numpy() -> Any:
    """Return numpy. Raises MissingExtraError without it."""
    try:
        import numpy
    except ImportError as error:
        raise missing_extra("bench", "numpy") from error
    return numpy


def resamples_for(level: float) -> int:
    """Return how many resamples leave BEYOND of them outside each bound of an interval."""
    return max(RESAMPLES, math.ceil(2 * BEYOND / (1 - level)))


def resampled_means(
    values: Table, types: Sequence[str | None], name: str, resamples: int = RESAMPLES
) -> Table:
    """Return the means of the columns over questions drawn again, of shape (resamples, columns).

    ``values`` has a row for each question, ``types`` its type. The draws depend only on ``name``
    and the types, not on draws for other names.
    """
    import numpy as np

    sums = np.zeros((resamples, values.shape[1]))
    for rows, draws in _draws(tuple(types), name, resamples):
        sums += draws.astype(np.float64) @ values[rows]
    return sums / len(values)


@lru_cache(maxsize=4)
def _draws(
    types: tuple[str | None, ...], name: str, resamples: int
) -> list[tuple[list[int], NDArray[np.int32]]]:
    """Return for each type the rows of its questions, and how often each row is drawn.

    The draws are cached: every table of an analysis draws the same questions.
    """
    import numpy as np

    generator = np.random.default_rng([SEED, *name.encode()])
    draws_by_type: list[tuple[list[int], NDArray[np.int32]]] = []
    for type in sorted(set(types), key=str):
        rows = [number for number, other in enumerate(types) if other == type]
        draws = generator.multinomial(len(rows), [1 / len(rows)] * len(rows), size=resamples)
        draws_by_type.append((rows, draws.astype(np.int32)))
    return draws_by_type


def intervals(values: Sequence[float], means: Table, levels: Sequence[float]) -> list[Interval]:
    """Return for each column its mean, and the percentiles of its resampled ``means`` at its
    level."""
    import numpy as np

    estimates: list[Interval] = []
    for value, column, level in zip(values, means.T, levels, strict=True):
        tail = (1 - level) / 2
        low, high = np.quantile(column.round(_DIGITS), (tail, 1 - tail))
        estimates.append(Interval(round(float(value), _DIGITS), float(low), float(high)))
    return estimates


def mean_interval(
    values: Sequence[float] | Table,
    types: Sequence[str | None],
    name: str,
    level: float = LEVEL,
    resamples: int | None = None,
) -> Interval:
    """Return the mean of values with its interval; by default of as many resamples as it needs."""
    import numpy as np

    column = np.array(values, dtype=np.float64)[:, None]
    means = resampled_means(column, types, name, resamples or resamples_for(level))
    return intervals([float(column.mean())], means, [level])[0]

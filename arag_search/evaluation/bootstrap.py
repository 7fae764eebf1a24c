"""Bootstrap intervals over questions (Efron and Tibshirani 1993, percentile intervals).

Questions are resampled within their type, and all columns of a table with the same draws, so that
the difference of two columns is paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

RESAMPLES = 10_000
SEED = 1678
LEVEL = 0.95

_DIGITS = 12  # means that are equal but for the order of summation are equal


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

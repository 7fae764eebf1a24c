"""A power law fitted to measured sizes, and its prediction for another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench import BenchError
from bench.scale.word_statistics import line

MIN_POINTS = 4

# Two-sided 95 % points of Student's t, by degrees of freedom.
_STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}


@dataclass(frozen=True, slots=True)
class Prediction:
    """A value beyond what was measured, with the 95 % prediction interval of one measurement.

    The interval holds as long as the law does: it reflects the scatter about the line, but no
    change where memory or disk no longer suffice.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """``value = factor * size ** exponent`` by least squares of logarithms.

    ``last_exponent`` is that between the two largest sizes alone: where it is clearly above
    ``exponent``, the line is too low beyond them.
    """

    factor: float
    exponent: float
    last_exponent: float
    _points: tuple[tuple[float, float], ...]

    def at(self, size: float) -> float:
        """Return the value on the line."""
        return self.factor * size**self.exponent

    @property
    def scatter(self) -> float:
        """The standard error of the logarithms about the line."""
        squares = sum((y - math.log(self.at(math.exp(x)))) ** 2 for x, y in self._points)
        return math.sqrt(squares / (len(self._points) - 2))

    def predict(self, size: float) -> Prediction:
        """Predict the value at a size, with its interval."""
        count = len(self._points)
        middle = sum(x for x, _ in self._points) / count
        spread = sum((x - middle) ** 2 for x, _ in self._points)
        distance = (math.log(size) - middle) ** 2 / spread
        student = _STUDENT.get(count - 2, 2.262)
        width = student * self.scatter * math.sqrt(1 + 1 / count + distance)
        value = self.at(size)
        return Prediction(value, value * math.exp(-width), value * math.exp(width))


def power_law(points: Sequence[tuple[float, float]]) -> PowerLaw:
    """Fit a power law to points (size, value), all above 0.

    Raises BenchError for fewer than four different sizes.
    """
    logs = tuple(sorted((math.log(size), math.log(value)) for size, value in points))
    if len({x for x, _ in logs}) < MIN_POINTS:
        raise BenchError(
            f"{len(logs)} sizes are measured, which is too few to go beyond them.",
            allowed=f"at least {MIN_POINTS}",
            do="Name more with --sizes.",
        )
    slope, height = line(logs)
    (before, lower), (last, upper) = logs[-2:]
    return PowerLaw(math.exp(height), slope, (upper - lower) / (last - before), logs)

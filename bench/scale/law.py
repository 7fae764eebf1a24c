"""Extrapolations from the measured sizes to KILT."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import BenchError
from bench.report.rows import Row
from bench.scale.searching import Latency
from bench.scale.sides import Measured
from bench.scale.words import line

TARGET_PASSAGES = 22_000_000
"""KILT's articles in passages of 100 words."""

_CLEARLY_STEEPER = 0.15
_OVERHEAD = 0.5
"""A latency that grows with a smaller exponent is mostly the fixed cost of any query."""


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A quantity at ``TARGET_PASSAGES`` by its power law, in ``unit``."""

    law: PowerLaw
    unit: str

    @property
    def bends(self) -> bool:
        """Whether the quantity grew clearly faster between the last two sizes; the line is then too
        low."""
        return self.law.last_exponent > self.law.exponent + _CLEARLY_STEEPER

    @property
    def is_overhead(self) -> bool:
        """Whether the quantity is a latency that has hardly grown yet and will grow faster: a lower
        bound."""
        return self.unit == "ms" and self.law.exponent < _OVERHEAD

    def row(self, name: str) -> Row:
        """Return the row of the table, with the 95 % prediction interval as its range."""
        prediction = self.law.predict(TARGET_PASSAGES)
        note = ", TOO LOW: it bends" if self.bends else ""
        if self.is_overhead and not self.bends:
            note = ", LOWER BOUND: mostly overhead"
        what = f"{name} (grows as size^{self.law.exponent:.2f}{note})"
        return Row(what, prediction.value, self.unit, prediction.low, prediction.high)

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        prediction = self.law.predict(TARGET_PASSAGES)
        return {
            "passages": TARGET_PASSAGES,
            "value": prediction.value,
            "unit": self.unit,
            "interval_95": [prediction.low, prediction.high],
            "exponent": self.law.exponent,
            "exponent_of_the_last_two_sizes": self.law.last_exponent,
            "bends": self.bends,
            "mostly_overhead": self.is_overhead,
        }


_LATENCIES: Mapping[str, Callable[[Latency], float]] = {
    "median": lambda latency: latency.median_ms,
    "95th percentile": lambda latency: latency.p95_ms,
    "processor time, median": lambda latency: latency.processor_ms,
    "processor time, 95th percentile": lambda latency: latency.processor_p95_ms,
}


_MEASURES: Mapping[str, tuple[Callable[[Measured], float], str]] = {
    "build": (lambda measured: measured.build.seconds / 3600, "h"),
    "build, processor time": (lambda measured: measured.build.processor_s / 3600, "h"),
    "build, disk at most": (lambda measured: measured.build.peak_disk / 1e9, "GB"),
    "index": (lambda measured: measured.build.bytes / 1e9, "GB"),
    "compaction, disk at most": (
        lambda measured: measured.changes["compact"].peak_disk / 1e9,
        "GB",
    ),
    "searches, memory at most": (lambda measured: measured.search.peak_bytes / 1e9, "GB"),
}
"""The measures of an index that are extrapolated, and their units."""


def laws(sizes: Mapping[int, Measured]) -> dict[str, Extrapolation]:
    """Fit the extrapolations by name; none for fewer than four sizes in the last two decades."""
    if len(last_decades([(size, 0.0) for size in sizes])) < MIN_POINTS:
        return {}

    measures = dict(_MEASURES)
    for name in next(iter(sizes.values())).latency:
        for what, value in _LATENCIES.items():
            measures[f"{name}: {what}"] = (
                lambda measured, name=name, value=value: value(measured.latency[name]),
                "ms",
            )
    extrapolations: dict[str, Extrapolation] = {}
    for name, (value, unit) in measures.items():
        points = last_decades([(size, value(measured)) for size, measured in sizes.items()])
        if all(value for _, value in points):  # a server elsewhere does not show its disk
            extrapolations[name] = Extrapolation(power_law(points), unit)
    return extrapolations


# A power law fitted to measured sizes, and its prediction for another size


MIN_POINTS = 4
_DECADES = 2
"""Only so many decades of sizes up to the largest count: below, the fixed costs of a query and the
start of a build hide the growth."""

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


def last_decades(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points (size, value) from which a law is fitted, sorted."""
    largest = max((size for size, _ in points), default=0.0)
    return sorted(point for point in points if point[0] >= largest / 10**_DECADES)


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

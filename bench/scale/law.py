"""Extrapolations from the measured sizes to KILT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.report.rows import Row
from bench.scale.extrapolation import MIN_POINTS, PowerLaw, power_law
from bench.scale.sides import Measured

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


def laws(sizes: Mapping[int, Measured]) -> dict[str, Extrapolation]:
    """Fit the extrapolations by name; none for fewer than four measured sizes."""
    if len(sizes) < MIN_POINTS:
        return {}

    def law(value: Callable[[Measured], float]) -> PowerLaw:
        return power_law([(size, value(measured)) for size, measured in sizes.items()])

    extrapolations = {
        "build": Extrapolation(law(lambda measured: measured.seconds / 3600), "h"),
        "index": Extrapolation(law(lambda measured: measured.bytes / 1e9), "GB"),
    }
    for name in next(iter(sizes.values())).latency:
        extrapolations[f"{name}: median"] = Extrapolation(
            law(lambda measured, name=name: measured.latency[name].median_ms), "ms"
        )
        extrapolations[f"{name}: 95th percentile"] = Extrapolation(
            law(lambda measured, name=name: measured.latency[name].p95_ms), "ms"
        )
    return extrapolations

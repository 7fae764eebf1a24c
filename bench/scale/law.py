"""What the sizes that were measured say of KILT."""

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
"""A latency that grows with a smaller exponent is for the most part what any query costs."""


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A quantity at ``TARGET_PASSAGES`` by its power law, in ``unit``."""

    law: PowerLaw
    unit: str

    @property
    def bends(self) -> bool:
        """Whether it grew clearly faster between the last two sizes: the line is too low then."""
        return self.law.last_exponent > self.law.exponent + _CLEARLY_STEEPER

    @property
    def is_overhead(self) -> bool:
        """Whether it is a latency that hardly grew yet, and will grow faster: a lower bound."""
        return self.unit == "ms" and self.law.exponent < _OVERHEAD

    def row(self, name: str) -> Row:
        """The row of the table, with the 95 % prediction interval as its range."""
        found = self.law.predict(TARGET_PASSAGES)
        note = ", TOO LOW: it bends" if self.bends else ""
        if self.is_overhead and not self.bends:
            note = ", LOWER BOUND: mostly overhead"
        what = f"{name} (grows as size^{self.law.exponent:.2f}{note})"
        return Row(what, found.value, self.unit, found.low, found.high)

    def to_dict(self) -> dict[str, Any]:
        """The values for JSON."""
        found = self.law.predict(TARGET_PASSAGES)
        return {
            "passages": TARGET_PASSAGES,
            "value": found.value,
            "unit": self.unit,
            "interval_95": [found.low, found.high],
            "exponent": self.law.exponent,
            "exponent_of_the_last_two_sizes": self.law.last_exponent,
            "bends": self.bends,
            "mostly_overhead": self.is_overhead,
        }


def laws(sizes: Mapping[int, Measured]) -> dict[str, Extrapolation]:
    """Extrapolations by name; none where fewer than four sizes are measured."""
    if len(sizes) < MIN_POINTS:
        return {}

    def law(value: Callable[[Measured], float]) -> PowerLaw:
        return power_law([(size, value(each)) for size, each in sizes.items()])

    found = {
        "build": Extrapolation(law(lambda each: each.seconds / 3600), "h"),
        "index": Extrapolation(law(lambda each: each.bytes / 1e9), "GB"),
    }
    for name in next(iter(sizes.values())).latency:
        found[f"{name}: median"] = Extrapolation(
            law(lambda each, name=name: each.latency[name].median_ms), "ms"
        )
        found[f"{name}: 95th percentile"] = Extrapolation(
            law(lambda each, name=name: each.latency[name].p95_ms), "ms"
        )
    return found

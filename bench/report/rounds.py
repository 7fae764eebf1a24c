"""Comparisons in interleaved rounds: every side runs once a round, on the same machine state.

The result of a round is the ratio of its two times; the times themselves hold for one machine on
one day.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from arag_search.evaluation.bootstrap import Interval

Side = Callable[[], float]
"""Does its work once and returns its seconds, without the time of preparation."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of every side in every round, in the order of the rounds."""

    seconds: Mapping[str, tuple[float, ...]]

    def median_s(self, side: str) -> float:
        """Return the median time of a side."""
        return statistics.median(self.seconds[side])

    def ratio(self, numerator: str, denominator: str) -> Interval:
        """Return the median over the rounds of the time of one side over another's, with its
        interval at 95 %. Above 1 the denominator is faster."""
        pairs = zip(self.seconds[numerator], self.seconds[denominator], strict=True)
        ratios = [above / below for above, below in pairs]
        return Interval(statistics.median(ratios), *median_interval(ratios))


def interleaved(sides: Mapping[str, Side], rounds: int, *, warm_up: int = 1) -> Timings:
    """Run all sides ``rounds`` times, after ``warm_up`` rounds that do not count.

    The order of the sides alternates between rounds, so that no side is always the first. Garbage
    is collected before a side begins, because it may come from the side before. Objects from before
    the first round are frozen. JPype collects Python's garbage whenever Java has collected its own,
    and a side would otherwise pay for objects of the bench.
    """
    if rounds < 1:
        raise ValueError(f"{rounds} rounds")
    names = list(sides)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()
    try:
        for number in range(-warm_up, rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                gc.collect()
                spent = sides[name]()
                if number >= 0:
                    seconds[name].append(spent)
    finally:
        gc.unfreeze()
    return Timings({name: tuple(spent) for name, spent in seconds.items()})


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return an interval of the median. It is the closest pair of order statistics that contains it
    with a probability of at least ``level`` for any distribution. With few values, it is their
    range."""
    ordered, count = sorted(values), len(values)
    outside, rank = 2 * 0.5**count, 0
    while rank + 1 <= (count - 1) // 2:
        outside += 2 * math.comb(count, rank + 1) * 0.5**count
        if outside > 1 - level:
            break
        rank += 1
    return ordered[rank], ordered[-1 - rank]


def timed(work: Callable[[], object]) -> float:
    """Run ``work`` and return its seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentile(values: list[float], share: float) -> float:
    """Return the percentile by nearest rank: the smallest value that at least ``share`` (above 0,
    at most 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


# Requests by concurrent clients


class Played(NamedTuple):
    """Seconds of all queries, and of each in the order of their ends."""

    seconds: float
    latencies: list[float]


def played(ask: Callable[[int], object], count: int, clients: int) -> Played:
    """Ask the queries 0 to ``count`` once, in so many threads of this process."""
    latencies: list[float] = []

    def timed(number: int) -> None:
        began = time.perf_counter()
        ask(number)
        latencies.append(time.perf_counter() - began)

    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        list(pool.map(timed, range(count)))
        return Played(time.perf_counter() - began, latencies)

"""Rates of our searches and of rivals, on the same passages, in rounds that alternate."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from arag_search.errors import AragError
from bench import BenchError
from bench.report.rounds import Played, interleaved, percentile, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.peers import RIVALS, SIDES, Passages, Setup, Side, check_hits
from bench.workbench import say, without_query_cache


class Rates:
    """The sides that are not left out, made before anything is built."""

    def __init__(self, stack: ExitStack, setup: Setup, names: Sequence[str]) -> None:
        """Raises BenchError for a rival that is missing."""
        self.names, self._stack = names, stack
        self.sides: dict[type[Side], Side] = {}
        for kind in SIDES:
            if kind.option and kind.option not in names:
                continue
            try:
                ours = self.sides.get(kind.beside) if kind.beside else None
                self.sides[kind] = kind(setup, stack, ours)
            except AragError as error:
                raise BenchError(
                    f"A rival is missing: {error.what}",
                    where=error.where or kind.name,
                    allowed=error.allowed or ", ".join(RIVALS),
                    do=f"{error.do} Or leave it out with --without {kind.option}.".strip(),
                ) from error

    def measure(
        self, passages: Passages, clients: Sequence[int], rounds: int, warm_up: int
    ) -> Figure:
        """Measure all sides with each number of clients.

        Raises BenchError if a side that does the same work finds other passages than ours.
        """
        self._stack.enter_context(without_query_cache())
        built_s: dict[str, float] = {}
        for side in self.sides.values():
            say(f"rates: preparing {side.name}")
            built_s[side.name] = round(timed(lambda side=side: side.build(passages)), 2)
            if side.same_work:
                check_hits([of.text for of in passages.queries], side.ours.scored, side.scored)
        say(f"rates: {len(passages.queries):,} queries, {warm_up} + {rounds} rounds")
        rounds_of: dict[str, list[Played]] = {}

        def play(side: Side, number: int) -> float:
            plays = rounds_of.setdefault(_of(side, number), [])
            plays.append(side.play(number))
            return plays[-1].seconds

        sides = {
            _of(side, number): partial(play, side, number)
            for side in self.sides.values()
            for number in clients
        }
        timings = interleaved(sides, rounds, warm_up=warm_up)
        rows = [
            Row(what, value, "")
            for side in self.sides.values()
            for what, value in side.measured.items()
        ]
        for kind, side in self.sides.items():
            for number in clients if kind.beside else ():
                ratio = timings.ratio(_of(side, number), _of(side.ours, number))
                target = Target("at least", side.aims[number]) if number in side.aims else None
                what = f"rate of {side.ours.name} over {_of(side, number)}"
                rows.append(Row.of_ratio(what, ratio, target))
        latency_ms: dict[str, Mapping[str, float]] = {}
        for name, seconds in timings.seconds.items():
            spent = [1000 * of for play in rounds_of[name][-rounds:] for of in play.latencies]
            rates = [len(spent) / rounds / round_s for round_s in seconds]
            rows.append(
                Row(f"{name}: QPS", statistics.median(rates), "queries/s", min(rates), max(rates))
            )
            shares = {f"P{share}": percentile(spent, share / 100) for share in (50, 95, 99)}
            latency_ms[name] = {"mean": statistics.mean(spent), **shares}
        details: Mapping[str, Any] = {
            "queries": len(passages.queries),
            "left out": [name for name in RIVALS if name not in self.names],
            "versions": {side.name: side.version for side in self.sides.values() if side.version},
            "built_s": built_s,
            "latency_ms": latency_ms,
            "seconds": timings.seconds,
        }
        return Figure("rates", tuple(rows), details)


def _of(side: Side, clients: int) -> str:
    return f"{side.name}, {clients} client{'s' if clients > 1 else ''}"

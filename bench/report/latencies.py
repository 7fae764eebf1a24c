"""Requests by several clients at once: how long each takes, and all together."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bench.report.rounds import Side

Ask = Callable[[int], object]
"""Runs the query of a number."""


class Played(NamedTuple):
    """Seconds of all queries, and of each in the order of their ends."""

    seconds: float
    each: list[float]


Player = Callable[[int], Played]
"""Runs all queries once by so many clients."""


def threads(ask: Ask, count: int) -> Player:
    """Plays queries 0 to ``count`` by threads of this process."""

    def play(clients: int) -> Played:
        kept: list[float] = []

        def timed(number: int) -> None:
            began = time.perf_counter()
            ask(number)
            kept.append(time.perf_counter() - began)

        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            list(pool.map(timed, range(count)))
            return Played(time.perf_counter() - began, kept)

    return play


class Latencies:
    """Seconds of single requests by side, of all rounds."""

    def __init__(self) -> None:
        self._by_round: dict[str, list[list[float]]] = {}

    def side(self, name: str, player: Player, clients: int) -> Side:
        """All queries once, by so many clients."""

        def run() -> float:
            played = player(clients)
            self._by_round.setdefault(name, []).append(played.each)
            return played.seconds

        return run

    def of(self, name: str, rounds: int) -> list[float]:
        """Those of the last so many rounds: what warmed up came first."""
        return [one for each in self._by_round[name][-rounds:] for one in each]

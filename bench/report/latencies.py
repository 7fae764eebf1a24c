"""Latencies of requests by concurrent clients, single and in total."""

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
    latencies: list[float]


Player = Callable[[int], Played]
"""Runs all queries once with this many clients."""


def threads(ask: Ask, count: int) -> Player:
    """Return a player that runs queries 0 to ``count`` in threads of this process."""

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
        """Return a side that runs all queries once with this many clients."""

        def run() -> float:
            played = player(clients)
            self._by_round.setdefault(name, []).append(played.latencies)
            return played.seconds

        return run

    def of(self, name: str, rounds: int) -> list[float]:
        """Return the times of the last ``rounds`` rounds, without those of the warm-up."""
        return [latencies for latency in self._by_round[name][-rounds:] for latencies in latency]

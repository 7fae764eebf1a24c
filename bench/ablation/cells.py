"""Cells: the measurements under one condition, a row for each question and seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from arag_search.system.progress import duration
from bench.ablation.judging.intents import Intents
from bench.ablation.suite import Key
from bench.workbench import Building


@dataclass(frozen=True, slots=True)
class CellRow:
    """One question in one cell, with one seed.

    ``values`` are by measure, as it prints ("TokensToEvidence", "EM"); None is what could not be
    measured. ``failed`` says whether the question failed, ``unresolved`` whether its evidence is in
    no passage of the index. ``failure`` is why the answer is wrong by its record, and ``verdict``
    by a model. ``intents`` are the intents of its searches, None if no model found them.
    """

    question_id: str
    type: str | None
    seed: int
    values: Mapping[str, float | None]
    failed: bool = False
    unresolved: bool = False
    failure: str | None = None
    verdict: str | None = None
    intents: Intents = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition, the fingerprints of all that its values depend on, its rows, and what a system
    took to build before the first question."""

    key: Key
    fingerprints: Mapping[str, str]
    rows: Sequence[CellRow]
    building: Building | None = None


class Experiment(Protocol):
    """Something that can be measured under several conditions, one by one in the order of the keys
    of its suite. It keeps what several of them share, and what was paid for."""

    def measure(self, key: Key) -> Cell:
        """Return the cell, with every question in the denominator; build what is missing for it,
        such as an index."""
        ...

    def close(self) -> None:
        """Close everything that is open."""
        ...


def measured(experiment: Experiment, keys: Sequence[Key], say: Callable[[str], None]) -> list[Cell]:
    """Measure all cells."""
    began = time.monotonic()
    cells: list[Cell] = []
    for key in keys:
        cells.append(experiment.measure(key))
        left = (time.monotonic() - began) / len(cells) * (len(keys) - len(cells))
        name = ", ".join(key.values())
        say(f"{len(cells):,} of {len(keys):,} cells, {name}; at most {duration(left)} left")
    return cells

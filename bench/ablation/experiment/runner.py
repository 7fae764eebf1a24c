"""The runner of experiments: it measures cell by cell, skips finished cells, and resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag_search.system.progress import duration
from bench import BenchError
from bench.ablation.experiment.cells import Cell, CellRow, Experiment, Key, stored, write_cell

FAILED = "failed questions"
"""The extra fingerprint of a cell with failed questions. It makes the cell outdated, so that the
next run retries these questions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number of cells measured in this run, and of those kept from earlier ones."""

    measured: int
    kept: int


def chosen_keys(keys: Sequence[Key], only: Mapping[str, str]) -> list[Key]:
    """Return the keys with these levels. Raises BenchError for an unknown factor or level."""
    for factor, level in only.items():
        levels = dict.fromkeys(key[factor] for key in keys if factor in key)
        if not levels:
            factors = ", ".join(keys[0])
            raise BenchError(f'There is no factor "{factor}".', where="--only", allowed=factors)
        if level not in levels:
            raise BenchError(
                f'"{level}" is not a level of {factor}.', where="--only", allowed=", ".join(levels)
            )
    return [key for key in keys if all(key[factor] == level for factor, level in only.items())]


def run_cells(
    experiment: Experiment, keys: Sequence[Key], folder: Path, say: Callable[[str], None]
) -> Outcome:
    """Measure the cells that the folder lacks, or that were measured with other fingerprints."""
    began = time.monotonic()
    measured = kept = 0
    for number, key in enumerate(keys, 1):
        cell = Cell(dict(key), dict(experiment.fingerprints(key)))
        there = stored(folder, cell)
        if there.is_current:
            kept += 1
            continue
        if there.exists:
            say(f"{named(key)}: measured again, for another {', '.join(there.changed)}.")
        rows = list(experiment.measure(key))
        write_cell(folder, _with_failures(cell, rows), rows)
        measured += 1
        left = (time.monotonic() - began) / measured * (len(keys) - number)
        say(f"{number:,} of {len(keys):,} cells, {named(key)}; at most {duration(left)} left")
    return Outcome(measured, kept)


def named(key: Key) -> str:
    """Format the levels of a key for people."""
    return ", ".join(key.values())


def _with_failures(cell: Cell, rows: Sequence[CellRow]) -> Cell:
    failed = sum(bool(row.details.get("failed")) for row in rows)
    if not failed:
        return cell
    return replace(cell, fingerprints={**cell.fingerprints, FAILED: str(failed)})

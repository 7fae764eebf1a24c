"""Startup of a fresh process: the import, and its first search."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import BenchError
from bench.report.rounds import Side, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.workbench import Workbench, say

ROUNDS = 5
QUERY = '"directed by" AND film* AND NOT title:film'
IMPORT_TARGET = Target("at most", 150.0)
FIRST_SEARCH_TARGET = Target("at most", 1.5)

_CLOCK = "import sys, time; began = time.perf_counter(); "
_SHOW = "print(time.perf_counter() - began)"
IMPORT = f"{_CLOCK}import arag_search; {_SHOW}"
IMPORT_ALL = (
    f"{_CLOCK}import arag_search; [getattr(arag_search, n) for n in arag_search.__all__]; {_SHOW}"
)
FIRST_SEARCH = (
    f"{_CLOCK}import arag_search; index = arag_search.open_index(sys.argv[1]); "
    f"hits = index.logical_search(sys.argv[2]).hits; {_SHOW}; index.close(); sys.exit(not hits)"
)


def measure(bench: Workbench, rounds: int = ROUNDS) -> Figure:
    """Measure median times of fresh processes, with files in the system's cache."""
    say(f"startup: 1 + {rounds} rounds of fresh processes")
    place = [str(bench.index), QUERY]
    return figure(
        {
            "import": reported([sys.executable, "-c", IMPORT]),
            "import of all names": reported([sys.executable, "-c", IMPORT_ALL]),
            "first search in Python": reported([sys.executable, "-c", FIRST_SEARCH, *place]),
            "first search by command": whole([*command_line(), "search", *place]),
        },
        rounds,
    )


def figure(sides: Mapping[str, Side], rounds: int) -> Figure:
    """Return the rows of these sides; the first is an import, and names of searches contain
    "search"."""
    timings = interleaved(sides, rounds)
    rows: list[Row] = []
    for name, seconds in timings.seconds.items():
        is_search = "search" in name
        scale, unit = (1, "s") if is_search else (1000, "ms")
        target = FIRST_SEARCH_TARGET if is_search else IMPORT_TARGET if not rows else None
        low, high = min(seconds) * scale, max(seconds) * scale
        rows.append(Row(name, timings.median_s(name) * scale, unit, low, high, target))
    return Figure("startup", tuple(rows), {"seconds": timings.seconds})


def reported(command: Sequence[str]) -> Side:
    """Return a side that runs a process that prints the seconds that count."""
    return lambda: float(_run(command))


def whole(command: Sequence[str]) -> Side:
    """Return a side that times a process from its start to its end."""
    return lambda: timed(lambda: _run(command))


def command_line() -> list[str]:
    """Return the arag-search command of this environment."""
    script = Path(sys.executable).parent / "arag-search"
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from arag_search.cli.app import main; main()"]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not done.stdout:
        raise BenchError(
            f"A process ended with exit code {done.returncode}.",
            where=f"{Path(command[0]).name} {command[-1]}",
            do=done.stderr.strip()[-500:] or "It printed nothing.",
        )
    return done.stdout

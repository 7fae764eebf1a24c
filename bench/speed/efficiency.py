"""The figures of the search core: indexing, search, keyword search, startup.

    python -m bench efficiency all
    python -m bench efficiency search --rounds 3 --json search.json

Prints a table, and adds what it measured to a JSON file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from arag_search.errors import AragError
from bench import RESULTS_FOLDER, BenchError
from bench.arguments import command_line, positive
from bench.report.rows import Figure, circumstances, table, write_results
from bench.speed import indexing, keyword, search, startup
from bench.speed.queries import SEED
from bench.workbench import CORPUS, Workbench, say, set_up

PARTS = ("indexing", "search", "keyword", "startup")
ROUNDS = 7
DATA = Path("..") / "shared" / "data"
RESULTS = RESULTS_FOLDER / "efficiency.json"

_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure what the arguments name. Exit code 1 for a failure; a missed target is none."""
    given = _parser().parse_args(arguments)
    parts = PARTS if given.part == "all" else (given.part,)
    try:
        if given.json.is_dir():
            raise BenchError(
                "The file of results is a folder.",
                where=str(given.json),
                do="Name a file, such as efficiency.json in it.",
            )
        with set_up(given.data / CORPUS, given.work) as bench:
            command = command_line("efficiency", arguments)
            run = circumstances(command, bench.manifest, seed=SEED)
            if run["load"] > _QUIET_LOAD:
                say(f"The machine is not quiet (load {run['load']}): times will be off.")
            measure = _measures(given)
            figures: list[Figure] = []
            for part in parts:
                figures.append(measure[part](bench))
                write_results(given.json, figures[-1:], run)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(figures))
    return 0


def _measures(given: argparse.Namespace) -> dict[str, Callable[[Workbench], Figure]]:
    return {
        "indexing": lambda bench: indexing.measure(bench, given.rounds),
        "search": lambda bench: search.measure(bench, given.rounds, count=given.queries),
        "keyword": lambda bench: keyword.measure(
            bench, given.rounds, scales=given.scales, max_build_s=given.max_build_s
        ),
        "startup": lambda bench: startup.measure(bench),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench efficiency",
        description="Measure the search core against bare loops. See bench/README.md.",
    )
    add = parser.add_argument
    add("part", nargs="?", choices=(*PARTS, "all"), default="all")
    add("--rounds", type=positive, default=ROUNDS, help="interleaved rounds (default %(default)s)")
    add("--queries", type=positive, default=search.QUERIES, help="of search (default %(default)s)")
    add(
        "--scales",
        type=_scales,
        default=keyword.SCALES,
        help="of keyword: copies of the corpus (default 1,10,100)",
    )
    add(
        "--max-build-s",
        type=float,
        default=keyword.MAX_BUILD_S,
        help="of keyword: longest time for one index (default %(default)g)",
    )
    add("--data", type=Path, default=DATA, help="folder of the corpora (default %(default)s)")
    add(
        "--json",
        type=Path,
        default=RESULTS,
        help="file of results (default bench/results/efficiency.json)",
    )
    add("--work", type=Path, help="folder for temporary files (default: that of the system)")
    return parser


def _scales(text: str) -> tuple[int, ...]:
    return tuple(positive(piece) for piece in text.split(","))

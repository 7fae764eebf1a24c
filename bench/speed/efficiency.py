"""Time of building, searches and startup over that of bare loops.

    python -m bench efficiency all
    python -m bench efficiency search --rounds 3 --json search.json
    python -m bench efficiency anserini --anserini anserini-fatjar.jar

Prints a table and adds the figures to the file of results. See bench/studies/speed.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_in
from bench.report.rows import Figure, circumstances, table, write_results
from bench.speed import anserini, indexing, keyword, search, startup
from bench.speed.queries import SEED
from bench.workbench import Workbench, say, set_up

PARTS = ("indexing", "search", "keyword", "startup")
ANSERINI = "anserini"
"""A part of its own, which needs a jar."""
ROUNDS = 7

_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen parts and return the exit code; a missed target is not a failure."""
    parser = BenchParser("efficiency", __doc__)
    add = parser.add_argument
    add("part", nargs="?", choices=(*PARTS, ANSERINI, "all"), default="all")
    parser.add_rounds(ROUNDS)
    parser.add_default("--queries", positive, search.QUERIES, "queries of the search bench")
    add(
        "--scales",
        type=_scales,
        default=keyword.SCALES,
        help="copies of the corpus in the keyword bench (default 1,10,100)",
    )
    add(
        "--max-build-s",
        type=float,
        default=keyword.MAX_BUILD_S,
        help="longest time for one index in the keyword bench (default %(default)g)",
    )
    add(
        "--anserini",
        type=Path,
        metavar="JAR",
        help="jar of the part anserini, run by the Java of JAVA_HOME",
    )
    parser.add_data()
    parser.add_results()
    parser.add_work()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    parts = PARTS if options.part == "all" else (options.part,)
    if options.json.is_dir():
        raise BenchError(
            "The file of results is a folder.",
            where=str(options.json),
            do="Name a file, such as efficiency.json in it.",
        )
    if ANSERINI in parts and options.anserini is None:
        raise BenchError(
            "Anserini has no jar.",
            where=ANSERINI,
            do="Name its fat jar, which the package pyserini has, with --anserini.",
        )
    with set_up(corpus_in(options.data), options.work) as bench:
        run = circumstances(command, bench.manifest, seed=SEED)
        if run["load"] > _QUIET_LOAD:
            say(f"The machine is not quiet (load {run['load']}): times will be off.")
        measure = _measures(options)
        figures: list[Figure] = []
        for part in parts:
            figures.append(measure[part](bench))
            write_results(options.json, figures[-1:], run)
    print(table(figures))
    return 0


def _measures(options: argparse.Namespace) -> dict[str, Callable[[Workbench], Figure]]:
    return {
        "indexing": lambda bench: indexing.measure(bench, options.rounds),
        "search": lambda bench: search.measure(bench, options.rounds, count=options.queries),
        "keyword": lambda bench: keyword.measure(
            bench, options.rounds, scales=options.scales, max_build_s=options.max_build_s
        ),
        ANSERINI: lambda bench: anserini.measure(bench, options.rounds, options.anserini),
        "startup": lambda bench: startup.measure(bench),
    }


def _scales(text: str) -> tuple[int, ...]:
    return tuple(positive(piece) for piece in text.split(","))

"""Time of building over that of bare loops and of Anserini.

    python -m bench efficiency indexing
    python -m bench efficiency anserini --anserini anserini-fatjar.jar

Prints a table and adds the figures to the file of results. See bench/studies/speed.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench import BenchError
from bench.arguments import BenchParser
from bench.data import corpus_in
from bench.report.rows import circumstances, table, write_results
from bench.speed import anserini, indexing
from bench.speed.queries import SEED
from bench.workbench import say, set_up

INDEXING, ANSERINI = "indexing", "anserini"
ROUNDS = 7

_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen parts and return the exit code; a missed target is not a failure."""
    parser = BenchParser("efficiency", __doc__)
    add = parser.add_argument
    add("part", nargs="?", choices=(INDEXING, ANSERINI), default=INDEXING)
    parser.add_rounds(ROUNDS)
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
    if options.json.is_dir():
        raise BenchError(
            "The file of results is a folder.",
            where=str(options.json),
            do="Name a file, such as efficiency.json in it.",
        )
    if options.part == ANSERINI and options.anserini is None:
        raise BenchError(
            "Anserini has no jar.",
            where=ANSERINI,
            do="Name its fat jar, which the package pyserini has, with --anserini.",
        )
    with set_up(corpus_in(options.data), options.work) as bench:
        run = circumstances(command, bench.manifest, seed=SEED)
        if run["load"] > _QUIET_LOAD:
            say(f"The machine is not quiet (load {run['load']}): times will be off.")
        if options.part == ANSERINI:
            figure = anserini.measure(bench, options.rounds, options.anserini)
        else:
            figure = indexing.measure(bench, options.rounds)
        write_results(options.json, [figure], run)
    print(table([figure]))
    return 0

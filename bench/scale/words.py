"""What the words of a real corpus are like, and of the synthetic one that stands in for it.

    python -m bench words
    python -m bench words --data FOLDER --json words.json

The statistics are those of bench/scale/word_statistics.py; `bench scale` compares them before it
measures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from arag_search.errors import AragError
from bench import RESULTS_FOLDER
from bench.arguments import command_line
from bench.report.rows import Figure, Row, circumstances, show
from bench.scale import synthetic
from bench.scale.scale import compared
from bench.workbench import CORPUS, check_corpus

DATA = Path("..") / "shared" / "data"
RESULTS = RESULTS_FOLDER / "words.json"


def main(arguments: Sequence[str]) -> int:
    """Count. Exit code 1 for a failure."""
    given = _parser().parse_args(arguments)
    corpus = given.data / CORPUS
    try:
        check_corpus(corpus)
        figure = counted(corpus)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    run = circumstances(command_line("words", arguments), seed=synthetic.SEED)
    show(given.json, [figure], run)
    return 0


def counted(corpus: Path) -> Figure:
    """Every statistic of the real corpus and of the synthetic one."""
    both = compared(corpus)
    rows = [
        Row(f"{which}: {name}", each[which], "")
        for which in ("real", "synthetic")
        for name, each in both.items()
    ]
    unlike = [name for name, each in both.items() if not each["alike"]]
    return Figure("words", tuple(rows), {"corpus": corpus.parent.name, "unlike": unlike})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench words",
        description="Count the words of a real corpus and of the synthetic one.",
    )
    add = parser.add_argument
    add("--data", type=Path, default=DATA, help="folder of the corpora (default %(default)s)")
    add("--json", type=Path, default=RESULTS, help="file of results (default bench/results)")
    return parser

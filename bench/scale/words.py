"""Statistics of the words of a real corpus and of the synthetic one.

    python -m bench words
    python -m bench words --data FOLDER --json words.json

bench/scale/word_statistics.py defines the statistics; `python -m bench scale` compares them before
it measures.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.arguments import BenchParser
from bench.data import corpus_in
from bench.report.rows import Figure, Row, circumstances, show
from bench.scale import synthetic
from bench.scale.scale import compared


def main(arguments: Sequence[str]) -> int:
    """Count the words of both corpora and return the exit code."""
    parser = BenchParser("words", __doc__)
    parser.add_data()
    parser.add_results()
    return parser.run(arguments, _counted)


def _counted(options: argparse.Namespace, command: str) -> int:
    figure = counted(corpus_in(options.data))
    show(options.json, [figure], circumstances(command, seed=synthetic.SEED))
    return 0


def counted(corpus: Path) -> Figure:
    """Return every statistic of both corpora."""
    both = compared(corpus)
    rows = [
        Row(f"{which}: {name}", statistic[which], "")
        for which in ("real", "synthetic")
        for name, statistic in both.items()
    ]
    unlike = [name for name, statistic in both.items() if not statistic["alike"]]
    return Figure("words", tuple(rows), {"corpus": corpus.parent.name, "unlike": unlike})

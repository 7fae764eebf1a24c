"""Make data sets from published files, each with its index and its questions.

    hf download Wix/WixQA --repo-type dataset --local-dir downloaded
    python -m bench prepare wixqa downloaded --to data
    python -m bench ablate bench/suites/agenticrag_wixqa.yaml --data data --dry-run

Downloads nothing. Run the same command again to make the data sets anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.arguments import BenchParser
from bench.published import bright, browsecomp_plus, financebench, wixqa

MAKERS: Mapping[str, Callable[[Path, Path], Iterator[str]]] = {
    "bright": bright.make,
    "browsecomp_plus": browsecomp_plus.make,
    "financebench": financebench.make,
    "wixqa": wixqa.make,
}
"""The makers of the data sets by name. They are called with the downloaded folder and the folder of
data sets, and yield a description of each set."""


def main(arguments: Sequence[str]) -> int:
    """Make the data sets and return the exit code."""
    parser = BenchParser("prepare", __doc__)
    parser.add_argument("published", choices=MAKERS, help="what was downloaded")
    parser.add_argument("folder", type=Path, help="where it was downloaded to")
    parser.add_argument("--to", type=Path, required=True, help="the folder of the data sets")
    return parser.run(arguments, _prepare)


def _prepare(options: argparse.Namespace, _: str) -> int:
    for described in MAKERS[options.published](options.folder, options.to):
        print(described, flush=True)
    return 0

# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""ripgrep as a model calls it: lines with the two longest words of the query, in any order. With
CALLS above 1, a reply also has lines with other pairs of long words. Each call shows the first 20
lines, each cut at 300 signs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path

from common import main

LINES = 20
CHARACTERS = 300
CALLS = int(os.environ.get("CALLS", "1"))


def build(folder: str, work: Path) -> None:
    (work / "folder").write_text(folder)


def searcher(work: Path) -> Callable[[str], list[str]]:
    folder = (work / "folder").read_text()

    def search(query: str) -> list[str]:
        words = sorted(set(re.findall(r"\w+", query)), key=len, reverse=True)[: CALLS + 1]
        pairs = list(combinations(words, 2))[:CALLS] or [words]
        shown: list[str] = []
        for pair in pairs:
            pattern = "|".join(".*".join(order) for order in permutations(pair))
            command = ["rg", "-in", "--no-heading", "-e", pattern, folder]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
            shown += [line[:CHARACTERS] for line in done.stdout.splitlines()[:LINES]]
        return ["\n".join(shown)]

    return search


main(build, searcher)

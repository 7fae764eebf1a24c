"""Update the tables of numbers in the guides from the files of results.

    python -m bench figures
    python -m bench figures --check

A table is between two marks in a document, and nobody edits it by hand:

    <!-- figures: speed -->
    <!-- end of figures -->

bench/guides/figure_tables.py defines the tables. With --check nothing is written, and the exit code
is 1 if a table differs from the results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import RESULTS_FOLDER, BenchError
from bench.arguments import BenchParser
from bench.guides.figure_tables import TABLES, Table
from bench.report.fingerprints import ROOT
from bench.report.rows import Kept

DOCUMENTS = (
    "bench/README.md",
    "configs/README.md",
    "index_jobs/README.md",
    *(
        f"bench/studies/{name}.md"
        for name in (
            *("agent", "gold_chain", "growth", "manuals", "papers", "retrieval"),
            *("speed", "vectors"),
        )
    ),
)

_END = "<!-- end of figures -->"
_BEGIN = re.compile(r"^<!-- figures: (?P<name>[^>\n]*?) -->$", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Write or check the tables and return the exit code: with --check, 1 for an outdated table."""
    parser = BenchParser("figures", __doc__)
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing; exit with 1 if a table is outdated")
    add("--root", type=Path, default=ROOT, help="folder of the documents (default: this clone)")
    add(
        "--results",
        type=Path,
        default=RESULTS_FOLDER,
        help="folder of results (default bench/results)",
    )
    return parser.run(arguments, _updated)


def _updated(options: argparse.Namespace, _: str) -> int:
    names = outdated(options.root, Kept(options.results), write=not options.check)
    for name in names:
        print(f"{name}: {'differs from the results' if options.check else 'updated'}")
    if options.check and names:
        print("Do: Run python -m bench figures.", file=sys.stderr)
        return 1
    return 0


def outdated(root: Path, kept: Kept, *, write: bool) -> list[str]:
    """Return the documents whose tables differ from the results; with ``write``, update them.

    Raises BenchError for a mark that is not understood, and what the tables raise.
    """
    old: list[str] = []
    for name in DOCUMENTS:
        path = root / name
        text = path.read_text("utf-8")
        new = rewritten(text, kept, TABLES, where=name)
        if new != text:
            old.append(name)
            if write:
                path.write_text(new, "utf-8")
    return old


def rewritten(text: str, kept: Kept, tables: Mapping[str, Table], *, where: str) -> str:
    """Return the text with all tables updated. Raises BenchError for an unknown or unclosed
    mark."""
    parts: list[str] = []
    at = 0
    while begin := _BEGIN.search(text, at):
        end = text.find(_END, begin.end())
        following = _BEGIN.search(text, begin.end())
        if end < 0 or (following and following.start() < end):
            raise _broken("A table has no end.", begin, text, where, f"{_END} behind the table")
        name = begin["name"]
        if name not in tables:
            raise _broken("There is no such table.", begin, text, where, ", ".join(tables))
        lines = tables[name](kept)
        parts += [text[at : begin.end()], "\n", *(f"{line}\n" for line in lines)]
        at = end
    return "".join([*parts, text[at:]])


def _broken(what: str, begin: re.Match[str], text: str, where: str, allowed: str) -> BenchError:
    line = text.count("\n", 0, begin.start()) + 1
    return BenchError(what, where=f"{where}, line {line}: {begin[0]}", allowed=allowed)

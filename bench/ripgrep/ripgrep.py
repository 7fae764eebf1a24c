"""Evidence that an agent reads with ripgrep or logical_search, over the same files.

    python -m bench ripgrep --notes 1000,10000
    python -m bench ripgrep --postgresql FOLDER --python FOLDER --notes 1000

A script with one policy has either tool in its hands, and no model is asked. The command measures
the share of needs of which all evidence was read, calls, tokens of their output, and seconds.
Debian's packages have the manuals: --postgresql is the folder html of postgresql-doc-NN, and
--python the folder html/library of python3.NN-doc. See bench/studies/ripgrep.md.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from arag_search.evaluation.bootstrap import SEED
from arag_search.search.opening import open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.estimates import mean_rows
from bench.report.rows import Figure, circumstances, corpus_of, show
from bench.ripgrep.manuals import copy_pages, plain, postgresql_needs, python_needs, without_tags
from bench.ripgrep.notes import Need, write_notes
from bench.ripgrep.policy import Hands, ask
from bench.ripgrep.tools import LogicalHands, RipgrepHands
from bench.workbench import check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

NAME = "ripgrep"
FILE_BYTES = 8 << 10
"""The bytes of a note on the disk with its share of the index, about."""


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen corpora and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("--notes", type=_counts, default=(1_000,), metavar="N,N", help="numbers of made notes")
    for manual in ("postgresql", "python"):
        add(f"--{manual}", type=Path, metavar="FOLDER", help="its manual")
    parser.add_default("--needs", positive, 60, "needs of each corpus")
    parser.add_default("--seed", int, SEED, "seed of notes and needs")
    parser.add_kept_work("notes and indexes", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(positive, text.split(",")))


def _measured(options: argparse.Namespace, command: str) -> int:
    if shutil.which("rg") is None:
        raise BenchError("ripgrep is not installed.", do="Install it: apt install ripgrep")
    run = circumstances(command, seed=options.seed)
    figures: list[Figure] = []
    for name, needs_in in (("postgresql", postgresql_needs), ("python", python_needs)):
        if folder := getattr(options, name):
            pages = options.work / f"{name}-pages"
            shutil.rmtree(pages, ignore_errors=True)
            copy_pages(folder, pages)
            needs = needs_in(folder, options.needs, options.seed)
            figures.append(_figure(f"manual of {name}", pages, needs, options.work / "index"))
    for count in options.notes:
        folder = options.work / f"notes-{count}"
        check_room(options.work.parent, count * FILE_BYTES)
        shutil.rmtree(folder, ignore_errors=True)
        say(f"{count:,} notes: writing")
        needs = write_notes(folder, count, options.seed)
        drawn = Random(options.seed).sample(needs, min(options.needs, len(needs)))
        figures.append(_figure(f"{count:,} made notes", folder, drawn, options.work / "index"))
    show(options.json, figures, run)
    return 0


def _figure(name: str, folder: Path, needs: Sequence[Need], location: Path) -> Figure:
    """Measure both agents over the files of a folder. Raises BenchError without a need."""
    if not needs:
        raise BenchError(
            "No need was found.", where=str(folder), do="Name the folder of the pages."
        )
    say(f"{name}: indexing")
    build_index([str(folder)], location, BuildOptions(overwrite=True))
    with open_index(location) as index:
        sides: dict[str, Callable[[], Hands]] = {
            "ripgrep": lambda: RipgrepHands(index, folder),
            "logical_search": lambda: LogicalHands(index),
        }
        say(f"{name}: {len(needs)} needs")
        columns: dict[str, list[float]] = {}
        for side, hands in sides.items():
            for need in needs:
                for measure, value in _values(need, hands()).items():
                    columns.setdefault(f"{side}, {measure}", []).append(value)
        for measure in ("evidence", "calls", "tokens"):
            pairs = zip(
                columns[f"logical_search, {measure}"], columns[f"ripgrep, {measure}"], strict=True
            )
            columns[f"logical_search - ripgrep, {measure}"] = [
                ours - theirs for ours, theirs in pairs
            ]
        rows = mean_rows({name: columns}, {name: [need.kind for need in needs]})
        corpus = corpus_of(index.manifest)
    return Figure(name, rows, {"needs": len(needs), "corpus": corpus})


def _values(need: Need, hands: Hands) -> dict[str, float]:
    began = time.perf_counter()
    reading = ask(hands, need.text)
    spent = time.perf_counter() - began
    read = plain(without_tags(" ".join(reading.texts)))
    return {
        "evidence": float(all(plain(without_tags(sentence)) in read for sentence in need.evidence)),
        "calls": float(reading.calls),
        "tokens": float(reading.tokens),
        "seconds": spent,
    }

"""Compare speed and size with those of an earlier commit, in alternating pairs.

    python -m bench budgets --column "less code"
    python -m bench budgets --baseline --against 4e6db13

The commit is taken from git, and both sides run in processes of this environment, which are started
five times: one search, one reply (logical_search of preset logical_read), one build, the size of
the index, the first search of a fresh process, the way of a search through the code, and the size
of the code. A ratio above 1 is slower or larger than the commit. Its range is an interval of
the median of the pairs at 95 % (order statistics); where it contains 1, the difference is not
resolved. A column is added to the file of results, beside the figures of the commit that
``--baseline`` took. Searches and replies are in time of the thread.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from arag_search import open_index
from bench.arguments import BenchParser, positive
from bench.data import corpus_in
from bench.replay.against import BENCH_THEN, Side, environment, exported
from bench.report.rounds import interleaved, median_interval, timed
from bench.report.rows import Figure, Row, circumstances, show
from bench.speed.queries import SEED, logical_queries
from index_jobs.build.new_index import build_index

BASELINE = "4e6db13"
PAIRS = 20
STARTS = 5
"""How often both processes are started anew during the pairs: what Java compiles, and how, differs
from start to start, and moves the time of a search by several percent."""
WARM_UP = {"search": 20, "reply": 20, "build": 1, "first search": 1}
"""Pairs after a start until Java has compiled the code in use, which takes some 3,000 searches."""
QUERIES = 200
SIZES = ("files entered", "changes of room", "index", "lines", "statements", "files")
CODE = ("arag_search", "index_jobs", "bench")

_ROOT = Path(__file__).parents[1]
_FIRST_SEARCH = (
    "import sys, arag_search; index = arag_search.open_index(sys.argv[1]); "
    "sys.exit(not index.logical_search(sys.argv[2]).hits)"
)


def main(arguments: Sequence[str]) -> int:
    """Measure, add the column and return the exit code; a slower side is not a failure."""
    parser = BenchParser("budgets", __doc__)
    parser.add_default("--against", str, BASELINE, "commit to compare with")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--column", metavar="NAME", help="add the ratios under this name")
    what.add_argument(
        "--baseline", action="store_true", help="take the figures of the commit alone"
    )
    parser.add_default("--pairs", positive, PAIRS, "alternating pairs")
    parser.add_default("--queries", positive, QUERIES, "queries of a pair")
    parser.add_data()
    parser.add_work()
    parser.add_results(file="baseline")
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    corpus = corpus_in(options.data).resolve()
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="arag-bench-", dir=options.work))
        )
        trees = {"then": exported(options.against, folder / "then")}
        if not options.baseline:
            trees["now"] = _ROOT
        build_index([str(corpus)], folder / "index")
        with open_index(folder / "index", search_timeout_s=None) as index:
            texts = [query.text for query in logical_queries(list(index.scan()), options.queries)]
            run = circumstances(command, index.manifest, seed=SEED)
        timings: dict[str, dict[str, list[float]]] = {
            work: {name: [] for name in trees} for work in _WORKS
        }
        sizes: dict[str, dict[str, int]] = {}
        starts = min(STARTS, options.pairs)
        for number in range(starts):
            pairs = (number + 1) * options.pairs // starts - number * options.pairs // starts
            with _sides(trees, folder / str(number), corpus) as sides:
                for work, seconds in timings.items():
                    timers = {
                        name: _timer(side, trees[name], work, texts) for name, side in sides.items()
                    }
                    measured = interleaved(timers, pairs, warm_up=WARM_UP[work]).seconds
                    for name, spent in measured.items():
                        seconds[name] += spent
                sizes = sizes or {name: _sizes(side, trees[name]) for name, side in sides.items()}
    if options.baseline:
        figure = _baseline(options.against, timings, sizes["then"])
    else:
        figure = _column(options.column, timings, sizes)
    show(options.json, [figure], {**run, "against": options.against})
    return 0


_WORKS = {"search": "ms", "reply": "ms", "build": "s", "first search": "s"}


@contextmanager
def _sides(trees: Mapping[str, Path], folder: Path, corpus: Path) -> Generator[dict[str, Side]]:
    """Start a process for each tree; each builds its index first."""
    folder.mkdir()
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Side.started(tree, folder / name, corpus))
            for name, tree in trees.items()
        }


def _baseline(
    commit: str, timings: Mapping[str, Mapping[str, Sequence[float]]], sizes: Mapping[str, int]
) -> Figure:
    rows = [
        Row(work, statistics.median(seconds["then"]) * (1000 if unit == "ms" else 1), unit)
        for (work, seconds), unit in zip(timings.items(), _WORKS.values(), strict=True)
    ]
    rows += [Row(name, value, "bytes" if name == "index" else "") for name, value in sizes.items()]
    return Figure(f"commit {commit}", tuple(rows))


def _column(
    name: str,
    timings: Mapping[str, Mapping[str, Sequence[float]]],
    sizes: Mapping[str, Mapping[str, int]],
) -> Figure:
    rows: list[Row] = []
    for work, seconds in timings.items():
        ratios = [now / then for now, then in zip(seconds["now"], seconds["then"], strict=True)]
        low, high = median_interval(ratios)
        rows.append(Row(work, statistics.median(ratios), "x", low, high))
    for size, then in sizes["then"].items():
        rows.append(Row(size, sizes["now"][size] / then, "x"))
    return Figure(name, tuple(rows), {"seconds": timings, "sizes": sizes})


def _timer(side: Side, tree: Path, work: str, texts: Sequence[str]) -> Callable[[], float]:
    """Return a function that does the work once and returns its seconds, those of searches and
    replies for one query."""
    if work != "first search":
        return side.timer(work, texts)
    command = (sys.executable, "-c", _FIRST_SEARCH, str(side.index), texts[0])
    folder = side.index.parent  # from where Python finds no other sources
    run = partial(subprocess.run, command, env=environment(tree), cwd=folder, check=True)
    return lambda: timed(run)


def _sizes(side: Side, tree: Path) -> dict[str, int]:
    """Return the figures of ``SIZES``."""
    code = (*CODE, BENCH_THEN)
    files = [path for part in code for path in (tree / part).rglob("*.py")]
    sources = [path.read_text("utf-8") for path in files]
    nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
    traced = side.ask({"do": "trace"})
    index = sum(path.stat().st_size for path in side.index.rglob("*") if path.is_file())
    statements = sum(isinstance(node, ast.stmt) for node in nodes)
    lines = sum(source.count("\n") for source in sources)
    values = (traced["files entered"], traced["changes of room"], index, lines, statements)
    return dict(zip(SIZES, (*values, len(files)), strict=True))

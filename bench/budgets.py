"""Compare speed and size with those of an earlier commit, in alternating pairs.

    python -m bench budgets --column "less code"
    python -m bench budgets --baseline --against 4e6db13

The commit is taken from git, and both sides run in processes of this environment, which are started
five times: one search, one reply (logical_search of preset logical_read), one build, the size of
the index, the first search of a fresh process, the way of a search through the code, and the size
of the code. A ratio above 1 is slower or larger than the commit. Its range is an interval of
the median of the pairs at 95 % (order statistics); where it contains 1, the difference is not
resolved. A column is added to the file of results, beside the figures of the commit that
``--baseline`` took.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from arag_search.search.index import open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_in
from bench.report.rounds import interleaved, timed
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
_BENCH_THEN = "bench_then"
_SOURCES = (*CODE, "configs", "opensearch", "pyproject.toml")
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
        trees = {"then": _exported(options.against, folder / "then")}
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
                    timers = {name: side.timer(work, texts) for name, side in sides.items()}
                    measured = interleaved(timers, pairs, warm_up=WARM_UP[work]).seconds
                    for name, spent in measured.items():
                        seconds[name] += spent
                sizes = sizes or {name: side.sizes(trees[name]) for name, side in sides.items()}
    if options.baseline:
        figure = _baseline(options.against, timings, sizes["then"])
    else:
        figure = _column(options.column, timings, sizes)
    show(options.json, [figure], {**run, "against": options.against})
    return 0


_WORKS = {"search": "ms", "reply": "ms", "build": "s", "first search": "s"}


@contextmanager
def _sides(trees: Mapping[str, Path], folder: Path, corpus: Path) -> Iterator[dict[str, _Side]]:
    """Start a process for each tree; each builds its index first."""
    folder.mkdir()
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(_Side.started(tree, folder / name, corpus))
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


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return an interval of the median: the closest pair of order statistics that contains it with
    a probability of at least ``level`` for any distribution; with few values, their range."""
    ordered, count = sorted(values), len(values)
    outside, rank = 2 * 0.5**count, 0
    while rank + 1 <= (count - 1) // 2:
        outside += 2 * math.comb(count, rank + 1) * 0.5**count
        if outside > 1 - level:
            break
        rank += 1
    return ordered[rank], ordered[-1 - rank]


def _exported(commit: str, folder: Path) -> Path:
    """Unpack the sources of a commit into a new folder. Raises BenchError without such a commit."""
    try:
        packed = subprocess.run(
            ("git", "archive", commit, *_SOURCES), cwd=_ROOT, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(
            "The sources of the commit cannot be had.",
            where=commit,
            allowed="a commit of this repository",
            do="Run the bench in a clone with its whole history (git fetch --unshallow).",
        ) from error
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "bench").rename(folder / _BENCH_THEN)
    return folder


class _Side:
    """A process that searches and builds with the sources of one tree."""

    def __init__(self, process: subprocess.Popen[str], tree: Path, folder: Path) -> None:
        self._process = process
        self._environment = _environment(tree)
        self.index = folder / "index"

    @classmethod
    @contextmanager
    def started(cls, tree: Path, folder: Path, corpus: Path) -> Iterator[_Side]:
        """Start the process; it builds its index first."""
        folder.mkdir()
        with subprocess.Popen(
            (sys.executable, "-m", "bench.budgets_worker", str(corpus), str(folder)),
            env=_environment(tree),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            side = cls(process, tree, folder)
            side.ask({"do": "build", "to": str(side.index)})
            yield side
            process.communicate()  # its standard input ends, and so does the process

    def ask(self, request: Mapping[str, object]) -> Any:
        """Send a request to the process and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise BenchError("A process of the comparison ended.", where=str(request)[:200])
        return json.loads(line)

    def timer(self, work: str, texts: Sequence[str]) -> Callable[[], float]:
        """Return a function that does the work once and returns its seconds, those of searches and
        replies for one query."""
        if work == "first search":
            command = (sys.executable, "-c", _FIRST_SEARCH, str(self.index), texts[0])
            return lambda: timed(lambda: self._run(command))
        return lambda: self.ask({"do": work, "texts": texts})

    def _run(self, command: Sequence[str]) -> None:
        """Run a program with the sources of the tree, from where Python finds no others."""
        subprocess.run(command, env=self._environment, cwd=self.index.parent, check=True)

    def sizes(self, tree: Path) -> dict[str, int]:
        """Return the figures of ``SIZES``."""
        code = (*CODE, _BENCH_THEN)
        files = [path for part in code for path in (tree / part).rglob("*.py")]
        sources = [path.read_text("utf-8") for path in files]
        nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
        traced = self.ask({"do": "trace"})
        index = sum(path.stat().st_size for path in self.index.rglob("*") if path.is_file())
        statements = sum(isinstance(node, ast.stmt) for node in nodes)
        lines = sum(source.count("\n") for source in sources)
        values = (traced["files entered"], traced["changes of room"], index, lines, statements)
        return dict(zip(SIZES, (*values, len(files)), strict=True))


def _environment(tree: Path) -> dict[str, str]:
    """Return variables with which Python imports the package of a tree and the bench of this one.

    The bench of the tree is in another folder, so that it is not found first.
    """
    path = os.pathsep.join((str(tree), str(_ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""}

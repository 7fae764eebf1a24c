"""Searches, replies and sessions of this tree, beside those of an earlier commit.

The commit is taken from git, and its sources run in processes of this environment. A pair is a
process of each, started anew, because what Java compiles, and how, differs from start to start.
Searches and replies are measured in time of the thread, in which embedded Lucene searches.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from bench import BenchError
from bench.replay.session import quiet_environment
from bench.report.rounds import Timings, interleaved
from bench.report.rows import Figure, Row, Target
from bench.workbench import say

BENCH_THEN = "bench_then"
"""The folder of the bench in the tree of a commit."""
WARM_UP = {"recorded": 15, "words": 15, "reply": 8}
"""Rounds of a process until Java has compiled the code in use, which takes some 3,000 searches."""
ROUNDS = 4
"""Rounds of a pair that count."""
AIMS = {"recorded": 0.6, "words": 0.75, "reply": 0.65}
"""The time over that of commit 12c23bb7."""
SHOWN = {"recorded": "recorded search", "words": "search of words", "reply": "tool reply"}

_ROOT = Path(__file__).parents[2]
_SOURCES = ("arag_search", "index_jobs", "bench", "configs", "opensearch", "pyproject.toml")


def measure(
    trees: Mapping[str, Path],
    folder: Path,
    corpus: Path,
    texts: Mapping[str, Sequence[str]],
    pairs: int,
) -> Figure:
    """Measure the works of ``SHOWN`` on these texts in the trees "now" and "then". Each keeps its
    index in a folder of its name in ``folder``."""
    say(f"loops: {pairs} pairs of processes")
    seconds: dict[str, dict[str, list[float]]] = {
        work: {name: [] for name in trees} for work in SHOWN
    }
    for number in range(pairs):
        order = list(trees) if number % 2 else list(trees)[::-1]
        with ExitStack() as stack:
            sides = {
                name: stack.enter_context(Side.started(trees[name], folder / name, corpus))
                for name in order
            }
            for work, spent in seconds.items():
                timers = {name: side.timer(work, texts[work]) for name, side in sides.items()}
                timings = interleaved(timers, ROUNDS, warm_up=WARM_UP[work])
                for name in trees:
                    spent[name].append(timings.median_s(name))
    rows: list[Row] = []
    for work, spent in seconds.items():
        timings = Timings({name: tuple(kept) for name, kept in spent.items()})
        target = Target("at most", AIMS[work])
        rows.append(Row.of_ratio(f"{SHOWN[work]}: time", timings.paired("now", "then"), target))
        for name, kept in spent.items():
            rows.append(Row(f"{SHOWN[work]}, {name}", statistics.median(kept) * 1e6, "us"))
    return Figure("loops", tuple(rows), {"seconds": seconds})


def exported(commit: str, folder: Path) -> Path:
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
    (folder / "bench").rename(folder / BENCH_THEN)
    return folder


def environment(tree: Path) -> dict[str, str]:
    """Return variables with which Python imports the package of a tree and the bench of this one.

    The bench of the tree is in another folder, so that it is not found first.
    """
    return quiet_environment(PYTHONPATH=os.pathsep.join((str(tree), str(_ROOT))))


class Side:
    """A process that searches and builds with the sources of one tree."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self.index = folder / "index"

    @classmethod
    @contextmanager
    def started(cls, tree: Path, folder: Path, corpus: Path) -> Generator[Side]:
        """Start the process; it builds the index of the folder first, unless it is there."""
        folder.mkdir(exist_ok=True)
        with subprocess.Popen(
            (sys.executable, "-m", "bench.budgets_worker", str(corpus), str(folder)),
            env=environment(tree),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            side = cls(process, folder)
            if not side.index.exists():
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
        return lambda: self.ask({"do": work, "texts": texts})

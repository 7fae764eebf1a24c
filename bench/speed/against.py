"""Searches, replies and sessions of this tree, beside those of an earlier commit.

The commit is taken from git, and its sources run in processes of this environment. A pair is a
process of each, started anew, because what Java compiles, and how, differs from start to start. All
times are of the processor: in the rates that of the thread, in which embedded Lucene searches, in
the sessions that of the whole process, which is asked only when it has answered, so that its time
is read while it is idle.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from bench import BenchError
from bench.processes import Process, quiet_environment, run
from bench.report.fingerprints import ROOT
from bench.report.rounds import Timings, interleaved
from bench.report.rows import Figure, Row, Target
from bench.workbench import command_line, say

WARM_UP = {"recorded": 15, "words": 15, "reply": 8}
"""Rounds of a process until Java has compiled the code in use, which takes some 3,000 searches."""
ROUNDS = 4
"""Rounds of a pair that count."""
CALLS = 40
PASSES = 16
"""How often a session makes its calls: what is warm is the last pass, after 600 calls."""
START, FIRST, EARLY, WARM = "start of a server", "first call", "calls 2 to 40", "warm calls"
AIMS = {
    "recorded": 0.6, "words": 0.75, "reply": 0.65, START: 0.45, FIRST: 0.45, EARLY: 0.35, WARM: 0.4,
}  # fmt: skip
"""The time over that of commit 12c23bb7."""

Call = Mapping[str, Any]
"""The arguments of a call of logical_search."""
_SOURCES = ("arag_search", "index_jobs", "configs", "opensearch", "pyproject.toml")


@contextmanager
def trees_of(commit: str, folder: Path) -> Generator[Mapping[str, Path]]:
    """Yield the trees "now", and "then" with the sources of the commit, which are unpacked into a
    folder. Raises BenchError without such a commit."""
    try:
        packed = subprocess.check_output(
            ("git", "archive", commit, *_SOURCES), cwd=ROOT, stderr=subprocess.DEVNULL
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(
            "The sources of the commit cannot be had.",
            where=commit,
            allowed="a commit of this repository",
            do="Run the bench in a clone with its whole history (git fetch --unshallow).",
        ) from error
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    yield {"now": ROOT, "then": folder}


def _environment(tree: Path) -> Mapping[str, str]:
    """Return variables with which Python imports the packages of a tree."""
    return quiet_environment(PYTHONPATH=str(tree))


def started(stack: ExitStack, tree: Path, corpus: Path, location: Path) -> Process:
    """Start the process of a tree, which builds the index of a corpus first, unless it is there."""
    worker = Path(__file__).with_name("worker.py")
    command = (sys.executable, "-P", worker, corpus, location)
    return Process(stack, command, _environment(tree))


def rates(
    trees: Mapping[str, Path], folder: Path, corpus: Path, texts: Mapping[str, Sequence[str]],
    pairs: int,
) -> Figure:  # fmt: skip
    """Measure the works of ``WARM_UP`` on these texts. Each tree keeps its index in the folder of
    its name in ``folder``, unless it is there."""
    say(f"rates: {pairs} pairs of processes")
    seconds: dict[str, dict[str, list[float]]] = {
        work: {name: [] for name in trees} for work in WARM_UP
    }
    for number in range(pairs):
        with ExitStack() as stack:
            order = list(trees) if number % 2 else list(trees)[::-1]
            asks = {name: started(stack, trees[name], corpus, folder / name).ask for name in order}
            for work, spent in seconds.items():
                request = {"do": work, "texts": texts[work]}
                sides = {name: partial(ask, request) for name, ask in asks.items()}
                timings = interleaved(sides, ROUNDS, warm_up=WARM_UP[work])
                for name in trees:
                    spent[name].append(timings.median_s(name))
    return _figure("rates", seconds)


def sessions(trees: Mapping[str, Path], folder: Path, calls: Sequence[Call], rounds: int) -> Figure:
    """Measure sessions by MCP on the indexes of ``rates``: a start, some calls once each, and the
    same calls again until they are warm."""
    say(f"sessions: {len(calls)} calls, {PASSES} times; 1 + {rounds} pairs")
    kept: dict[str, list[Mapping[str, float]]] = {name: [] for name in trees}

    def side(name: str) -> float:
        kept[name].append(session(trees[name], folder / name, calls))
        return kept[name][-1][START]

    for tree in trees.values():  # else a process in the background would make it during a session
        make_classes = (sys.executable, "-m", "arag_search.engines.lucene.aot_cache")
        run(make_classes, environment=_environment(tree), folder=folder)
    interleaved({name: lambda name=name: side(name) for name in trees}, rounds)
    seconds = {
        part: {name: [of[part] for of in spent[1:]] for name, spent in kept.items()}
        for part in (START, FIRST, EARLY, WARM)
    }
    return _figure("session", seconds)


def _figure(name: str, seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    rows: list[Row] = []
    for what, spent in seconds.items():
        timings = Timings({side: tuple(of) for side, of in spent.items()})
        target = Target("at most", AIMS[what])
        rows.append(Row.of_ratio(f"{what}: time", timings.ratio("now", "then"), target))
        rows += [
            Row(f"{what}, {side}", statistics.median(of) * 1000, "ms") for side, of in spent.items()
        ]
    return Figure(name, tuple(rows), {"seconds": seconds})


def session(tree: Path, location: Path, calls: Sequence[Call]) -> Mapping[str, float]:
    """Run a session with ``arag-search mcp`` over stdio, and return the processor time of its parts
    for one call. Raises BenchError if a call fails."""
    with ExitStack() as stack:
        process = Process(stack, (*command_line(), "mcp", location), _environment(tree))
        numbers = iter(range(1, 1 << 30))

        def ask(method: str, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            answer = process.ask({**message, "id": next(numbers)})
            if "error" in answer or answer["result"].get("isError"):
                raise BenchError("A call fails.", where=f"{method}: {str(answer)[:300]}")
            return answer["result"]

        client = {"name": "bench", "version": "1"}
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        process.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = [tool["name"] for tool in ask("tools/list")["tools"]]
        tool = next(name for name in tools if name.endswith("logical_search"))
        parts = {START: process.spent(1)}
        ask("tools/call", name=tool, arguments=dict(calls[0]))
        parts[FIRST] = process.spent(1)
        for number in range(PASSES):
            others = calls if number else calls[1:]
            for call in others:
                ask("tools/call", name=tool, arguments=dict(call))
            parts[WARM if number else EARLY] = process.spent(len(others))
        return parts


def recorded_calls(data: Path, corpus: Path, texts: Sequence[str]) -> list[Call]:
    """Return ``CALLS`` different calls that models made over the corpus, recorded in the folders
    ``model_runs`` of the data; the texts of queries where none are recorded, or too few."""
    calls: dict[str, Call] = {}
    for folder in sorted(data.glob("model_runs*"), reverse=True):
        file = folder / f"{corpus.parent.name}.logical_read.jsonl"
        for line in file.read_bytes().splitlines() if file.exists() else ():
            for step in json.loads(line)["trajectory"]:
                given = step["tool_input"]
                if step["tool_name"] == "logical_search" and step["status"] == "ok":
                    call = {name: given[name] for name in ("query", "top_k") if name in given}
                    calls.setdefault(call["query"], call)
    for text in texts:
        calls.setdefault(text, {"query": text})
    return list(calls.values())[:CALLS]

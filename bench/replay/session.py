"""Sessions in fresh processes: a start, some calls once each, and the same calls again.

All figures are processor time, of the whole process with the children that it waited for, except
those that say elapsed. A process is asked only when it has answered, so that its time is read while
it is idle.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arag_search import Index
from arag_search.engines.jars import jvm_library
from arag_search.engines.lucene.jvm import class_path
from bench import BenchError
from bench.replay.prebuilt import READER, for_lucene
from bench.report.rounds import Side, Timings, interleaved
from bench.report.rows import Figure, Row, Target
from bench.workbench import command_line, last_lines, say

CALLS = 40
PASSES = 16
"""How often a session makes its calls: what is warm is the last pass, after 600 calls."""
COMMANDS = 5
"""The calls that a round makes by command: each is a process of its own, so all are alike."""
MCP, PYTHON, COMMAND, LUCENE, RG = "mcp", "Python", "command line", "bare Lucene", "rg"
START, FIRST, EARLY, AGAIN, WARM = "start", "first call", "other calls", "again", "warm"
NOTHING = (RG, 1)
"""The program that ends with a code of its own where it finds nothing."""
AIMS = {START: 0.45, FIRST: 0.45, EARLY: 0.35, WARM: 0.4}
"""The processor time of a session by MCP over that of commit 12c23bb7."""

Call = Mapping[str, Any]
"""The arguments of a call of logical_search."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of a part of a session, for one call: processor time, and elapsed."""

    processor_s: float
    elapsed_s: float


@dataclass(slots=True)
class Sessions:
    """What the sessions of each side have spent, by part, in the order of the rounds."""

    kept: dict[str, list[Mapping[str, Spent]]] = field(default_factory=dict[str, Any])

    def side(self, name: str, run: Callable[[], Mapping[str, Spent]]) -> Side:
        """Return a side that runs a session and keeps what its parts spend."""
        self.kept[name] = []

        def once() -> float:
            spent = run()
            self.kept[name].append(spent)
            return sum(part.processor_s for part in spent.values())

        return once

    def timings(self, part: str, rounds: int) -> Timings:
        """Return the processor time of a part in the last ``rounds`` rounds, by side."""
        sides = {name: spent[-rounds:] for name, spent in self.kept.items() if part in spent[0]}
        return Timings(
            {name: tuple(of[part].processor_s for of in kept) for name, kept in sides.items()}
        )

    def figure(self, rows: Sequence[Row], rounds: int, calls: Sequence[Call]) -> Figure:
        """Return the rows with the medians of each side and part, and what the parts are."""
        medians: list[Row] = []
        elapsed_ms: dict[str, dict[str, float]] = {}
        for name, spent in self.kept.items():
            for part in spent[0]:
                median = self.timings(part, rounds).median_s(name)
                medians.append(Row(f"{name}, {part}", median * 1000, "ms"))
                seconds = [of[part].elapsed_s for of in spent[-rounds:]]
                elapsed_ms.setdefault(name, {})[part] = statistics.median(seconds) * 1000
        parts = {
            START: f"the process, until it lists its tools ({MCP}) or has opened the index",
            FIRST: "the first call",
            EARLY: f"each of calls 2 to {len(calls)}; each process, where a call has its own",
            AGAIN: "each of the same calls, the second time",
            WARM: f"each of them after {len(calls) * (PASSES - 1)} calls",
        }
        details = {"parts": parts, "elapsed_ms": elapsed_ms, "calls": [dict(of) for of in calls]}
        return Figure("session", (*rows, *medians), details)


# What is measured


def beside_rivals(
    index: Index, bare: Path, corpus: Path, calls: Sequence[Call], rounds: int
) -> Figure:
    """Compare sessions over MCP, in Python and by command with one on the Lucene index in ``bare``,
    and with rg over the corpus."""
    location = index.location
    prebuilt = for_lucene(index, [call["query"] for call in calls])
    worker = (sys.executable, str(Path(__file__).with_name("session_worker.py")))
    java = (jvm_library(), READER, *class_path())
    kept = Sessions()
    sides = {
        MCP: lambda: by_mcp(location, calls),
        PYTHON: lambda: by_lines((*worker, "python", location), calls),
        COMMAND: lambda: by_commands([_searching(location, call) for call in calls[:COMMANDS]]),
        LUCENE: lambda: by_lines((*worker, "lucene", str(bare), *java), prebuilt),
    }
    if shutil.which("rg"):
        sides[RG] = lambda: by_commands([_grep(call, corpus) for call in calls])
    else:
        say("rg is left out: it is not installed.")
    make_class_cache()
    say(f"sessions: {len(calls)} calls, {PASSES} times; 1 + {rounds} rounds")
    interleaved({name: kept.side(name, run) for name, run in sides.items()}, rounds)
    rows: list[Row] = []
    for part in (START, FIRST, EARLY, AGAIN, WARM):
        timings = kept.timings(part, rounds)
        for name in (MCP, PYTHON):
            ratio = timings.paired(name, LUCENE)
            rows.append(Row.of_ratio(f"{name}, {part}: time over bare Lucene", ratio))
    if RG in sides:
        ratio = kept.timings(EARLY, rounds).paired(MCP, RG)
        rows.append(Row.of_ratio(f"{MCP}, {EARLY}: time over rg", ratio))
        ratio = kept.timings(EARLY, rounds).paired(COMMAND, RG)
        rows.append(Row.of_ratio(f"{COMMAND}: time over rg", ratio))
    return kept.figure(rows, rounds, calls)


def beside_commit(
    places: Mapping[str, tuple[Path, Mapping[str, str]]], calls: Sequence[Call], rounds: int
) -> Figure:
    """Compare the sessions over MCP of two trees: the index and the environment of "now" and
    "then"."""
    kept = Sessions()
    sides: dict[str, Side] = {}
    for name, (location, environment) in places.items():
        make_class_cache(environment)
        run = lambda at=str(location), env=environment: by_mcp(at, calls, env)  # noqa: E731
        sides[name] = kept.side(name, run)
    say(f"sessions: {len(calls)} calls, {PASSES} times; 1 + {rounds} pairs")
    interleaved(sides, rounds)
    rows = [
        Row.of_ratio(
            f"{MCP}, {part}: processor time",
            kept.timings(part, rounds).paired("now", "then"),
            Target("at most", AIMS[part]) if part in AIMS else None,
        )
        for part in (START, FIRST, EARLY, AGAIN, WARM)
    ]
    return kept.figure(rows, rounds, calls)


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


def _searching(location: str, call: Call) -> Sequence[str]:
    top_k = ("--top-k", str(call["top_k"])) if "top_k" in call else ()
    return (*command_line(), "search", location, call["query"], *top_k)


def _grep(call: Call, corpus: Path) -> Sequence[str]:
    """Return a command that looks for the words in quotes of a query, or for all of its words."""
    query = call["query"].replace("title:", "")
    quoted = query.split('"')[1::2] or query.replace("(", " ").replace(")", " ").split()
    wanted = [part for text in quoted for part in ("-e", text)]
    return ("rg", "-i", "-F", "-m", "5", *wanted, str(corpus))


# Sessions


def by_mcp(
    location: str, calls: Sequence[Call], environment: Mapping[str, str] | None = None
) -> Mapping[str, Spent]:
    """Run a session with ``arag-search mcp`` over stdio. Raises BenchError if a call fails."""
    with _process((*command_line(), "mcp", location), environment) as process:
        numbers = iter(range(1, 1 << 30))

        def send(method: str, **content: Any) -> None:
            process.write(json.dumps({"jsonrpc": "2.0", "method": method, **content}))

        def ask(method: str, **params: Any) -> Any:
            number = next(numbers)
            send(method, id=number, params=params)
            while True:
                answer = json.loads(process.read())
                if answer.get("id") == number:
                    break
            if "error" in answer or answer["result"].get("isError"):
                raise BenchError("A call fails.", where=f"{method}: {str(answer)[:300]}")
            return answer["result"]

        client = {"name": "bench", "version": "1"}
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        send("notifications/initialized")
        names = [tool["name"] for tool in ask("tools/list")["tools"]]
        name = next(name for name in names if name.endswith("logical_search"))
        return _parts(
            process, lambda call: ask("tools/call", name=name, arguments=dict(call)), calls
        )


def by_lines(command: Sequence[str], calls: Sequence[Any]) -> Mapping[str, Spent]:
    """Run a session with a process that answers a line for each."""
    with _process(command) as process:
        process.read()

        def ask(call: Any) -> None:
            process.write(json.dumps(call))
            process.read()

        return _parts(process, ask, calls)


def by_commands(commands: Sequence[Sequence[str]]) -> Mapping[str, Spent]:
    """Run commands one after another, as the calls of a session, which has no other part."""
    began, processor_s = time.perf_counter(), 0.0
    for command in commands:
        process = subprocess.Popen(
            command, env=quiet_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and (command[0], process.returncode) != NOTHING:
            raise BenchError("A command fails.", where=" ".join(command))
        processor_s += usage.ru_utime + usage.ru_stime
    elapsed = time.perf_counter() - began
    return {EARLY: Spent(processor_s / len(commands), elapsed / len(commands))}


def _parts(
    process: _Process, ask: Callable[[Any], object], calls: Sequence[Any]
) -> Mapping[str, Spent]:
    parts = {START: process.spent(1)}
    ask(calls[0])
    parts[FIRST] = process.spent(1)
    names = (EARLY, AGAIN, *(WARM for _ in range(PASSES - 2)))
    for number, name in enumerate(names):
        others = calls if number else calls[1:]
        for call in others:
            ask(call)
        parts[name] = process.spent(len(others))
    return parts


class _Process:
    """A process that answers lines with lines."""

    def __init__(self, process: subprocess.Popen[str], errors: Any) -> None:
        self._process = process
        self._errors = errors
        self._processor_s, self._at = 0.0, time.perf_counter()

    def write(self, line: str) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read(self) -> str:
        """Wait for a line. Raises BenchError if the process has ended."""
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            self._errors.seek(0)
            end = " ".join(last_lines(self._errors.read()))
            raise BenchError(f"A session ended: {end}", where=str(self._process.args)[:200])
        return line

    def spent(self, calls: int) -> Spent:
        """Return the seconds since the last time, or since the start, for one of so many calls."""
        now, processor_s = time.perf_counter(), processor_time(self._process.pid)
        spent = Spent((processor_s - self._processor_s) / calls, (now - self._at) / calls)
        self._processor_s, self._at = processor_s, now
        return spent


@contextmanager
def _process(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Generator[_Process]:
    """Start a process in an empty folder, and end it with its input."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=folder, env=environment or quiet_environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        ) as process,
    ):  # fmt: skip
        try:
            yield _Process(process, errors)
        except BaseException:
            process.kill()
            raise


def processor_time(process: int) -> float:
    """Return the processor time in seconds of a process that runs, with that of its children that
    ended."""
    if sys.platform != "linux":
        shown = subprocess.run(
            ("ps", "-o", "time=", "-p", str(process)), capture_output=True, text=True, check=True
        ).stdout.strip()
        minutes, seconds = shown.rsplit(":", 1)
        return 60 * int(minutes.rpartition(":")[2]) + float(seconds)
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    ended = sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    # The clock of a process, as clock_getcpuclockid names it: the fields count in ticks of 10 ms.
    return time.clock_gettime((~process << 3) | 2) + ended


def quiet_environment(**more: str) -> dict[str, str]:
    """Return the environment of a user: where PYTHONDONTWRITEBYTECODE is set, every start compiles
    its imports anew."""
    environment = {**os.environ, **more}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def make_class_cache(environment: Mapping[str, str] | None = None) -> None:
    """Make Java's cache of classes now: a process in the background would make it during a
    session."""
    subprocess.run(
        (sys.executable, "-m", "arag_search.engines.lucene.aot_cache"),
        env=environment or quiet_environment(), cwd=tempfile.gettempdir(),
        stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip

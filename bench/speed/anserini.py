"""Our whole build against Anserini's indexer, each a command in processes of its own.

Both read the same passages from JSON lines, store them, and index words with their positions by two
threads or processes. Ours makes normal forms and the words as written, counts tokens, and, unless
that is left out, indexes each sentence; Anserini stems and drops stop words.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from bench import BenchError
from bench.report.rounds import Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.copies import copies, write
from bench.speed.indexing import size_of
from bench.workbench import Workbench, command_line, last_lines, say

TIMES = 8
"""The copies of the corpus that are built."""
THREADS = 2
TARGETS = {"sentences": Target("at most", 2.2), "no sentences": Target("at most", 1.6)}
"""The time of ours over that of Anserini."""

_ANSERINI = "Anserini"


@dataclass(slots=True)
class _Command:
    """A build by a command, with what each run has cost: seconds of processors, and the most memory
    of one process in bytes."""

    line: Sequence[str]
    out: Path
    processor_s: list[float] = field(default_factory=list[float])
    peak_bytes: int = 0

    def run(self) -> float:
        """Build into a folder that does not exist yet, and return the seconds."""
        shutil.rmtree(self.out, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = timed(self._build)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.processor_s.append(spent)
        return seconds

    def _build(self) -> None:
        process = subprocess.Popen(
            self.line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        with process.stdout as printed:
            output = printed.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise BenchError(
                f"A build failed: {' '.join(last_lines(output))}", where=" ".join(self.line)
            )
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)


def measure(bench: Workbench, rounds: int, jar: Path) -> Figure:
    """Build ``TIMES`` copies of the corpus with all three commands in interleaved rounds, after one
    that does not count. ``jar`` is the fat jar of Anserini; the Java of ``JAVA_HOME`` runs it."""
    with bench.room() as room:
        passages = _write(bench, room)
        commands = _commands(room, jar)
        say(f"anserini: {passages:,} passages, 1 + {rounds} rounds")
        sides = {name: command.run for name, command in commands.items()}
        timings = interleaved(sides, rounds)
        processor = Timings({name: tuple(of.processor_s[1:]) for name, of in commands.items()})
        rows: list[Row] = []
        for name, target in TARGETS.items():
            what = f"time of ours over Anserini, {name}"
            rows.append(Row.of_ratio(what, timings.ratio(name, _ANSERINI), target))
            rows.append(Row.of_ratio(f"processor {what}", processor.ratio(name, _ANSERINI)))
        for name, command in commands.items():
            rows.append(Row(f"{name}: time", timings.median_s(name), "s"))
            rows.append(Row(f"{name}: processor time", processor.median_s(name), "s"))
            rows.append(Row(f"{name}: most memory of a process", command.peak_bytes / 1e6, "MB"))
            rows.append(Row(f"{name}: index", size_of(command.out) / 1e6, "MB"))
    details = {"seconds": timings.seconds, "jar": jar.name, "passages": passages}
    return Figure("anserini", tuple(rows), details)


def _write(bench: Workbench, room: Path) -> int:
    """Write the passages as both read them, and return their number."""
    (room / "passages").mkdir()
    with (room / "passages" / "anserini.jsonl").open("wb") as file:
        for copy in copies(bench.chunks, TIMES):
            file.write(orjson.dumps({"id": copy.id, "contents": copy.searched}) + b"\n")
    return write(copies(bench.chunks, TIMES), room / "ours.jsonl")


def _commands(room: Path, jar: Path) -> Mapping[str, _Command]:
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if java is None or not java.exists() or not jar.exists():
        raise BenchError(
            "Anserini needs its jar, and a JDK of 21 or later.",
            where=f"--anserini {jar}, JAVA_HOME={home}",
            allowed="the fat jar in the package pyserini, and the folder of a JDK",
            do="Set JAVA_HOME, and name the jar with --anserini.",
        )
    ours = (*command_line(), "index", str(room / "ours.jsonl"))
    anserini = (
        *(str(java), "--add-modules", "jdk.incubator.vector", "-cp", str(jar)),
        *("io.anserini.index.IndexCollection", "-collection", "JsonCollection"),
        *("-input", str(room / "passages"), "-threads", str(THREADS), "-storePositions"),
        *("-storeRaw", "-index", str(room / _ANSERINI)),
    )
    sentences, without = room / "sentences", room / "without"
    return {
        "sentences": _Command((*ours, "--to", str(sentences)), sentences),
        "no sentences": _Command((*ours, "--to", str(without), "--without", "sentences"), without),
        _ANSERINI: _Command(anserini, room / _ANSERINI),
    }

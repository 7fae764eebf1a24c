"""The steps on an index of one size, in processes of their own that record what they cost.

    python -m bench.scale.steps NAME TASK

A process of its own has its own peak memory and processor time, and Java starts as cold for every
size. ``TASK`` is a Task as JSON. The record is replaced while the work goes on, so that a build
that was killed goes on with the seconds that it had spent up to its checkpoint.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from arag_search.cli.output.printing import INTERRUPTED
from arag_search.engines.opensearch.address import is_address
from arag_search.errors import AragError
from arag_search.system.durable import write_atomically
from arag_search.system.progress import PlainProgress
from bench import BenchError
from bench.cluster.cluster import stored_bytes
from bench.scale import searching, synthetic
from bench.speed.indexing import size_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import AddOptions, add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index

CHANGED_SHARE = 100
"""One passage of so many is deleted, and as many new ones are added."""
CORPUS = "corpus.jsonl"
POINTS = 100
"""The points of a record, evenly over the passages."""
_WATCH_S = 1.0
_LINES_S = 20.0


@dataclass(frozen=True, slots=True)
class Point:
    """What was done and spent after some passages. ``processor_s`` is that of all processes,
    ``load`` the mean number of running processes of the whole machine in the last minute."""

    passages: int
    seconds: float
    processor_s: float
    load: float


@dataclass(frozen=True, slots=True)
class Record:
    """The cost of a step. ``bytes`` is the size of the index afterwards, ``peak_bytes`` the sum of
    the highest memory of each process, with what it has mapped of files, and ``peak_disk`` the most
    bytes on disk at any second."""

    seconds: float = 0.0
    processor_s: float = 0.0
    bytes: int = 0
    peak_bytes: int = 0
    peak_disk: int = 0
    points: tuple[Point, ...] = ()
    is_finished: bool = False

    @staticmethod
    def read(path: Path) -> Record:
        """Read a record; an empty one if there is none yet."""
        return _RECORD.validate_json(path.read_bytes()) if path.exists() else Record()

    def write(self, path: Path) -> None:
        """Replace the file."""
        write_atomically(path, orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2) + b"\n")

    def tenths(self, spent: Callable[[Point], float]) -> tuple[float, ...]:
        """Return the passages of each tenth of the corpus by the seconds that ``spent`` has; fewer
        values for a corpus of few batches."""
        rates: list[float] = []
        before = Point(0, 0.0, 0.0, 0.0)
        for tenth in range(1, 11) if self.points else ():
            end = self.points[-1].passages * tenth / 10
            point = next(point for point in self.points if point.passages >= end)
            seconds = spent(point) - spent(before)
            if seconds > 0:
                rates.append((point.passages - before.passages) / seconds)
            before = point
        return tuple(rates)


_RECORD = TypeAdapter(Record)


@dataclass(frozen=True, slots=True)
class Task:
    """The index of a step, and where it is.

    ``folder`` keeps the corpus and the records. ``disk`` is the folder of the index on this
    machine, and ``nodes`` are the processes that serve it, if they are known. ``queries`` is the
    number of queries of each class.
    """

    location: str
    passages: int
    folder: str
    queries: int
    disk: str = ""
    nodes: tuple[int, ...] = ()
    shards: int | None = None

    def record(self, step: str) -> Path:
        """Return the file of the record of a step."""
        return Path(self.folder) / f"{step}.json"


def run(step: str, task: Task) -> None:
    """Run a step, unless its record says that it is finished. Raises BenchError if it fails."""
    path = task.record(step)
    if path.exists() and orjson.loads(path.read_bytes()).get("is_finished", True):
        return
    if code := started(step, task):
        raise BenchError(
            f"The step {step} ended with exit code {code}.",
            where=f"{task.passages:,} passages",
            do="Run the same command again: it goes on where it stopped.",
        )


def started(step: str, task: Task) -> int:
    """Run a step in a process of its own, and return its exit code."""
    command = [sys.executable, "-m", "bench.scale.steps", step, orjson.dumps(task).decode()]
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reaches it too, and a build writes a checkpoint
        raise


class Meter(PlainProgress):
    """A progress that records what a step costs; ``with`` begins and ends it."""

    def __init__(self, step: str, task: Task, passages: int) -> None:
        super().__init__(sys.stderr, interval_s=_LINES_S)
        self._task = task
        self._path = task.record(step)
        self._every = max(1, passages // POINTS)
        self._before = Record.read(self._path)
        self._points: list[Point] | None = None
        self._base = Point(0, 0.0, 0.0, 0.0)
        self._peaks: dict[int, int] = {}
        self._peak_disk = self._before.peak_disk
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Meter:
        self._began, self._spent_before = time.monotonic(), self._spent()
        self._watcher.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        self._look()
        self._write(is_finished=kind is None)

    def update(self, done: int, count: int, details: str = "") -> None:
        """See Progress."""
        super().update(done, count, details)
        if self._points is None:  # the first batch of this run
            self._points = [point for point in self._before.points if point.passages < count]
            self._base = self._points[-1] if self._points else self._base
        last = self._points[-1].passages if self._points else 0
        if count // self._every > last // self._every:
            self._points.append(self._point(count))
            self._write(is_finished=False)

    def _point(self, passages: int) -> Point:
        seconds = time.monotonic() - self._began
        spent = self._spent() - self._spent_before
        load = round(os.getloadavg()[0], 2)
        base = self._base
        return Point(
            passages, round(base.seconds + seconds, 3), round(base.processor_s + spent, 3), load
        )

    def _write(self, *, is_finished: bool) -> None:
        now = self._point(0)
        peak = max(self._before.peak_bytes, sum(self._peaks.copy().values()))
        points = tuple(self._points or ())
        size = index_bytes(self._task.location) if is_finished else 0
        Record(
            now.seconds, now.processor_s, size, peak, self._peak_disk, points, is_finished
        ).write(self._path)

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_S):
            self._look()

    def _look(self) -> None:
        for process in self._processes():
            self._peaks[process] = max(self._peaks.get(process, 0), peak_of(process))
        if self._task.disk:
            self._peak_disk = max(self._peak_disk, disk_bytes(Path(self._task.disk)))

    def _processes(self) -> list[int]:
        """Return the ids of this process, of its children, and of the nodes."""
        return [os.getpid(), *children(), *self._task.nodes]

    def _spent(self) -> float:
        """Return the processor time of all of them, and of children that have ended."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = time.process_time() + ended.ru_utime + ended.ru_stime
        return spent + sum(map(spent_by, (*children(), *self._task.nodes)))


def children() -> list[int]:
    """Return the ids of the processes that this one has started."""
    tasks = Path("/proc/self/task").iterdir()
    return [int(child) for task in tasks for child in _read(task / "children").split()]


def spent_by(process: int) -> float:
    """Return the processor time of a process in seconds; 0 if it has ended."""
    times = _read(Path(f"/proc/{process}/stat")).rpartition(") ")[2].split()
    return sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK")


def peak_of(process: int) -> int:
    """Return the highest memory of a process in bytes; 0 if it has ended."""
    status = _read(Path(f"/proc/{process}/status"))
    return int(status.split("VmHWM:")[1].split()[0]) << 10 if "VmHWM:" in status else 0


def _read(path: Path) -> str:
    """Return what the system says about a process; nothing if it has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def index_bytes(location: str) -> int:
    """Return the bytes of an index: of a folder, or of the primary shards on a server."""
    return stored_bytes(location) if is_address(location) else size_of(Path(location))


def disk_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder that others write to."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # merged away meanwhile
                continue
    return total


# The steps


def build(task: Task) -> None:
    """Build the index with the defaults."""
    corpus = str(Path(task.folder) / CORPUS)
    options = BuildOptions(format="documents", shards=task.shards)
    with Meter("build", task, task.passages) as meter:
        build_index([corpus], task.location, options, meter)


def search(task: Task) -> None:
    """Measure searches."""
    searched = searching.measured(task.location, task.passages, task.queries)
    write_atomically(
        task.record("search"), orjson.dumps(searched, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    )


def delete(task: Task) -> None:
    """Delete a share of the documents, from all over the corpus."""
    ids = [str(number) for number in range(0, task.passages, CHANGED_SHARE)]
    with Meter("delete", task, len(ids)) as meter:
        delete_documents(task.location, ids, progress=meter)


def add(task: Task) -> None:
    """Add as many new documents."""
    count = len(range(0, task.passages, CHANGED_SHARE))
    added = Path(task.folder) / "added.jsonl"
    synthetic.write(count, added, first=task.passages)
    with Meter("add", task, count) as meter:
        add_documents([str(added)], task.location, AddOptions(format="documents"), meter)


def compact(task: Task) -> None:
    """Merge the index into one segment, or one for each shard."""
    with Meter("compact", task, 1) as meter:
        compact_index(task.location, meter)


STEPS: Mapping[str, Callable[[Task], None]] = {
    "build": build,
    "search": search,
    "delete": delete,
    "add": add,
    "compact": compact,
}
"""The steps on an index, in their order."""


def main(arguments: Sequence[str]) -> int:
    """Run the step that is named."""
    name, task = arguments
    try:
        STEPS[name](TypeAdapter(Task).validate_json(task))
    except KeyboardInterrupt:
        return INTERRUPTED
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

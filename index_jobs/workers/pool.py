"""Who does the work of a build or an embedding: this process, or worker processes.

Workers are new processes of Python, not forks: a Java machine does not survive a fork. Each has a
group of its own, so that Ctrl-C in a terminal reaches the build alone, and each ends when its input
is closed, however the build ends. Through the pipes go texts, and what was made of them: what is
submitted, a batch of a build or a piece of an embedding, stays here but for what is given away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import IO, Any, Generic, Protocol, TypeVar

from arag_search.errors import BuildError, WorkerLostError
from arag_search.system.cores import usable_cores
from index_jobs.cutting.packing import Packed, Work
from index_jobs.sources.reading import Batch
from index_jobs.workers.worker import dumped

MAX_DEFAULT_WORKERS = 4
"""One process reads for about so many, whatever the cores."""

WORTHWHILE_BYTES = 16 << 20
"""A corpus below this is built in this process unless workers are asked for: starting them takes
longer than they save."""

_UNDER_WAY = 3  # batches a worker, so that it never waits for the build
_PIPE_BYTES = 1 << 20
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from index_jobs.workers.worker import main; main()"


class Submitted(Protocol):
    """An item that is submitted to be worked on."""

    @property
    def given(self) -> Any:
        """What the work needs of it; pickled where there are worker processes."""
        ...


Item = TypeVar("Item", bound=Submitted)
Done = TypeVar("Done")
_Done = TypeVar("_Done", covariant=True)


def default_workers(source_bytes: int, cores: int | None = None) -> int:
    """Return how many worker processes suit sources of this size on disk: none for a small corpus,
    else one for each core but the one that reads and writes."""
    if source_bytes < WORTHWHILE_BYTES:
        return 0
    if cores is None:
        cores = usable_cores()
    return max(0, min(MAX_DEFAULT_WORKERS, cores - 1))


def open_packing(workers: int, work: Work) -> Packing[Batch, Packed]:
    """Return what does the work with so many worker processes; 0 is in this process."""
    return WorkerProcesses(workers, work) if workers else PackingHere(work)


class Packing(Protocol[Item, _Done]):
    """Does the work with what is submitted, and gives it back in the order in which it came; a
    context manager."""

    def __enter__(self) -> Packing[Item, _Done]: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def under_way(self) -> Sequence[Item]:
        """What was submitted and not taken, in order."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether the next should be taken before another is submitted: it is finished, or so many
        are under way that memory would grow."""
        ...

    def submit(self, item: Item) -> None: ...

    def take(self) -> tuple[Item, _Done]:
        """Return the next, and what was made of it; waits for it. Raises what the work raised, and
        WorkerLostError."""
        ...


class PackingHere(Generic[Item, Done]):
    """Works in this process. See Packing."""

    def __init__(self, work: Callable[[Any], Done]) -> None:
        self._work = work
        self._items: deque[Item] = deque()

    def __enter__(self) -> PackingHere[Item, Done]:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    @property
    def under_way(self) -> Sequence[Item]:
        """See Packing."""
        return self._items

    @property
    def is_ready(self) -> bool:
        """See Packing."""
        return bool(self._items)

    def submit(self, item: Item) -> None:
        """See Packing."""
        self._items.append(item)

    def take(self) -> tuple[Item, Done]:
        """See Packing."""
        item = self._items.popleft()
        return item, self._work(item.given)


class WorkerProcesses(Generic[Item, Done]):
    """Works in other processes. See Packing."""

    def __init__(
        self,
        count: int,
        work: Callable[[Any], Done],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``environment`` has variables that the processes are given beside those of this one."""
        self._workers: list[_Worker[Done]] = []
        self._results: deque[Future[Done]] = deque()
        self._items: deque[Item] = deque()
        self._count = count
        self._setup = dumped(work)
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> WorkerProcesses[Item, Done]:
        try:
            for _ in range(self._count):
                self._workers.append(_Worker(self._setup, self._environment))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def under_way(self) -> Sequence[Item]:
        """See Packing."""
        return self._items

    @property
    def is_ready(self) -> bool:
        """See Packing."""
        if not self._results:
            return False
        return self._results[0].done() or len(self._results) >= _UNDER_WAY * self._count

    def submit(self, item: Item) -> None:
        """See Packing."""
        worker = min(self._workers, key=lambda worker: worker.load)
        self._results.append(worker.submit(dumped(item.given)))
        self._items.append(item)

    def take(self) -> tuple[Item, Done]:
        """See Packing."""
        done = self._results.popleft().result()
        return self._items.popleft(), done


class _Worker(Generic[Done]):
    """One process, and the thread that takes its replies."""

    def __init__(self, setup: bytes, environment: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
                env=environment,
            )
        except OSError as error:
            raise BuildError(
                f"A worker process cannot be started ({error.strerror}).",
                where=sys.executable,
                do="Ask for fewer, or none: --workers 0.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        for pipe in (self._process.stdin, self._process.stdout):
            _widen(pipe)
        self._waiting: deque[Future[Done]] = deque()
        self._lock = threading.Lock()
        self._lost: WorkerLostError | None = None
        self._receiver = threading.Thread(
            target=self._receive, args=(self._process.stdout,), daemon=True
        )
        self._receiver.start()
        self._send(setup)

    @property
    def load(self) -> int:
        """How much it has to do."""
        return len(self._waiting)

    def submit(self, given: bytes) -> Future[Done]:
        """Give it work. It fails where the process is lost."""
        future: Future[Done] = Future()
        with self._lock:
            if self._lost is not None:
                future.set_exception(self._lost)
                return future
            self._waiting.append(future)
        self._send(given)
        return future

    def end(self) -> None:
        """End the process at once, and wait for it."""
        self._process.kill()
        self._process.wait()
        self._receiver.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was left to send
                if pipe is not None:
                    pipe.close()

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended: the receiver tells
            self._input.write(data)
            self._input.flush()

    def _receive(self, replies: IO[bytes]) -> None:
        try:
            while True:
                reply: Any = pickle.load(replies)
                future = self._waiting.popleft()
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)
        except Exception:  # cut off, in whatever way
            self._fail()

    def _fail(self) -> None:
        """Tell all who wait that the process is lost."""
        self._process.kill()
        code = self._process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        error = WorkerLostError(
            f"A worker process {how}.",
            where=f"process {self._process.pid}",
            do="Give the machine more memory, or ask for fewer --workers.",
        )
        with self._lock:
            self._lost = error
            while self._waiting:
                self._waiting.popleft().set_exception(error)


def _widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold a batch, where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

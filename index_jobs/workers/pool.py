"""Worker processes of a build or an embedding, on this machine.

Workers are new Python processes, not forks, because a Java virtual machine does not survive a fork.
Each has its own process group, so that Ctrl-C in a terminal reaches only the build, and each ends
when its input is closed, however the build ends.
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
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import IO, Any, Generic, Self

from arag_search.errors import BuildError, WorkerLostError
from arag_search.system.processes import usable_cores
from index_jobs.cutting.chunking import Numbered
from index_jobs.sources.reading import Batch
from index_jobs.workers.executor import Done, Executor, Item, ThisProcess
from index_jobs.workers.worker import dumped

MAX_DEFAULT_WORKERS = 4
"""The maximum default number of workers: about as many as one reading process can keep busy."""

WORTHWHILE_BYTES = 16 << 20
"""A corpus smaller than this is built in this process unless workers are requested, because
starting workers would take longer than they save."""

_UNDER_WAY = 3  # pending batches for each worker, so that a worker never waits for the build
_PIPE_BYTES = 1 << 20
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from index_jobs.workers.worker import main; main()"


def default_workers(source_bytes: int, cores: int | None = None) -> int:
    """Return how many worker processes to use for sources of this size on disk: none for a small
    corpus, else one for each core except the one that reads and writes."""
    if source_bytes < WORTHWHILE_BYTES:
        return 0
    if cores is None:
        cores = usable_cores()
    return max(0, min(MAX_DEFAULT_WORKERS, cores - 1))


def open_executor(workers: int, work: Callable[[Numbered], Done]) -> Executor[Batch, Done]:
    """Return an Executor with this number of worker processes; 0 works in this process."""
    return ProcessPool(workers, work) if workers else ThisProcess(work)


class ProcessPool(Executor[Item, Done]):
    """An Executor that works in other processes of this machine."""

    def __init__(
        self,
        count: int,
        work: Callable[[Any], Done],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``environment`` holds variables to add to this process's environment for the workers."""
        super().__init__(_UNDER_WAY * count)
        self._workers: list[_Worker[Done]] = []
        self._count = count
        self._setup = dumped(work)
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> Self:
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

    def _start(self, payload: Any) -> Future[Done]:
        worker = min(self._workers, key=lambda worker: worker.load)
        return worker.submit(dumped(payload))

    def _wait(self, handle: Future[Done], timeout_s: float) -> bool:
        return handle.done() or bool(wait([handle], timeout_s).done)

    def _result(self, handle: Future[Done]) -> Done:
        return handle.result()


class _Worker(Generic[Done]):
    """One process, and the thread that receives its replies."""

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
                do="Use fewer workers, or none: --workers 0.",
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
        return len(self._waiting)

    def submit(self, payload: bytes) -> Future[Done]:
        """Send a payload to the process. The future fails if the process is lost."""
        future: Future[Done] = Future()
        with self._lock:
            if self._lost is not None:
                future.set_exception(self._lost)
                return future
            self._waiting.append(future)
        self._send(payload)
        return future

    def end(self) -> None:
        """End the process at once, and wait for it."""
        self._process.kill()
        self._process.wait()
        self._receiver.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # buffered data can no longer be sent
                if pipe is not None:
                    pipe.close()

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the process has ended; the receiver reports it
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
        except Exception:  # the stream broke off, in whatever way
            self._fail()

    def _fail(self) -> None:
        self._process.kill()
        code = self._process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        error = WorkerLostError(
            f"A worker process {how}.",
            where=f"process {self._process.pid}",
            do="Give the machine more memory, or use fewer --workers.",
        )
        with self._lock:
            self._lost = error
            while self._waiting:
                self._waiting.popleft().set_exception(error)


def _widen(pipe: IO[bytes]) -> None:
    """Make a pipe large enough for a batch, if the system allows it."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

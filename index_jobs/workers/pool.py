"""Worker processes of a build or an embedding, on this machine.

Workers are new Python processes, not forks, because a Java virtual machine does not survive a fork.
Each has its own process group, so that Ctrl-C in a terminal reaches only the build. Each ends when
its input is closed, however the build ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import cycle
from multiprocessing.connection import Pipe
from typing import Any, Self

from arag_search.errors import BuildError, WorkerLostError
from arag_search.system.processes import usable_cores
from index_jobs.cutting.chunking import Numbered
from index_jobs.sources.source import Batch
from index_jobs.workers.executor import Done, Executor, Item, ThisProcess
from index_jobs.workers.worker import dumped

MAX_DEFAULT_WORKERS = 4
"""The maximum default number of workers: about as many as one reading process can keep busy."""

WORTHWHILE_BYTES = 16 << 20
"""A corpus smaller than this is built in this process unless workers are requested, because
starting workers would take longer than they save."""

_UNDER_WAY = 3  # pending batches for each worker, so that a worker never waits for the build
_MAIN = """
import sys
connection, *sys.path[:] = sys.argv[1:]
from index_jobs.workers.worker import main
main(int(connection))
"""


def default_workers(source_bytes: int, cores: int | None = None) -> int:
    """Return how many worker processes to use for sources of this size on disk. A small corpus
    needs none. Otherwise each core has one, except the core that reads and writes."""
    if source_bytes < WORTHWHILE_BYTES:
        return 0
    if cores is None:
        cores = usable_cores()
    return max(0, min(MAX_DEFAULT_WORKERS, cores - 1))


def open_executor(workers: int, work: Callable[[Numbered], Done]) -> Executor[Batch, Done]:
    """Return an Executor with this number of worker processes; 0 works in this process."""
    return ProcessPool(workers, work) if workers else ThisProcess(work)


class ProcessPool(Executor[Item, Done]):
    """An Executor that works in other processes of this machine, each in its turn."""

    def __init__(
        self,
        count: int,
        work: Callable[[Any], Done],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``environment`` holds variables to add to this process's environment for the workers."""
        super().__init__(_UNDER_WAY * count)
        self._workers: list[_Worker] = []
        self._count = count
        self._setup = dumped(work)
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> Self:
        try:
            for _ in range(self._count):
                self._workers.append(_Worker(self._environment))
                self._workers[-1].send(self._setup)
        except BaseException:
            self.__exit__()
            raise
        self._turns = cycle(self._workers)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()

    def _start(self, payload: Any) -> _Worker:
        worker = next(self._turns)
        worker.send(dumped(payload))
        return worker

    def _wait(self, handle: _Worker, timeout_s: float) -> bool:
        return handle.has_answered(timeout_s)

    def _result(self, handle: _Worker) -> Done:
        return handle.receive()


class _Worker:
    """One process, which answers what it is sent in order."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._connection, other = Pipe()
        with other:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _MAIN, str(other.fileno()), *sys.path],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # the results of the build have its output alone
                    process_group=0,
                    pass_fds=[other.fileno()],
                    env=environment,
                )
            except OSError as error:
                raise BuildError(
                    f"A worker process cannot be started ({error.strerror}).",
                    where=sys.executable,
                    do="Use fewer workers, or none: `workers=0`.",
                ) from error

    def send(self, data: bytes) -> None:
        with suppress(OSError):  # the process has ended: ``receive`` says so
            self._connection.send_bytes(data)

    def has_answered(self, timeout_s: float) -> bool:
        """Wait for an answer, or the end of the process."""
        return self._connection.poll(timeout_s)

    def receive(self) -> Any:
        """Return the next answer, or raise it if it is an error. Raises WorkerLostError."""
        try:
            answer = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            self._process.kill()
            code = self._process.wait()
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise WorkerLostError(
                f"A worker process {how}.",
                where=f"process {self._process.pid}",
                do="Give the machine more memory, or use fewer `workers`.",
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        """End the process at once, and wait for it."""
        self._process.kill()
        self._process.wait()
        self._connection.close()

"""Making shards on the workers of a Ray cluster, which share a folder with this machine."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, WorkerLostError
from arag_search.system.extras import missing_extra
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.storage.shards import ShardRecord, StoredType
from index_jobs.embedding.making import (
    CutShard,
    EncoderChoice,
    EncodingWork,
    make_shard,
    only_identity,
)
from index_jobs.embedding.plan import PLAN
from index_jobs.workers.pool import PeakMemory

_ACTION_BYTES = 256
"""More than the size of the system's ``struct sigaction``, on every platform."""


@dataclass(frozen=True, slots=True)
class _MadeShard:
    """A shard that a worker has written, with its time and memory."""

    record: ShardRecord
    rows: int
    peak: PeakMemory


class _Maker:
    """A Ray actor that makes shards with one encoder."""

    def __init__(self, choice: EncoderChoice, piece_rows: int) -> None:
        self._work = EncodingWork(choice)
        self._piece_rows = piece_rows

    def identity(self) -> tuple[EncoderIdentity, PeakMemory]:
        replies = self._work(())
        return replies.identity, replies.peak

    def sees(self, file: str, content: bytes) -> bool:
        """Return whether this machine sees the same file."""
        path = Path(file)
        return path.is_file() and path.read_bytes() == content

    def make(self, shard: CutShard, folder: str, dtype: StoredType) -> _MadeShard:
        identity, _ = self.identity()

        encoded = 0

        def encode(texts: Any) -> Any:
            nonlocal encoded
            encoded += len(texts)
            return self._work(texts).vectors

        record = make_shard(
            shard, encode, identity, Path(folder), piece_rows=self._piece_rows, dtype=dtype
        )
        return _MadeShard(record, encoded, self._work(()).peak)


def begin(ray: Any, **options: Any) -> None:
    """Connect to a cluster or start one, without breaking Java in this process."""
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    with _restored_signal_handlers():
        ray.init(**{**quiet, **options})


def end(ray: Any) -> None:
    """Leave the cluster, and shut it down if it was started here."""
    with _restored_signal_handlers():
        ray.shutdown()


@contextmanager
def _restored_signal_handlers() -> Generator[None]:
    """Restore the signal handlers afterwards: Ray replaces some when it starts, and resets them
    when it stops.

    Java relies on its own handlers: it uses SIGSEGV, for example, to detect null pointers.
    """
    if os.name != "posix":
        yield
        return
    libc = ctypes.CDLL(None)
    actions: list[tuple[int, Any]] = []
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        action = ctypes.create_string_buffer(_ACTION_BYTES)
        if libc.sigaction(int(number), None, action) == 0:
            actions.append((int(number), action))
    try:
        yield
    finally:
        for number, action in actions:
            libc.sigaction(number, action, None)


class RayMaking:
    """A ShardMaking on a Ray cluster: the connected one, else the one at RAY_ADDRESS, else one
    started on this machine for the time of the embedding.

    ``workers`` actors (None: one for each GPU or, without GPUs, one for each machine) make whole
    shards and write them into the folder, which all machines must share.
    """

    def __init__(self, choice: EncoderChoice, workers: int | None, piece_rows: int) -> None:
        self._choice = choice
        self._piece_rows = piece_rows
        self._wanted = workers
        self._actors: list[Any] = []
        self._peaks: dict[str, PeakMemory] = {}
        self._started_cluster = False

    @property
    def processes(self) -> int:
        return len(self._actors)

    def __enter__(self) -> RayMaking:
        try:
            import ray
        except ImportError as error:
            raise missing_extra("ray", "ray") from error
        self._ray: Any = ray
        if not self._ray.is_initialized():
            begin(self._ray)
            self._started_cluster = True
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        resources: dict[str, float] = self._ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if self._choice.device != "cpu" else 0
        machines = sum(bool(node["Alive"]) for node in self._ray.nodes())
        count = self._wanted or gpus or machines
        needs = {"num_gpus": 1} if gpus else {"num_cpus": 1}
        capacity = gpus or int(resources.get("CPU", 0))
        if count > capacity:
            raise ArgumentError(
                f"--workers: the Ray cluster has room for {capacity:,} workers, not {count:,}.",
                allowed=f"1 to {capacity:,}",
                do="Use fewer --workers, or add machines to the cluster.",
            )
        maker: Any = self._ray.remote(**needs)(_Maker)
        self._actors = [maker.remote(self._choice, self._piece_rows) for _ in range(count)]

    def __exit__(self, *exception: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
        if self._started_cluster:
            end(self._ray)
            self._started_cluster = False

    def identity(self) -> EncoderIdentity:
        replies = self._all("identity")
        for _, peak in replies:
            self._peaks[peak.process] = peak
        return only_identity({identity for identity, _ in replies})

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        self._check_shared(folder)
        free = list(self._actors)
        busy: dict[Any, Any] = {}

        def next_record() -> ShardRecord:
            (first, *_), _ = self._ray.wait(list(busy), num_returns=1)
            made: _MadeShard = self._result(first)
            free.append(busy.pop(first))
            self._peaks[made.peak.process] = made.peak
            encoded(made.rows)
            return made.record

        for shard in shards:
            if not free:
                yield next_record()
            actor = free.pop()
            busy[actor.make.remote(shard, str(folder.absolute()), dtype)] = actor
        while busy:
            yield next_record()

    def peaks(self) -> list[PeakMemory]:
        return list(self._peaks.values())

    def _check_shared(self, folder: Path) -> None:
        plan = (folder / PLAN).absolute()
        if not all(self._all("sees", str(plan), plan.read_bytes())):
            raise ArgumentError(
                "A worker of the Ray cluster does not see the folder of the vectors.",
                where=str(folder.absolute()),
                allowed="a folder that all machines of the cluster share, at the same path",
                do="Give --vectors DIR on a shared file system.",
            )

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        return [
            self._result(reference)
            for reference in [getattr(actor, method).remote(*arguments) for actor in self._actors]
        ]

    def _result(self, reference: Any) -> Any:
        """Return a result. Raises what the work raised, WorkerLostError if a worker was lost."""
        from ray.exceptions import RayActorError, RayTaskError

        try:
            return self._ray.get(reference)
        except RayTaskError as error:
            cause: Any = error.cause
            raise (cause if isinstance(cause, Exception) else error) from error
        except RayActorError as error:
            raise WorkerLostError(
                "A worker of the Ray cluster has ended.",
                where=str(error).splitlines()[0],
                do="Give its machine more memory, or use fewer --workers.",
            ) from error

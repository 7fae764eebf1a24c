"""Making shards on the machines of a Ray cluster, which share a folder with this one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from arag_search.vectors.base import EncoderIdentity, FloatArray
from arag_search.vectors.storage.shards import ShardRecord, StoredType
from index_jobs.embedding.making import (
    CutShard,
    EncoderChoice,
    EncodingWork,
    make_shard,
    only_identity,
)
from index_jobs.embedding.plan import PLAN
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.pool import PeakMemory


@dataclass(frozen=True, slots=True)
class _Job:
    """A whole shard to make."""

    payload: CutShard


@dataclass(frozen=True, slots=True)
class _MadeShard:
    """A shard that was written, the number of rows encoded for it, and the memory of that."""

    record: ShardRecord
    rows: int
    peak: PeakMemory


class ClusterMaking:
    """A ShardMaking on a Ray cluster at an address, see ``Cluster``: ``workers`` processes (None:
    one for each GPU or, without GPUs, one for each machine) make whole shards and write them into
    the folder, which all machines must share."""

    def __init__(
        self, address: str, choice: EncoderChoice, workers: int | None, piece_rows: int
    ) -> None:
        self._cluster = Cluster(address)
        self._choice = choice
        self._gpus = choice.device != "cpu"
        self._wanted = workers
        self._piece_rows = piece_rows
        self._peaks: dict[str, PeakMemory] = {}

    def __enter__(self) -> ClusterMaking:
        cluster = self._cluster.__enter__()
        try:
            self.processes = cluster.workers(self._wanted, by_machine=True, gpus=self._gpus)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.__exit__(*exception)

    def identity(self) -> EncoderIdentity:
        identify = partial(_identity, self._choice)
        identities = self._cluster.everywhere(identify, self.processes, gpus=self._gpus)
        return only_identity(set(identities))

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        folder = folder.absolute()
        self._cluster.check({str(folder / PLAN): (folder / PLAN).read_bytes()})
        work = partial(
            _made, choice=self._choice, folder=folder, piece_rows=self._piece_rows, dtype=dtype
        )
        with self._cluster.tasks(work, self.processes, gpus=self._gpus) as tasks:

            def next_record() -> ShardRecord:
                made = tasks.take()[1]
                self._peaks[made.peak.process] = made.peak
                encoded(made.rows)
                return made.record

            for shard in shards:
                while tasks.is_ready:
                    yield next_record()
                tasks.submit(_Job(shard))
            while tasks.under_way:
                yield next_record()

    def peaks(self) -> list[PeakMemory]:
        return list(self._peaks.values())


@functools.lru_cache(maxsize=1)
def _encoding(choice: EncoderChoice) -> EncodingWork:
    """Return the encoder of this process, which it keeps from shard to shard."""
    return EncodingWork(choice)


def _identity(choice: EncoderChoice) -> EncoderIdentity:
    return _encoding(choice)(()).identity


def _made(
    shard: CutShard, *, choice: EncoderChoice, folder: Path, piece_rows: int, dtype: StoredType
) -> _MadeShard:
    """Make a shard, in another process."""
    work = _encoding(choice)
    rows = 0

    def encode(texts: Sequence[str]) -> FloatArray:
        nonlocal rows
        rows += len(texts)
        return cast("FloatArray", work(texts).vectors)

    identity = work(()).identity
    record = make_shard(shard, encode, identity, folder, piece_rows=piece_rows, dtype=dtype)
    return _MadeShard(record, rows, work(()).peak)

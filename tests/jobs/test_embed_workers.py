"""Worker processes make the same vectors, within bounds, and end with the embedding."""

import dataclasses
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, WorkerLostError
from arag_search.system.processes import usable_cores
from arag_search.vectors.encoders.choose import open_encoder
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.making import TO_ENCODE, EncoderChoice, LocalMaking, cut_shards
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_embedded,
)
from tests.support.worker_processes import kill_a_worker, worker_processes

WORKERS = dataclasses.replace(SMALL, workers=2)


class Watching(NotingProgress):
    """Progress that records the worker processes and the numbers of threads they may use."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: set[int] = set()
        self.threads: set[bytes] = set()

    def update(self, done: int, encoded: int, details: str = "") -> None:
        for worker in worker_processes():
            self.workers.add(worker)
            variables = Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
            self.threads.add(next(line for line in variables if line.startswith(b"OMP_NUM_TH")))


def test_workers_make_the_same_vectors_and_share_the_cores() -> None:
    build_small_index(60)
    progress = Watching()
    report = embed_index("index", ENCODER, WORKERS, progress)
    assert (report.workers, report.processes, report.encoded_rows) == (2, 3, 240)
    assert len(progress.workers) == 2
    cores = usable_cores()
    assert progress.threads == {f"OMP_NUM_THREADS={max(1, cores // 2)}".encode()}
    assert report.peak_bytes > 60 << 20, "three processes"
    assert worker_processes() == []
    check_embedded("index")


class KillingAWorker(NotingProgress):
    """Progress that kills a worker once a hundred rows are encoded."""

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if encoded >= 100:
            kill_a_worker()


def test_a_killed_worker_ends_the_embedding_and_the_same_command_resumes_it() -> None:
    build_small_index(400)
    with pytest.raises(WorkerLostError) as caught:
        embed_index("index", ENCODER, WORKERS, KillingAWorker())
    assert caught.value.what == "A worker process was killed by signal 9."
    checkpoint = int(caught.value.do.split("it resumes after ")[1].split()[0])
    assert caught.value.do.endswith(
        f"Run the same command again: it resumes after {checkpoint} shards."
    )
    assert worker_processes() == []
    assert embed_index("index", ENCODER, WORKERS).continued_shards == checkpoint
    check_embedded("index")


def test_ctrl_c_ends_the_workers_too() -> None:
    build_small_index(60)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, WORKERS, InterruptingProgress(100))
    assert worker_processes() == []


def test_workers_report_a_wrong_encoder_as_this_process_does() -> None:
    messages: list[str] = []
    for workers in (0, 1):
        choice = EncoderChoice("hashing:x", None, 64)
        with LocalMaking(choice, workers, 64) as making, pytest.raises(ArgumentError) as caught:
            making.identity()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_memory_holds_few_shards_whatever_their_number(tmp_path: Path) -> None:
    encoder = open_encoder("hashing:4096")
    shard_bytes = 100 * 4096 * 4

    def peak(shards: int) -> int:
        chunks = ({"sentence": [(f"Word{number}.", TO_ENCODE)]} for number in range(100 * shards))
        parts = cut_shards(chunks, ("sentence",), 100, lambda *_: np.empty(0))
        tracemalloc.start()
        with LocalMaking(encoder, 0, 20) as making:
            making.identity()
            count = sum(1 for _ in making.make(parts, tmp_path, "float16", lambda _: None))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == shards
        return peak_bytes

    few, many = peak(2), peak(10)
    assert many < 1.1 * few
    assert many < 4 * shard_bytes

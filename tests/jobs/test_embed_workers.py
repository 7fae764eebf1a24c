"""Worker processes make the same vectors, within bounds, and end with the embedding."""

import dataclasses
import tracemalloc
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, WorkerLostError
from arag_search.system.processes import usable_cores
from arag_search.vectors.encoders.choose import open_encoder
from index_jobs.embedding.encoding import Encoding
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_embedded,
    texts_of,
    with_options,
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
    assert report.encoded_rows == texts_of(60)
    assert len(progress.workers) == 2
    cores = usable_cores()
    assert progress.threads == {f"OMP_NUM_THREADS={max(1, cores // 2)}".encode()}
    assert worker_processes() == []
    check_embedded("index")


class KillingAWorker(NotingProgress):
    """Progress that kills a worker once a hundred rows are encoded."""

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if encoded >= 100:
            kill_a_worker()


@pytest.mark.server
def test_a_killed_worker_ends_the_embedding_and_the_same_command_resumes_it() -> None:
    build_small_index(400)
    with pytest.raises(WorkerLostError) as caught:
        embed_index("index", ENCODER, WORKERS, KillingAWorker())
    assert caught.value.what == "A worker process was killed by signal 9."
    stored = int(caught.value.do.split("it resumes after ")[1].split()[0])
    assert caught.value.do.endswith(f"Run the same command again: it resumes after {stored} rows.")
    assert worker_processes() == []
    assert embed_index("index", ENCODER, WORKERS).reused_rows == stored >= 100
    check_embedded("index")


def test_ctrl_c_ends_the_workers_too() -> None:
    build_small_index(60)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, WORKERS, InterruptingProgress(100))
    assert worker_processes() == []


def test_workers_report_a_wrong_encoder_as_this_process_does() -> None:
    messages: list[str] = []
    for workers in (0, 1):
        encoding = Encoding("hashing:x", EmbedOptions(workers=workers))
        with pytest.raises(ArgumentError) as caught, encoding:
            pass
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert worker_processes() == []


def test_memory_holds_few_pieces_whatever_their_number() -> None:
    piece_bytes = 128 * 4096 * 4

    def peak(count: int) -> int:
        texts = {b"%d" % number: f"Word{number % 100}." for number in range(128 * count)}
        with Encoding(open_encoder("hashing:4096"), with_options(batch_size=4)) as encoding:
            tracemalloc.start()
            assert sum(1 for _ in encoding.encoded(texts)) == count
            peak_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return peak_bytes

    few, many = peak(2), peak(10)
    assert many < 1.1 * few
    assert many < 5 * piece_bytes

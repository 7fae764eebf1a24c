"""Worker processes build the same index as no workers, within bounds, and end with the build."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from arag_search.corpus import Chunk, Document
from arag_search.engines.lucene.schema import ChunkPacker
from arag_search.errors import BuildError, SourceError, WorkerLostError
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.cutting.chunking import pack
from index_jobs.sources.source import Batch, Position
from index_jobs.workers.executor import ThisProcess
from index_jobs.workers.pool import WORTHWHILE_BYTES, ProcessPool, default_workers
from tests.support.builds import (  # noqa: F401
    ODD,
    InterruptingProgress,
    checkpoint_every_batch,
    corpus,
    in_own_folder,
    same_index,
    troublesome_corpus,
)
from tests.support.commands import process
from tests.support.examples import some_of
from tests.support.patience import PATIENCE_S
from tests.support.worker_processes import is_worker, kill_a_worker, worker_processes

NOWHERE = Position(0, 0, 0, 0, (), {}, [])
CHUNK_TOKENS = 50


def test_any_number_of_workers_builds_the_same_index_and_reports_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint_every_batch(monkeypatch)
    sources = [
        troublesome_corpus("a.jsonl", 200),
        corpus("b.jsonl", 150),
        troublesome_corpus("c.jsonl", 60),
    ]
    reports: list[dict[str, object]] = []
    for workers in (0, 2):
        options = BuildOptions(
            chunk_tokens=300,
            metadata={"year": "number"},
            skip_bad_lines=True,
            workers=workers,
        )
        report = build_index(sources, Path(f"index{workers}"), options).to_dict()
        assert report.pop("workers") == workers
        for name in ("location", "seconds", "run_seconds", "documents_per_second"):
            del report[name]
        reports.append(report)
    assert reports[0] == reports[1]
    assert reports[0]["skipped_lines"] == 4 * 4 + 2 * 4 + 210  # "b" and "c" repeat ids of "a".
    assert same_index("index0") == same_index("index2")


def test_a_bad_line_is_named_the_same_with_workers() -> None:
    troublesome_corpus("a.jsonl", 100)
    for workers in (0, 2):
        with pytest.raises(SourceError) as caught:
            build_index(["a.jsonl"], Path("index"), BuildOptions(workers=workers))
        assert caught.value.where == "a.jsonl, line 9"
        assert not Path("index").exists()


@pytest.mark.parametrize(
    ("size", "cores", "expected"),
    [(WORTHWHILE_BYTES - 1, 8, 0), (WORTHWHILE_BYTES, 1, 0), (WORTHWHILE_BYTES, 2, 1),
     (1 << 40, 64, 4)],
)  # fmt: skip
def test_by_default_small_corpora_and_single_cores_have_no_workers(
    size: int, cores: int, expected: int
) -> None:
    assert default_workers(size, cores) == expected


# The processes


def batch_of(*texts: str) -> Batch:
    documents = [(0, number, Document(f"d{number}", "", text)) for number, text in enumerate(texts)]
    return Batch(documents, NOWHERE, 0)


def reject_x(chunks: list[Chunk]) -> list[Chunk]:
    """Return chunks as they are, as a packer that rejects a chunk with an x."""
    if any("x" in chunk.content for chunk in chunks):
        raise BuildError("An x.", where=chunks[0].id, do="Leave it out.")
    return chunks


def test_batches_come_back_in_order_and_as_if_packed_in_this_process() -> None:
    batches = [batch_of(*ODD, f"Number {number}.") for number in range(20)]
    results: list[object] = []
    work = partial(pack, packer=ChunkPacker({}), chunk_tokens=CHUNK_TOKENS, metadata={})
    with ProcessPool(2, work) as executor:
        for result in executor.results(batches):
            assert len(executor.under_way) <= 6
            results += filter(None, [result])
    assert results == [(batch, work(batch.documents)) for batch in batches]


def test_a_worker_raises_the_error_that_this_process_would_raise() -> None:
    messages: list[str] = []
    work = partial(pack, packer=reject_x, chunk_tokens=CHUNK_TOKENS, metadata={})
    for executor in (ThisProcess(work), ProcessPool(1, work)):  # type: ignore[arg-type]
        with executor, pytest.raises(BuildError) as caught:
            list(executor.results([batch_of("Sea.", "box")]))
        messages.append(str(caught.value))
    assert messages == ["An x.\nWhere: d0.1\nDo: Leave it out."] * 2


class KillingAWorker(Progress):
    """Progress that kills a worker once a hundred documents are written."""

    def update(self, read_bytes: int, documents: int, details: str = "") -> None:
        if documents >= 100:
            kill_a_worker()


@pytest.mark.server
def test_a_killed_worker_ends_the_build_and_the_same_command_resumes_it() -> None:
    corpus("c.jsonl", 1000)
    options = BuildOptions(workers=2)
    with pytest.raises(WorkerLostError) as caught:
        build_index(["c.jsonl"], Path("index"), options, KillingAWorker())
    assert caught.value.what == "A worker process was killed by signal 9."
    checkpoint = int(caught.value.do.split("it resumes after ")[1].split()[0].replace(",", ""))
    assert caught.value.do == (
        "Give the machine more memory, or use fewer `workers`."
        f" Run the same command again: it resumes after {checkpoint:,} documents."
    )
    assert 100 <= checkpoint < 1000
    assert worker_processes() == []
    report = build_index(["c.jsonl"], Path("index"), options)
    assert (report.continued, report.documents) == (checkpoint, 1000)
    build_index(["c.jsonl"], Path("whole"), BuildOptions())
    assert same_index("index") == same_index("whole")


@pytest.mark.server
@pytest.mark.parametrize("signal_number", some_of([signal.SIGKILL, signal.SIGINT]))
def test_no_worker_outlives_its_build(signal_number: signal.Signals) -> None:
    corpus("c.jsonl", 5_000)
    child = process(BUILD, "c.jsonl")
    assert child.stdout is not None
    workers = [int(process_id) for process_id in child.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(is_worker, workers))
    os.killpg(child.pid, signal_number) if signal_number == signal.SIGINT else child.kill()
    _, errors = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == (-signal_number if signal_number == signal.SIGKILL else 130)
    assert "Traceback" not in errors
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_worker, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_worker, workers))


BUILD = """
import os, sys
os.setpgid(0, 0)
from tests.support.worker_processes import worker_processes
from arag_search.cli.app import run
import arag_search.system.progress

class Printing(arag_search.system.progress.PlainProgress):
    printed = False
    def update(self, read_bytes, documents, details=""):
        if not self.printed:
            self.printed = True
            print(*worker_processes(), flush=True)

arag_search.system.progress.open_progress = lambda: Printing(sys.stderr)
sys.exit(run(["index", sys.argv[1], "--to", "index", "--workers", "2"]))
"""


def test_a_worker_starts_without_java_and_without_a_client() -> None:
    script = (
        "import sys, index_jobs.workers.worker, arag_search.engines.opensearch.packing\n"
        "print([name for name in ('jpype', 'opensearchpy', 'pydantic', 'typer', 'ijson')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

"""Builds and embeddings on two machines of a Ray cluster, in a process that also runs Java.

Ray and Java both want the signals of a process, so tests start one for Ray; it prints a line if all
is as it should be, and raises otherwise.
"""

import ctypes
import dataclasses
import os
import re
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster as Machines

from arag_search import open_index
from arag_search.errors import AragError, ArgumentError, DuplicateIdError, UnavailableError
from arag_search.system.progress import Progress
from index_jobs.build import blocks, new_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport
from index_jobs.embedding.encoding import Encoding
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.workers import cluster
from tests.support.builds import PLAIN, InterruptingProgress, corpus, same_index
from tests.support.commands import process
from tests.support.embeddings import ENCODER, PIECE, SMALL, build_small_index, check_embedded
from tests.support.opensearch_indexes import comparable as comparable_meta
from tests.support.opensearch_indexes import fresh_site, live_manifest
from tests.support.watched_folders import eventually

DONE = "as on one machine\n"
_MACHINE = {
    "num_cpus": 1,
    "object_store_memory": 80 << 20,
    "include_dashboard": False,
    "_system_config": {"health_check_period_ms": 500},  # how soon the loss of a machine is noticed
}
_ROOM = 256
"""Bytes that hold a struct sigaction, on any machine."""


def check(scenario: str, *arguments: str) -> None:
    """Run a function of this module in a process of its own."""
    child = process(
        "import sys; from tests.support import ray_workers;"
        " getattr(ray_workers, sys.argv[1])(*sys.argv[2:]); print('as on one machine')",
        scenario,
        *arguments,
        PYTHONPATH=os.pathsep.join(sys.path),
        ARAG_JVM_HEAP="128m",
        RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
    )
    out, error = child.communicate(timeout=300)
    assert (child.returncode, out) == (0, DONE), error


@contextmanager
def two_machines() -> Generator[tuple[str, Callable[[], None]]]:
    """Start two machines of one core; give their address, and a function that kills the second."""
    machines = Machines(initialize_head=True, head_node_args=_MACHINE)
    second = machines.add_node(num_cpus=1, object_store_memory=80 << 20)
    try:
        yield machines.address, lambda: machines.remove_node(second, allow_graceful=False)
    finally:
        machines.shutdown()


class Killing(Progress):
    """A progress that kills something, once, when it shows a number of documents or rows."""

    def __init__(self, at: int, kill: Callable[[], None]) -> None:
        self._at = at
        self._kill: Callable[[], None] | None = kill

    def update(self, done: int, count: int, details: str = "") -> None:
        if count >= self._at and self._kill is not None:
            self._kill()
            self._kill = None

    @property
    def has_killed(self) -> bool:
        return self._kill is None


def two_corpora(documents: int) -> list[str]:
    """Write two files of records whose ids differ."""
    first, second = corpus("a.jsonl", documents), corpus("b.jsonl", documents // 2)
    text = Path(second).read_text().replace('"id": "d', '"id": "e')
    Path(second).write_text(text)
    return [first, second]


def in_small_blocks(address: str, **changes: Any) -> BuildOptions:
    """Return the options of a build on a cluster, in blocks of about 40 documents."""
    blocks.BLOCK_BYTES = 10_000
    return dataclasses.replace(PLAIN, ray=address, **changes)


def refusal(job: Callable[..., object], *arguments: Any) -> AragError:
    with pytest.raises(AragError) as caught:
        job(*arguments)
    return caught.value


# Builds


def a_lost_machine() -> None:
    """Kill a machine in the middle of a build in a folder."""
    sources = two_corpora(600)
    local = build_index(sources, "local", PLAIN)
    with two_machines() as (address, kill):
        options = in_small_blocks(address)
        killing = Killing(150, kill)
        report = build_index(sources, "shared", options, killing)
        assert killing.has_killed
        assert comparable(report) == comparable(local)
        assert same_index("shared") == same_index("local")
        assert sorted(os.listdir("shared/g1")) == ["chunks", "in_use.lock", "sentences"]


def comparable(report: BuildReport) -> dict[str, Any]:
    """Return a report without the values that differ from run to run."""
    names = ("location", "generation", "seconds", "run_seconds", "documents_per_second", "workers")
    names = (*names, "rejected", "retries")
    return {name: value for name, value in report.to_dict().items() if name not in names}


def a_lost_machine_and_a_server(url: str) -> None:
    """Kill a machine in the middle of a build on OpenSearch, of several shards."""
    sources = two_corpora(600)
    local, shared = fresh_site(url), fresh_site(url)
    try:
        report = build_index(sources, local.address, dataclasses.replace(PLAIN, shards=2))
        with two_machines() as (address, kill):
            new_index.CHECKPOINT_S = new_index.CHECKPOINT_SHARE = 0
            options = in_small_blocks(address, shards=2)
            killing = Killing(150, kill)
            assert comparable(build_index(sources, shared.address, options, killing)) == comparable(
                report
            )
            assert killing.has_killed
        for site in (local, shared):
            assert site.deleted(site.live()[0]) == site.deleted(site.live()[1]) == 0
        for index in (0, 1):
            expected, stored = (site.documents(site.live()[index]) for site in (local, shared))
            assert stored == expected
        assert comparable_meta(live_manifest(shared)) == comparable_meta(live_manifest(local))
        assert hits_of(shared.address) == hits_of(local.address)
    finally:
        for site in (local, shared):
            site.remove()
            site.client.close()


def hits_of(location: str) -> list[tuple[str, float]]:
    with open_index(location) as index:
        hits = index.logical_search("sea OR w7", top_k=50).hits
    assert len(hits) == 50
    return [(hit.id, hit.score) for hit in hits]


def stops_and_sources() -> None:
    """Build from sources of several kinds, interrupted on the cluster, and resumed on it or on this
    machine."""
    sources = sources_of_several_kinds()
    new_index.CHECKPOINT_S = new_index.CHECKPOINT_SHARE = 0
    changes: dict[str, Any] = {
        "skip_bad_lines": True,
        "files": FileSelection(skip_bad_files=True),
        "metadata": {"year": "number", "kind": "keyword"},
    }
    options = dataclasses.replace(PLAIN, **changes)
    local = build_index(sources, "local", options)
    assert local.skipped_files == 1
    assert local.skipped_lines == 2
    with two_machines() as (address, _):
        shared = in_small_blocks(address, **changes)
        for name, second in (("resumed", shared), ("resumed-here", options)):
            stopping = InterruptingProgress(100)
            with pytest.raises(KeyboardInterrupt):
                build_index(sources, name, shared, stopping)
            assert re.fullmatch(
                r"Stopped\. Run the same command again: it resumes after \d+ documents\.",
                stopping.notes[-1],
            )
            report = build_index(sources, name, second)
            assert report.continued >= 100
            wanted = {**comparable(local), "continued": report.continued, "why": report.why}
            assert comparable(report) == wanted
            assert same_index(name) == same_index("local")


def sources_of_several_kinds() -> list[str]:
    first, second = two_corpora(200)
    lines = Path(first).read_text().splitlines()
    lines[10:10] = ["oops", "", '{"text": 3}']
    lines[0] = lines[0].replace('"text"', '"year": 1725, "kind": "odd", "text"')
    Path(first).write_text("\n".join(lines))
    notes = Path("notes")
    notes.mkdir()
    for number in range(60):
        (notes / f"{number:02}.md").write_text(f"# Title {number}\n\n" + "The sea is wide. " * 20)
    (notes / "30.md").write_bytes(b"\x00\x01")
    rows = "".join(f"n{number},{number},The sea.\n" for number in range(300))
    (notes / "31-table.csv").write_text(f"name,year,text\n{rows}odd,x,y\n")
    return [first, "notes", second]


def refusals() -> None:
    """Refuse what a cluster cannot do, and leave nothing behind."""
    new_index.CHECKPOINT_S = 600.0  # nothing is kept to be resumed, however slow the machine is
    sources = two_corpora(100)
    no_cluster = refusal(build_index, sources, "index", in_small_blocks("127.0.0.1:1"))
    assert isinstance(no_cluster, UnavailableError)
    assert no_cluster.what == "`ray`: there is no Ray cluster ([Errno 111] Connection refused)."
    assert no_cluster.where == "127.0.0.1:1"
    odd = refusal(build_index, sources, "index", in_small_blocks("ray://here"))
    assert odd.what == '`ray`: "ray://here" is not an address.'
    stdin = refusal(build_index, ["-"], "index", in_small_blocks("auto"))
    assert stdin.what == "`ray`: other machines cannot read standard input."
    with two_machines() as (address, _):
        options = in_small_blocks(address, skip_bad_lines=True)
        repeated = [sources[0], corpus("again.jsonl", 90)]
        twice = refusal(build_index, repeated, "index", options)
        assert isinstance(twice, DuplicateIdError)
        assert str(twice) == (
            'Duplicate id "d0": two records have it.\nWhere: again.jsonl\nDo: Remove or rename one'
            " of them, or build without `ray`, which skips the second."
        )
        with open(sources[0], "rb") as file:
            path = f"/proc/self/fd/{os.dup2(file.fileno(), 987)}"
            unseen = refusal(build_index, [path], "index", options)
            os.close(987)
        assert isinstance(unseen, ArgumentError)
        assert unseen.what == f"`ray`: a machine does not see {path}."
        many = refusal(build_index, sources, "index", dataclasses.replace(options, workers=3))
        assert many.what == "`workers`: the Ray cluster has room for 2 workers, not 3."
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "program_version", lambda: ["newer"])
            other = refusal(build_index, sources, "index", options)
        assert "['newer'] is here" in other.what
    assert not Path("index").exists()


# Embeddings


def embedded() -> None:
    """Embed on a cluster: interrupted, then with a machine that is killed."""
    build_small_index(60)
    before = handlers()
    assert all(before)
    with two_machines() as (address, kill):
        on_ray = dataclasses.replace(SMALL, ray=address)
        with pytest.raises(KeyboardInterrupt):
            embed_index("index", ENCODER, on_ray, InterruptingProgress(60))
        killing = Killing(1, kill)
        report = embed_index("index", ENCODER, on_ray, killing)
        assert killing.has_killed
        assert report.reused_rows >= PIECE
        check_embedded("index")
        too_many = dataclasses.replace(on_ray, workers=3, overwrite=True)
        what = "`workers`: the Ray cluster has room for 1 workers, not 3."
        # Ray counts a machine for some seconds after its loss.
        eventually(lambda: refusal(embed_index, "index", ENCODER, too_many).what == what)
        wrong = Encoding("hashing:x", EmbedOptions(ray=address, workers=1))
        with pytest.raises(ArgumentError, match="dimension"), wrong:
            pass
        assert not ray.is_initialized()
    assert handlers() == before, "the signals are not Java's any more"


def handlers() -> list[int]:
    """Return the addresses of the handlers of the signals that Java needs."""
    libc = ctypes.CDLL(None)
    addresses: list[int] = []
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        room = ctypes.create_string_buffer(_ROOM)
        assert libc.sigaction(int(number), None, room) == 0
        addresses.append(int.from_bytes(room.raw[: ctypes.sizeof(ctypes.c_void_p)], "little"))
    return addresses

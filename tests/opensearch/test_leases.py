"""Two processes that build or update one index: in other namespaces, suspended, without a node."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.engines.opensearch import lease
from arag_search.engines.opensearch.lease import read_holder
from arag_search.errors import AragError, IndexLockedError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import (
    PLAIN,
    InterruptingProgress,
    corpus,
    in_own_folder,  # noqa: F401
)
from tests.support.cluster import LocalCluster
from tests.support.commands import Command
from tests.support.examples import some_of
from tests.support.opensearch_indexes import Site, fresh_site
from tests.support.patience import PATIENCE_S
from tests.support.watched_folders import eventually

SHORT = (1.0, 6.0)
"""A renewal each second, and a lease that ends after 6 seconds without one."""
TRUE = (10.0, 60.0)

CHILD = """
import datetime, os, signal, sys, time
from pathlib import Path
from arag_search.engines.opensearch import client, lease
from index_jobs.build import new_index

action, moment, renew_s, dead_s, ahead_s, *command = sys.argv[1:]
method, end, left = moment.split()
left = int(left)
lease.RENEW_S, lease.DEAD_S = float(renew_s), float(dead_s)
new_index.CHECKPOINT_S = new_index.CHECKPOINT_SHARE = 0
call, now = client.Client.call, time.time
time.time = lambda: now() + float(ahead_s)

class Ahead(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=float(ahead_s))

lease.datetime = Ahead

def stopped(self, *arguments, **options):
    global left
    if arguments[0] == method and arguments[1].endswith(end):
        left -= 1
        if not left and action == "suspend":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif not left:
            Path("held").touch()
            while not Path("go").exists():
                time.sleep(0.05)
    return call(self, *arguments, **options)

client.Client.call = stopped
from arag_search.cli.app import run
sys.exit(run(command))
"""
NEVER = "GET /never 1"


def start(
    *command: str,
    moment: str = NEVER,
    action: str = "suspend",
    seconds: tuple[float, float] = SHORT,
    ahead_s: float = 0.0,
    within: tuple[str, ...] = (),
) -> "subprocess.Popen[str]":
    """Start a command that suspends itself, or holds until there is a file ``go``, before its
    n-th request ``moment``, when it has checked its lease."""
    words = [action, moment, *map(str, (*seconds, ahead_s)), *command]
    return subprocess.Popen(
        [*within, sys.executable, "-c", CHILD, *words], text=True, stderr=subprocess.PIPE
    )


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_S", SHORT[0])
    monkeypatch.setattr(lease, "DEAD_S", SHORT[1])


@pytest.fixture
def children() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        if child.returncode is None:
            child.kill()
            child.communicate()


def is_suspended(child: "subprocess.Popen[str]") -> bool:
    assert child.poll() is None, child.communicate()
    state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def error_of(child: "subprocess.Popen[str]") -> str:
    """Let a suspended process go on, and return the message with which it ends."""
    child.send_signal(signal.SIGCONT)
    error = child.communicate(timeout=PATIENCE_S)[1]
    assert child.returncode == 1, error
    return error[error.index("arag-search: ") :]


def contents(site: Site) -> list[tuple[str, str]]:
    with open_index(site.address) as index:
        return [(chunk.doc_id, chunk.content) for chunk in index.scan()]


def check_suspended_build(
    site: Site,
    children: list["subprocess.Popen[str]"],
    moment: str,
    source: str,
    seconds: tuple[float, float] = SHORT,
) -> None:
    """Suspend a build before a request until another process has built, and let it go on."""
    build = ["index", "c.jsonl", "--to", site.address, "--language", "en"]
    child = start(*build, moment=moment, seconds=seconds)
    children.append(child)
    eventually(lambda: is_suspended(child))
    progress = InterruptingProgress(1 << 40)
    report = build_index([source], site.address, PLAIN, progress)
    assert progress.notes[0].startswith(f"Waiting for the lease of process {child.pid} on ")
    before = site.live(), site.indexes(), contents(site)
    assert before[0][0] == report.generation
    assert error_of(child).startswith("arag-search: This build lost its lease.")
    assert (site.live(), site.indexes(), contents(site)) == before
    assert read_holder(site.client, site.name)[0] is None


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("moment", "source"),
    some_of(
        [
            ("POST /_bulk 2", "c.jsonl"),
            ("POST /_aliases 1", "other.jsonl"),
            ("POST /_aliases 1", "c.jsonl"),
            ("PUT /_mapping 2", "c.jsonl"),
            ("PUT /_mapping 1", "other.jsonl"),
            ("POST /_bulk 1", "other.jsonl"),
        ],
        2,
    ),
)
def test_a_suspended_build_neither_writes_nor_publishes_when_another_has_built(
    opensearch: Site, children: list["subprocess.Popen[str]"], moment: str, source: str
) -> None:
    corpus("c.jsonl", 300)
    corpus("other.jsonl", 5)
    check_suspended_build(opensearch, children, moment, source)


@pytest.mark.long
def test_a_build_that_is_suspended_for_90_seconds_is_taken_over(
    opensearch: Site, children: list["subprocess.Popen[str]"]
) -> None:
    corpus("c.jsonl", 300)
    check_suspended_build(opensearch, children, "POST /_bulk 2", "c.jsonl", TRUE)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("moment", "deletes"),
    some_of(
        [
            ("POST /_bulk 1", False),
            ("PUT /_mapping 1", True),
            ("PUT /_mapping 2", False),
            ("POST /_bulk 1", True),
            ("POST /_aliases 1", False),
        ],
        2,
    ),
)
def test_a_suspended_update_changes_nothing_when_another_has_finished_it(
    opensearch: Site,
    children: list["subprocess.Popen[str]"],
    arag: Command,
    moment: str,
    deletes: bool,
) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 30)], address, PLAIN)
    more = corpus("more.jsonl", 40)
    command = ["delete", address, "d1", "d2"] if deletes else ["add", more, "--to", address]
    child = start(*command, moment=moment)
    children.append(child)
    eventually(lambda: is_suspended(child))
    if deletes:
        assert delete_documents(address, ["d1", "d2"]).documents == 28
    else:
        assert add_documents([more], address).documents == 40
    delete_documents(address, ["d3"])
    before = opensearch.live(), opensearch.indexes(), contents(opensearch)
    assert error_of(child).startswith("arag-search: This update lost its lease.")
    assert (opensearch.live(), opensearch.indexes(), contents(opensearch)) == before
    info = arag("info", address, "--json").json
    assert (info["manifest"]["update"], info["verified"]) == (3, ["counts"])


# Two machines

HOST = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')
CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.mark.parametrize("within", ["host names", "namespaces"])
def test_two_machines_never_build_at_once_whatever_their_names_and_clocks(
    opensearch: Site, children: list["subprocess.Popen[str]"], within: str
) -> None:
    places = [CONTAINER] * 3
    if within == "host names":
        places = [(*CONTAINER, *HOST, f"loader-{number}") for number in range(3)]
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([*places[0], "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    corpus("c.jsonl", 900)
    corpus("other.jsonl", 5)
    build = ["index", "--to", opensearch.address, "--language", "en"]
    first = start(*build, "c.jsonl", moment="POST /_bulk 3", action="hold", within=places[0])
    children.append(first)
    eventually(Path("held").exists)
    indexes = opensearch.indexes()
    assert len(indexes) == 2
    patient = (SHORT[0], 60.0)
    for ahead_s in (-600, 600):
        second = start(*build, "other.jsonl", seconds=patient, ahead_s=ahead_s, within=places[1])
        children.append(second)
        name = "loader-0" if within == "host names" else os.uname().nodename
        message = f" on {name}, since "
        assert message in (error := error_of(second))
        assert error.startswith("arag-search: Another build is running there: process ")
        assert opensearch.indexes() == indexes, "the running build keeps its index"
    first.kill()
    first.communicate()
    third = start(*build, "c.jsonl", ahead_s=600, within=places[2])
    children.append(third)
    notes = third.communicate(timeout=PATIENCE_S)[1]
    assert third.returncode == 0, notes
    assert f"Waiting for the lease of process 1 on {name}, since " in notes
    assert "Resuming: after " in notes
    assert [name for name in opensearch.indexes() if name not in indexes] == []
    assert len(opensearch.chunks()) == 900


@pytest.mark.long
def test_nobody_is_declared_dead_while_the_node_is_down(
    own_node: LocalCluster,
    children: list["subprocess.Popen[str]"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = fresh_site(own_node.url)
    corpus("c.jsonl", 900)
    build = ["index", "c.jsonl", "--to", site.address, "--language", "en"]
    holder = start(*build, moment="POST /_bulk 3", action="hold", seconds=TRUE)
    children.append(holder)
    eventually(Path("held").exists)
    refused: list[AragError] = []

    def wait_for_it() -> None:
        try:
            build_index(["c.jsonl"], site.address, BuildOptions(language="en"))
        except AragError as error:
            refused.append(error)

    reads: list[object] = []

    def noted(*arguments: object) -> object:
        reads.append(read_holder(*arguments))  # type: ignore[arg-type]
        return reads[-1]

    monkeypatch.setattr(lease, "read_holder", noted)
    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    eventually(lambda: bool(reads))
    (node,) = own_node.nodes
    node.signal(signal.SIGKILL)
    eventually(lambda: node.pid is None)
    time.sleep(90)
    assert waiting.is_alive()
    own_node.revive()
    waiting.join(PATIENCE_S)
    assert [type(error) for error in refused] == [IndexLockedError]
    Path("go").touch()
    notes = holder.communicate(timeout=PATIENCE_S)[1]
    assert holder.returncode == 0, notes
    assert len(site.chunks()) == 900
    site.remove()
    site.client.close()

"""Local OpenSearch nodes: pinned jars, ports and processes; how they start, report and end."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

from arag_search.engines.jars import CACHE_VARIABLE, PinnedJar
from arag_search.engines.opensearch.nodes import cluster, jars
from arag_search.errors import ArgumentError, EngineError
from arag_search.system.processes import start_of
from bench.cluster.cluster import LocalCluster
from tests.support.commands import Command
from tests.support.opensearch_node import get_json

# Jars


def test_every_jar_is_listed_once_with_checksum_and_size() -> None:
    pinned = jars.pinned_jars()
    assert len(pinned) == len({jar.file_name for jar in pinned}) == 113
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in pinned)
    versions = {jar.version for jar in pinned if jar.group == "org.opensearch"}
    assert versions == {jars.OPENSEARCH_VERSION}


def jar_of(content: bytes) -> PinnedJar:
    return PinnedJar("org.x", "x", "1", hashlib.sha256(content).hexdigest(), len(content))


def test_a_jar_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    downloads: list[str] = []

    def download(jar: PinnedJar, folder: Path) -> Path:
        downloads.append(jar.coordinates)
        (folder / "x.jar").write_bytes(b"right")
        return folder / "x.jar"

    for _ in range(2):
        paths = jars.class_path([jar_of(b"right")], download)
        assert paths == [str(tmp_path / "opensearch-3.8.0" / "x-1.jar")]
        assert Path(paths[0]).read_bytes() == b"right"
    assert downloads == ["org.x:x:1"]


def test_a_jar_with_other_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    def download(_: PinnedJar, folder: Path) -> Path:
        (folder / "x.jar").write_bytes(b"wrong")
        return folder / "x.jar"

    with pytest.raises(EngineError) as caught:
        jars.class_path([jar_of(b"right")], download)
    folder = tmp_path / "opensearch-3.8.0"
    assert str(caught.value) == (
        "The download of org.x:x:1 has the wrong checksum.\n"
        f"Where: SHA-256 {hashlib.sha256(b'wrong').hexdigest()}\n"
        f"Allowed: SHA-256 {hashlib.sha256(b'right').hexdigest()}\n"
        f"Do: Check the network, then try again. Without a network, copy {folder} from a machine "
        "on which a node has been started; ARAG_CACHE_DIR moves the cache."
    )
    assert list(folder.iterdir()) == []


COMMAND = [sys.executable, "-c", "from arag_search.cli.app import main; main()", "opensearch"]


def write_ports(data: Path, ports: list[tuple[int, int]]) -> None:
    data.mkdir(exist_ok=True)
    (data / "cluster.json").write_text(json.dumps(ports))


# Ports and settings


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_reported_before_anything_starts(
    taken_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    write_ports(data, [(taken_port, taken_port)])
    monkeypatch.setattr(cluster, "_PORTS_LIMIT_S", 0)
    with pytest.raises(EngineError) as caught:
        cluster.up(data)
    assert str(caught.value) == (
        f"Port {taken_port} is in use.\n"
        "Where: 127.0.0.1\n"
        "Allowed: ports on which nothing listens; a node takes two, 100 apart\n"
        "Do: Choose others with --port (0 takes any), or stop the process that listens there."
    )
    assert not (data / "node-1").exists()


@pytest.mark.parametrize("port", [-1, 80, 65_434, 70_000])
def test_a_port_that_a_node_cannot_have_is_refused(port: int, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        cluster.up(tmp_path, port=port)
    assert str(caught.value) == (
        f"Port {port} cannot be the port of the first node.\n"
        "Where: --port\n"
        "Allowed: 1024 to 65,433, or 0 for any free port"
    )


def test_a_cluster_has_one_node_or_three(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        cluster.up(tmp_path, nodes=2)
    assert str(caught.value) == (
        "A local cluster of 2 nodes is not offered.\nWhere: --nodes\nAllowed: 1 or 3"
    )


@pytest.mark.parametrize("heap", ["512", "1", "big", "100m", "1.5g"])
def test_a_heap_that_java_would_not_accept_is_refused(heap: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        cluster.up(tmp_path, heap=heap)
    assert str(caught.value) == (
        f'The heap of a node is "{heap}".\n'
        "Where: --heap\n"
        "Allowed: a whole number with m or g, such as 512m or 2g; at least 256m"
    )


def test_a_folder_keeps_its_number_of_nodes(tmp_path: Path) -> None:
    write_ports(tmp_path, [(9200, 9300)])
    with pytest.raises(ArgumentError) as caught:
        cluster.up(tmp_path, nodes=3)
    assert str(caught.value) == (
        "The data folder has a cluster of 1 node.\n"
        f"Where: {tmp_path}\n"
        "Allowed: --nodes 1\n"
        "Do: Leave --nodes out, or name another folder with --data."
    )


# Processes


HOLDER = """
import os, signal, sys, time
from arag_search.system.lock import try_lock
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pid_file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
assert try_lock(pid_file)
os.write(pid_file, b"%d" % os.getpid())
print(flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def stand_in(data: Path, number: int = 1) -> Generator[subprocess.Popen[bytes]]:
    """Run a process that holds the lock of a node, and ignores requests to end."""
    write_ports(data, [(1, 1)] * number)
    (data / f"node-{number}").mkdir()
    command = [sys.executable, "-c", HOLDER, str(data / f"node-{number}" / "node.pid")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        yield child
        child.kill()


def test_a_process_that_only_has_the_number_of_a_node_is_left_alone(tmp_path: Path) -> None:
    with stand_in(tmp_path / "a") as stranger:
        write_ports(tmp_path / "b", [(1, 1)])
        (tmp_path / "b" / "node-1").mkdir()
        (tmp_path / "b" / "node-1" / "node.pid").write_text(f"{stranger.pid}\n")
        ended = cluster.down(tmp_path / "b")
        assert ended
        assert (ended.ended, ended.running) == (0, 0)
        assert stranger.poll() is None


def test_a_node_that_ignores_the_request_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "END_LIMIT_S", 0.2)
    with stand_in(tmp_path, 3) as child:
        ended = cluster.down(tmp_path)
        assert ended
        assert (ended.ended, ended.running) == (1, 0)
        assert start_of(child.pid) is None


# The data folder


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"version": 1}')
    with pytest.raises(EngineError) as caught:
        cluster.status(tmp_path)
    assert str(caught.value) == (
        f"cluster.json does not describe a local cluster.\nWhere: {tmp_path}\n"
        "Do: Name another folder with --data."
    )


def test_a_folder_without_a_cluster_is_reported_as_such(arag: Command, tmp_path: Path) -> None:
    data = tmp_path / "none"
    report = f"No local cluster has been started in {data}.\n"
    assert arag("opensearch", "status", "--data", str(data)) == (1, report, "")
    assert arag("opensearch", "down", "--data", str(data)) == (0, report, "")
    assert not data.exists()


@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_a_folder_without_a_name_is_refused(arag: Command, command: str) -> None:
    assert arag("opensearch", command, "--data", "").err == (
        "arag-search: The folder of the cluster has no name.\nWhere: --data\n"
        "Do: Name it, or leave --data out.\n"
    )


# Real nodes


@pytest.fixture(autouse=True)
def short_lived_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start nodes in this process such that Java compiles quickly."""
    monkeypatch.setattr(cluster, "up", partial(cluster.up, short_lived=True))


def put(url: str, body: object) -> None:
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method="PUT")):
        pass


def wait_until_running(data: Path, count: int) -> None:
    deadline = time.monotonic() + 90
    while (status := cluster.status(data)) is None or status.running != count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("nodes")
    yield folder
    cluster.down(folder)


@pytest.mark.usefixtures("opensearch_jars")
def test_a_node_is_started_reported_and_ended_and_keeps_its_data(arag: Command, data: Path) -> None:
    starters = [
        subprocess.Popen(
            [*COMMAND, "up", "--port", "0", "--data", str(data), "--json"], stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    first, second = sorted(
        (json.loads(starter.communicate()[0]) for starter in starters),
        key=lambda report: -report["started"],
    )
    assert second == {**first, "started": 0}, "the other of two simultaneous starts reports it"
    url, pid = first["url"], first["nodes"][0]["pid"]
    log = str(data / "node-1" / "node.log")
    assert first == {
        "data": str(data),
        "url": url,
        "ready": True,
        "status": "green",
        "nodes": [{"name": "node-1", "url": url, "pid": pid, "log": log}],
        "started": 1,
        "ended": 0,
    }
    node = f"  node-1  {url}  process {pid}, log {log}"
    end = [
        f"Address of an index: {url}/NAME",
        f"To stop the cluster: arag-search opensearch down --data {data}",
    ]
    running = [f"OpenSearch 3.8.0 at {url}: green, 1 of 1 nodes running", node, *end]
    assert arag("opensearch", "up", "--data", str(data)).lines == running
    assert arag("opensearch", "status", "--data", str(data)).lines == running
    wrong = arag("opensearch", "up", "--data", str(data), "--port", "9400")
    port = url.rpartition(":")[2]
    assert (wrong.code, wrong.err) == (
        1,
        f"arag-search: The cluster runs on port {port}.\nWhere: {url}\nAllowed: --port {port}\n"
        f"Do: Leave --port out, or stop it first: arag-search opensearch down --data {data}\n",
    )

    put(f"{url}/kept", {"settings": {"number_of_replicas": 0}})
    ended = arag("opensearch", "down", "--data", str(data))
    assert ended.lines[0] == "OpenSearch 3.8.0 does not run; 1 of 1 ended now"
    assert start_of(pid) is None
    assert arag("opensearch", "status", "--data", str(data)).code == 1
    assert "[Node] closed" in Path(log).read_text()

    second = arag("opensearch", "up", "--data", str(data), "--json").json
    assert second["url"] == url
    assert second["nodes"][0]["pid"] != pid
    assert list(get_json(f"{url}/kept")) == ["kept"]


@pytest.mark.usefixtures("opensearch_jars")
def test_a_node_that_dies_at_its_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "data").write_text("a file where a folder should be")
    with pytest.raises(EngineError) as caught:
        cluster.up(tmp_path, port=0)
    what, where, *log, do = str(caught.value).splitlines()
    assert what == "node-1 ended while the cluster was starting."
    assert where == f"Where: {tmp_path / 'node-1' / 'node.log'}, which ends:"
    assert any(str(tmp_path / "node-1" / "data") in line for line in log)
    assert do == "Do: Fix what the log reports, then start again: arag-search opensearch up"
    status = cluster.status(tmp_path)
    assert status
    assert status.running == 0


@pytest.mark.usefixtures("opensearch_jars")
def test_an_owned_node_ends_with_its_owner_however_the_owner_ends(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from arag_search.engines.opensearch.nodes import cluster\n"
        f"cluster.up(Path({str(tmp_path)!r}), port=0, owned=True)"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as owner:
        wait_until_running(tmp_path, 1)
        owner.kill()
    wait_until_running(tmp_path, 0)


@pytest.mark.usefixtures("opensearch_jars")
def test_a_start_that_is_killed_leaves_a_node_that_down_ends(arag: Command, tmp_path: Path) -> None:
    with subprocess.Popen([*COMMAND, "up", "--port", "0", "--data", str(tmp_path)]) as starter:
        wait_until_running(tmp_path, 1)
        starter.kill()
    data = ("--data", str(tmp_path), "--json")
    (node,) = arag("opensearch", "status", *data).json["nodes"]
    assert arag("opensearch", "down", *data).json["ended"] == 1
    assert start_of(node["pid"]) is None


def test_a_killed_node_of_three_is_started_again_and_the_others_run_on(
    opensearch_cluster: LocalCluster,
) -> None:
    before = [node.pid for node in opensearch_cluster.nodes]
    opensearch_cluster.signal(0, signal.SIGKILL)
    while opensearch_cluster.nodes[0].pid is not None:
        time.sleep(0.05)
    opensearch_cluster.revive()
    after = [node.pid for node in opensearch_cluster.nodes]
    assert len({*before, *after}) == 4
    assert after[1:] == before[1:]

"""Local OpenSearch nodes: pinned jars and processes; how they start and end."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from arag_search.engines import jars
from arag_search.engines.jars import PinnedJar
from arag_search.system.cache import CACHE_VARIABLE
from arag_search.system.processes import start_of, this_process
from bench import BenchError, nodes
from tests.support.guides import ROOT
from tests.support.opensearch_node import get_json
from tests.support.patience import PATIENCE_S


def test_every_jar_is_listed_once_with_checksum_and_size() -> None:
    pinned = nodes.pinned_jars()
    assert len(pinned) == len({jar.file_name for jar in pinned}) == 105
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in pinned)
    versions = {jar.version for jar in pinned if jar.group == "org.opensearch"}
    assert versions == {nodes.OPENSEARCH_VERSION}


def test_a_jar_with_other_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"right").hexdigest()

    def download(_: PinnedJar, folder: Path) -> Path:
        (folder / "x.jar").write_bytes(b"wrong")
        return folder / "x.jar"

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(jars, "_download", download)
    monkeypatch.setattr(nodes, "pinned_jars", lambda: [PinnedJar("org.x", "x", "1", digest, 5)])
    with pytest.raises(BenchError) as caught:
        nodes.class_path()
    folder = tmp_path / "opensearch-3.9.0"
    assert caught.value.where == f"SHA-256 {hashlib.sha256(b'wrong').hexdigest()}"
    assert "org.x:x:1" in caught.value.what
    assert list(folder.iterdir()) == []


def test_a_process_that_only_has_the_number_of_a_node_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("[[1, 1]]")
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "process.json").write_text(f'[{this_process().pid}, "earlier"]')
    nodes.down(tmp_path)
    assert [node.pid for node in nodes.nodes_of(tmp_path)] == [None]


def command(word: str, data: Path) -> Sequence[str]:
    return [sys.executable, "-m", "bench.nodes", word, "--data", str(data)]


def wait_until_it_runs(data: Path, *, runs: bool = True) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not nodes.nodes_of(data) or (nodes.nodes_of(data)[0].pid is not None) != runs:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("opensearch_jars")
def test_a_node_is_started_once_and_ended_and_keeps_its_data(tmp_path: Path) -> None:
    starts = [subprocess.check_output(command("up", tmp_path), cwd=ROOT, text=True) for _ in "12"]
    url, *others = {printed.strip() for printed in starts}
    assert not others
    (node,) = nodes.nodes_of(tmp_path)
    pid = node.pid
    assert pid is not None
    assert url == f"http://{node.host}"
    with pytest.raises(BenchError) as caught:
        nodes.up(tmp_path, 3)
    assert str(caught.value) == (
        f"The folder has a cluster of another size.\nWhere: {tmp_path}\nAllowed: --nodes 1\n"
        "Do: Name another folder with --data."
    )
    with urllib.request.urlopen(urllib.request.Request(f"{url}/kept", method="PUT")):
        pass
    subprocess.run(command("down", tmp_path), cwd=ROOT, check=True)
    assert start_of(pid) is None
    assert "[Node] closed" in node.log.read_text()

    nodes.up(tmp_path, 1, nodes.SHORT_LIVED, owned=True)
    assert node.pid != pid
    assert list(get_json(f"{url}/kept")) == ["kept"]
    node.signal(signal.SIGSTOP)
    nodes.down(tmp_path, kept=False)
    assert node.pid is None


@pytest.mark.usefixtures("opensearch_jars")
def test_a_node_that_dies_at_its_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "data").write_text("a file where a folder should be")
    with pytest.raises(BenchError) as caught:
        nodes.up(tmp_path, 1, nodes.SHORT_LIVED)
    what, *log, where, do = str(caught.value).splitlines()
    assert what == "node-1 ended while the cluster was starting. Its log ends:"
    assert where == f"Where: {tmp_path / 'node-1' / 'node.log'}"
    assert any(str(tmp_path / "node-1" / "data") in line for line in log)
    assert do == "Do: Fix what the log reports, or give the machine more memory and time."


@pytest.mark.usefixtures("opensearch_jars")
@pytest.mark.parametrize("owned", [True, False])
def test_a_node_whose_start_is_killed_ends_with_its_owner_or_by_down(
    owned: bool, tmp_path: Path
) -> None:
    script = (
        "from pathlib import Path\nfrom bench import nodes\n"
        f"nodes.up(Path({str(tmp_path)!r}), owned={owned})"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as starter:
        wait_until_it_runs(tmp_path)
        starter.kill()
    if not owned:
        nodes.down(tmp_path)
    wait_until_it_runs(tmp_path, runs=False)


def test_a_node_listens_on_loopback_only_and_counts_free_bytes(opensearch_url: str) -> None:
    (node,) = get_json(f"{opensearch_url}/_nodes")["nodes"].values()
    for layer in ("http", "transport"):
        addresses = node[layer]["bound_address"]
        assert [address.rpartition(":")[0] for address in addresses] == ["127.0.0.1"]
    settings = node["settings"]["cluster"]["routing"]["allocation"]["disk"]["watermark"]
    assert settings == {"low": "2gb", "high": "1gb", "flood_stage": "500mb"}
    assert {plugin["classname"].rpartition(".")[2] for plugin in node["plugins"]} == {
        "Netty4ModulePlugin",
        "PainlessModulePlugin",
        "ReindexModulePlugin",
        "ParentJoinModulePlugin",
        "MapperExtrasModulePlugin",
    }

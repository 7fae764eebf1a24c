"""What ``info`` says of a cluster, and its exit codes, by which the container ``load`` builds."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from index_jobs.build.new_index import build_index
from tests.support.cluster import LocalCluster
from tests.support.commands import SAMPLE, Command
from tests.support.opensearch_indexes import fresh_site

FOLDER = Path(__file__).parents[2] / "opensearch"


def test_info_tells_health_blocks_and_disks_and_what_a_restore_forgot(
    own_node: LocalCluster, arag: Command
) -> None:
    site = fresh_site(own_node.url)
    try:
        assert arag("info", site.address).code == 3
        physical = build_index([SAMPLE], site.address).generation
        settings = {"blocks.write": True, "number_of_replicas": 1, "auto_expand_replicas": "false"}
        site.client.call("PUT", f"/{physical}/_settings", {"index": settings})
        described = arag("info", site.address, "--json")
        cluster = json.loads(described.out)["cluster"]
        assert described.code == 0
        assert cluster["health"] == "yellow; copies of shards on no node: 1"
        assert cluster["blocks"] == "index.blocks.write (set it to null)"
        assert cluster["disks"].endswith("b free on node-1")
        site.client.call("PUT", f"/{physical}/_settings", {"index": {"blocks.write": None}})
        alias = {"index": f"{physical}.sentences", "alias": f"{site.name}.sentences"}
        site.client.call("POST", "/_aliases", {"actions": [{"remove": alias}]})
        restored = arag("info", site.address)
        assert restored.code == 1
        assert f"Do: Add the alias {alias['alias']} to {alias['index']}" in restored.err
        meta = site.client.call("GET", f"/{physical}/_mapping")[physical]["mappings"]["_meta"]
        meta["arag_search"]["version"] = 99
        site.client.call("PUT", f"/{physical}/_mapping", {"_meta": meta})
        assert arag("info", site.address).code == 4
    finally:
        site.remove()
        site.client.close()


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.cluster.yml"])
@pytest.mark.parametrize(
    ("code", "loads"),
    [(0, ""), (1, ""), (3, "index /corpus --to A"), (4, "index /corpus --to A --overwrite")],
)
def test_a_container_loads_what_is_missing_or_unreadable(
    file: str, code: int, loads: str, tmp_path: Path
) -> None:
    command = tmp_path / "arag-search"
    command.write_text(f'#!/bin/sh\n[ "$1" = info ] && exit {code}\necho "$@"\n')
    command.chmod(0o755)
    entry = yaml.safe_load((FOLDER / file).read_text())["services"]["load"]["entrypoint"]
    run = subprocess.run(
        [*(part.replace("$$", "$") for part in entry), "A", "/corpus"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stdout.strip()) == (int(code == 1), loads)

"""Blocks of a cluster: each is named, and an update that meets one has recorded nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.bulk import Bulks
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.packing import bulk_line
from arag_search.errors import AccessError, AragError, EngineError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import PLAIN, corpus, in_own_folder  # noqa: F401
from tests.support.cluster import LocalCluster
from tests.support.opensearch_indexes import Site, fresh_site
from tests.support.unruly_server import Answer, unruly, version

DISKS = "cluster.routing.allocation.disk.threshold_enabled"
"""While it is on, the server lifts the block of the flood stage at once: the disk has room."""
FREE = (
    "Free disk space on the nodes, after which the server lifts the block; repeat the command then."
)


@pytest.fixture
def blocked(own_node: LocalCluster) -> Iterator[Site]:
    """Provide a name on a node that no other test uses, and lift all blocks in the end."""
    site = fresh_site(own_node.url)
    set_in_cluster(site, DISKS, False)
    try:
        yield site
    finally:
        site.remove()
        set_in_cluster(site, DISKS, None)
        site.client.close()


def set_in_cluster(site: Site, name: str, value: bool | None) -> None:
    site.client.call("PUT", "/_cluster/settings", {"persistent": {name: value}})


def set_in_index(site: Site, index: str, name: str, value: bool | None) -> None:
    site.client.call("PUT", f"/{index}/_settings", {name: value})


@pytest.mark.parametrize(
    ("name", "at", "do"),
    [
        ("index.blocks.write", 0, "Set index.blocks.write to null in the settings of the index"),
        ("index.blocks.write", 1, "Set index.blocks.write to null in the settings of the index"),
        ("index.blocks.read_only", 0, "Set index.blocks.read_only to null in the settings of"),
        ("index.blocks.metadata", 0, "Set index.blocks.metadata to null in the settings of"),
        ("index.blocks.read_only_allow_delete", 0, FREE),
        ("cluster.blocks.read_only", None, "Set cluster.blocks.read_only to null in the settings"),
        ("cluster.blocks.read_only_allow_delete", None, FREE),
    ],
)
def test_an_update_names_the_block_and_records_nothing(
    blocked: Site, name: str, at: int | None, do: str
) -> None:
    build_index([corpus("c.jsonl", 3)], blocked.address, PLAIN)
    live = blocked.live()
    before = blocked.meta(live[0]), blocked.client.call("GET", f"/{blocked.name}*/_alias")
    if at is None:
        set_in_cluster(blocked, name, True)
    else:
        set_in_index(blocked, live[at], name, True)
    try:
        for update in (
            lambda: add_documents([corpus("more.jsonl", 5)], blocked.address),
            lambda: delete_documents(blocked.address, ["d1"]),
        ):
            with pytest.raises(EngineError) as caught:
                update()
            assert caught.value.what.startswith(f"The server blocks this ({name}): ")
            assert caught.value.do.startswith(do)
    finally:
        if at is None:
            set_in_cluster(blocked, name, None)
        else:
            set_in_index(blocked, live[at], name, None)
    after = blocked.meta(live[0]), blocked.client.call("GET", f"/{blocked.name}*/_alias")
    assert after == before
    assert add_documents([corpus("more.jsonl", 5)], blocked.address).added == 2


def test_a_build_that_meets_a_block_names_it_and_is_resumed(blocked: Site) -> None:
    name = "cluster.blocks.create_index"
    set_in_cluster(blocked, name, True)
    with pytest.raises(EngineError, match=rf"^The server blocks this \({name}\): "):
        build_index([corpus("c.jsonl", 3)], blocked.address, PLAIN)
    set_in_cluster(blocked, name, None)
    assert build_index([corpus("c.jsonl", 3)], blocked.address, PLAIN).documents == 3


def test_a_search_names_a_closed_index_and_a_block_of_reading(blocked: Site) -> None:
    build_index([corpus("c.jsonl", 3)], blocked.address, PLAIN)
    live = blocked.live()[0]

    def failure() -> str:
        with pytest.raises(AragError) as caught, open_index(blocked.address) as index:
            index.logical_search("w1")
        return str(caught.value)

    blocked.client.call("POST", f"/{live}/_close")
    assert failure().startswith("The index is closed: index_closed_exception: ")
    blocked.client.call("POST", f"/{live}/_open")
    set_in_index(blocked, live, "index.blocks.read", True)
    assert failure().startswith("The server blocks this (index.blocks.read): ")


@pytest.mark.parametrize(
    ("status", "kind", "reason", "error"),
    [
        (429, "cluster_block_exception", "[TOO_MANY_REQUESTS/12/disk usage]", EngineError),
        (403, "cluster_block_exception", "[FORBIDDEN/8/index write (api)]", EngineError),
        (403, "security_exception", "no permissions for [indices:data/write/bulk]", AccessError),
    ],
)
def test_a_bulk_does_not_wait_for_a_block_or_a_permission(
    status: int, kind: str, reason: str, error: type[AragError]
) -> None:
    item = {"status": status, "error": {"type": kind, "reason": reason}}
    with unruly() as server:
        server.reply_with(version(), Answer({"items": [{"create": item}]}))
        client = Client.connect(parse_address(f"{server.url}/wiki"))
        sender = Bulks(client, "x")
        sender.add_lines([bulk_line("x", 1, "r", {})])
        with pytest.raises(error):
            sender.drain()
        sender.abort()
        client.close()

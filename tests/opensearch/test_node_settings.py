"""The addresses, disk limits and plugins of a node."""

from __future__ import annotations

from tests.support.opensearch_node import get_json


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

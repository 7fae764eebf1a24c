"""The training run for the cache of the classes that a node needs.

With the cache a node starts in a third of the time and a quarter of the processor time. The first
start of a node on a machine creates it (engines/aot_cache.py).

``python -m arag_search.engines.opensearch.nodes.training`` creates it now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arag_search.engines import aot_cache
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.connection import ConnectionOptions
from arag_search.engines.opensearch.nodes import cluster, jars
from arag_search.engines.opensearch.nodes.settings import FIXED_FLAGS

_INDEX = "training"
_MAPPINGS = {
    "properties": {
        "text": {"type": "text"},
        "kind": {"type": "keyword"},
        "number": {"type": "long"},
    }
}
_WORDS = {
    "dis_max": {"queries": [{"term": {"text": "vivaldi"}}, {"match_phrase": {"text": "a b"}}]}
}
_SEARCHES: tuple[dict[str, Any], ...] = (
    {
        "query": {
            "bool": {
                "must": [_WORDS],
                "filter": [{"range": {"number": {"gte": 3}}}, {"terms": {"kind": ["opera"]}}],
                "must_not": [{"prefix": {"text": "hand"}}],
            }
        },
        "sort": ["_score", "number"],
    },
    {"query": {"match_all": {}}, "from": 2, "size": 5},
)


def create() -> Path | None:
    """Create the cache, and return its path; None if another process is creating it.

    Raises EngineError, and see aot_cache.create.
    """
    class_path = jars.class_path()
    cache = aot_cache.cache_path(cluster.CACHE_KIND, class_path)
    return aot_cache.create(cache, class_path, FIXED_FLAGS, _train)


def _train(folder: Path, flags: Sequence[str]) -> None:
    """Run a node, which is sent the kinds of requests that every use of it begins with."""
    status = cluster.up(folder, port=0, owned=True, flags=flags)
    try:
        client = Client.connect(parse_address(f"{status.url}/{_INDEX}"), ConnectionOptions())
        try:
            _use(client)
        finally:
            client.close()
    finally:
        cluster.down(folder)  # Java writes what it recorded now


def _use(client: Client) -> None:
    client.call("PUT", f"/{_INDEX}", {"mappings": _MAPPINGS})
    for number in range(8):
        passage = {"text": f"Vivaldi {number} a b", "kind": "opera", "number": number}
        client.call("PUT", f"/{_INDEX}/_doc/{number}", passage)
    client.call("POST", f"/{_INDEX}/_refresh")
    for body in _SEARCHES:
        client.call("POST", f"/{_INDEX}/_search", body)
    client.call("DELETE", f"/{_INDEX}")


if __name__ == "__main__":
    aot_cache.main(create)

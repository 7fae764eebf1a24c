"""A local OpenSearch cluster whose nodes can be killed, stopped for a while, and started again."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from bench import nodes
from tests.support.patience import PATIENCE_S

_PATIENT = ConnectionOptions(attempt_timeout_s=30.0)


class LocalCluster:
    """A cluster of nodes that end with this process. ``url`` lists all its hosts."""

    def __init__(self, data: Path, count: int) -> None:
        self._data = data
        self.nodes = nodes.up(data, count, nodes.SHORT_LIVED, owned=True)
        self.url = nodes.address(self.nodes)
        self._client = Client.connect(parse_address(f"{self.url}/any"), _PATIENT)

    def manager(self) -> int:
        """Return the number of the node that manages the cluster."""
        (manager,) = self._client.call("GET", "/_cat/cluster_manager", params={"format": "json"})
        return [node.name for node in self.nodes].index(manager["node"])

    def holders(self, index: str) -> dict[int, set[str]]:
        """Return the nodes that hold a copy of each shard of an index."""
        rows = self._client.call("GET", f"/_cat/shards/{index}", params={"format": "json"})
        nodes_by_shard: dict[int, set[str]] = {}
        for row in rows:
            if row["state"] == "STARTED":
                nodes_by_shard.setdefault(int(row["shard"]), set()).add(row["node"])
        return nodes_by_shard

    def keep_copies(self, index: str, replicas: int) -> None:
        """Set the number of replicas of each shard, and wait until all are allocated."""
        settings: Mapping[str, object] = {"index": {"number_of_replicas": replicas}}
        self._client.call("PUT", f"/{index}/_settings", settings)
        self.wait_until_green()

    def revive(self) -> None:
        """Start the nodes that were killed, and wait until all copies are allocated."""
        nodes.up(self._data, None, nodes.SHORT_LIVED, owned=True)
        self.wait_until_green()

    def wait_until_green(self) -> None:
        """Wait until all nodes have joined, and all copies of shards are where they stay."""
        last = time.monotonic() + PATIENCE_S
        params = {"wait_for_status": "green", "timeout": "5s"}
        params["wait_for_no_relocating_shards"] = "true"
        params["wait_for_nodes"] = str(len(self.nodes))
        # Status 408 means "not yet", and the request is repeated.
        while self._client.call("GET", "/_cluster/health", params=params)["timed_out"]:
            assert time.monotonic() < last, f"{self.url} is not green"

    def close(self) -> None:
        """End the nodes."""
        self._client.close()
        nodes.down(self._data, kept=False)


@contextmanager
def local_cluster(data: Path, count: int = 3) -> Generator[LocalCluster]:
    """Run a cluster of so many nodes in a folder, and end it afterwards. Raises BenchError if it
    cannot be started."""
    cluster = LocalCluster(data, count)
    try:
        yield cluster
    finally:
        cluster.close()

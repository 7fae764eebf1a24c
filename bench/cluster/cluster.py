"""A local OpenSearch cluster whose nodes can be killed, stopped for a while, and started again."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from bench import BenchError, nodes

_GREEN_S = 120.0
_PATIENT = ConnectionOptions(attempt_timeout_s=30.0)


class LocalCluster:
    """A cluster of nodes that end with this process. ``url`` lists all its hosts, ``short_lived``
    says how its nodes are started, and restarted."""

    def __init__(
        self, data: Path, count: int, *, heap: str = nodes.HEAP, short_lived: bool = False
    ) -> None:
        self._data = data
        self._heap = heap
        self._short_lived = short_lived
        self.nodes = nodes.up(data, count, owned=True, heap=heap, short_lived=short_lived)
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
        self.set(index, {"number_of_replicas": replicas})
        self.wait_until_green()

    def set(self, index: str, settings: Mapping[str, object]) -> None:
        """Change settings of an index."""
        self._client.call("PUT", f"/{index}/_settings", {"index": settings})

    def revive(self) -> None:
        """Start the nodes that were killed, and wait until all copies are allocated."""
        nodes.up(self._data, owned=True, heap=self._heap, short_lived=self._short_lived)
        self.wait_until_green()

    def wait_until_green(self) -> None:
        """Wait until all nodes have joined and all copies of shards are allocated. Raises
        BenchError after 120 s."""
        last = time.monotonic() + _GREEN_S
        params = {"wait_for_status": "green", "timeout": "5s"}
        params["wait_for_nodes"] = str(len(self.nodes))
        while time.monotonic() < last:
            # Status 408 means "not yet", and the request is repeated.
            health = self._client.call("GET", "/_cluster/health", params=params)
            if not health["timed_out"]:
                return
        raise BenchError(f"The cluster is not green after {_GREEN_S:.0f} s.", where=self.url)

    def close(self, *, kept: bool = False) -> None:
        """End the nodes, and close their indexes before if they are ``kept``."""
        self._client.close()
        nodes.down(self._data, kept=kept)


@contextmanager
def local_cluster(
    data: Path,
    count: int = 3,
    *,
    heap: str = nodes.HEAP,
    short_lived: bool = False,
    kept: bool = False,
) -> Generator[LocalCluster]:
    """Run a cluster of so many nodes with this heap each in a folder, and end it afterwards. A
    cluster that is to be timed is not ``short_lived``; one that is ``kept`` can be run again with
    its indexes.

    Raises BenchError if it cannot be started.
    """
    try:
        cluster = LocalCluster(data, count, heap=heap, short_lived=short_lived)
    except BaseException:
        nodes.down(data)
        raise
    try:
        yield cluster
    finally:
        cluster.close(kept=kept)


@contextmanager
def client_of(location: str) -> Generator[tuple[Client, str]]:
    """Connect to the server of a location, and yield the client and the name of the index."""
    address = parse_address(location)
    client = Client.connect(address)
    try:
        yield client, address.name
    finally:
        client.close()


def stored_bytes(location: str) -> int:
    """Return the bytes of the primary shards of all indexes whose names begin with that of the
    location."""
    with client_of(location) as (client, name):
        stats = client.call("GET", f"/{name}*/_stats/store")
        return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])


def remove_indexes(location: str) -> None:
    """Delete all indexes whose names begin with that of the location."""
    with client_of(location) as (client, name):
        for index in client.call("GET", f"/{name}*/_alias"):
            client.call("DELETE", f"/{index}")

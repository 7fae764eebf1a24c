"""The copies of shards that a session searches: always the same ones, until a node hangs.

A host that works waits for the copy on a node that hangs, so a timeout does not show which node it
was. Therefore each node with copies is sent a search of one shard that it holds, and nodes that do
not answer are excluded for a while. A cluster notices such a node too, but a minute or more later.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.faults import Fault
from arag_search.engines.opensearch.hosts import Host

_PROBE_S = 1.0
_MOST_HUNG = 3
"""If this many nodes do not answer, the whole cluster is slow."""
_EXCLUDED_S = 120.0
"""Longer than a cluster takes, by its defaults, to remove a node that hangs."""


class Copies:
    """The copies that searches in some indexes use. Threads may share it."""

    def __init__(self, client: Client, indexes: Sequence[str]) -> None:
        self._client = client
        self._path = f"/{','.join(indexes)}/_search_shards"
        self._lock = threading.Lock()
        # The same for all searches: copies may differ in deleted documents, and so in scores.
        self._usual = _random_preference()
        self._substitute = ""
        self._substitute_until = 0.0

    @property
    def preference(self) -> str:
        """The ``preference`` that searches send now."""
        return self._substitute if time.monotonic() < self._substitute_until else self._usual

    def exclude_hung(self, preference: str, until: float) -> None:
        """Prefer copies on other nodes after a search with this preference timed out.

        Nodes that hang are excluded. If none seems to hang, nothing changes; if the nodes cannot
        be listed, by this user or at all, other copies are chosen at random. Sends nothing after
        ``until``, a time of ``time.monotonic``.
        """
        with self._lock:
            if self.preference != preference:
                return  # another thread has just changed it
            located = self._shards(until)
            if located is None:
                substitute = _random_preference()
            else:
                host, shards = located
                hung = self._hung(host, shards, until)
                healthy = [node for node in shards if node not in hung]
                if not hung or not healthy or len(hung) >= _MOST_HUNG:
                    return
                # Preferred, not required: if they have no copy, or die, other nodes are used.
                substitute = f"_prefer_nodes:{','.join(sorted(healthy))}"
            self._substitute, self._substitute_until = substitute, time.monotonic() + _EXCLUDED_S

    def _shards(self, until: float) -> tuple[Host, Mapping[str, tuple[str, int]]] | None:
        """Return a host that answers and, for each node with copies, index and number of one of
        its shards; None if no host answers. All hosts are asked, so that exactly those that hang
        are set aside."""
        hosts = self._client.hosts
        located: tuple[Host, Any] | None = None
        for host in hosts:
            if time.monotonic() >= until:
                break
            # Without "local" it passes the request to the cluster manager, which may hang.
            reply = self._client.ask(
                host, "GET", self._path, params={"local": "true"}, timeout_s=_PROBE_S
            )
            if not isinstance(reply, Fault):
                located = host, reply
        if located is None:
            return None
        host, reply = located
        copies = [copy for shard in reply["shards"] for copy in shard if copy["state"] == "STARTED"]
        return host, {copy["node"]: (copy["index"], int(copy["shard"])) for copy in copies}

    def _hung(self, host: Host, shards: Mapping[str, tuple[str, int]], until: float) -> set[str]:
        """Return the nodes, at most a few, that do not answer a host that works."""
        hung: set[str] = set()
        for node, (index, shard) in shards.items():
            if len(hung) == _MOST_HUNG or time.monotonic() >= until:
                break
            reply = self._client.ask(
                host,
                "POST",
                f"/{index}/_search",
                {"size": 0},
                {"preference": f"_shards:{shard}|_only_nodes:{node}"},
                timeout_s=_PROBE_S,
                blame=False,
            )
            if isinstance(reply, Fault) and reply.unanswered:
                hung.add(node)
        return hung


def _random_preference() -> str:
    return f"arag-{uuid.uuid4().hex[:12]}"

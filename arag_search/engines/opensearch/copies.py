"""Which copies of the shards a session searches: the same ones always, until a node hangs.

A host that answers waits for the copy on a node that hangs, so a time-out does not tell which node
it was. Therefore each node with copies is sent a search of one shard that it holds; who leaves it
unanswered is left out for a while. A cluster notices such a node too, but a minute or more later.
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
"""With so many nodes without an answer it is the whole cluster that is slow."""
_LEFT_OUT_S = 120.0
"""Longer than a cluster takes, by its defaults, to part with a node that hangs."""


class Copies:
    """The copies that searches in some indexes go to. Threads may share it."""

    def __init__(self, client: Client, indexes: Sequence[str]) -> None:
        self._client = client
        self._path = f"/{','.join(indexes)}/_search_shards"
        self._lock = threading.Lock()
        # One for all searches: copies of a shard may differ in deleted documents, so in scores.
        self._usual = _new()
        self._instead = ""
        self._instead_until = 0.0

    @property
    def preference(self) -> str:
        """What a search now sends as its ``preference``."""
        return self._instead if time.monotonic() < self._instead_until else self._usual

    def leave_out_hung(self, asked: str, until: float) -> None:
        """After a search with this preference was not answered in time, prefer the copies that are
        not on nodes that hang. Where none seems to hang, nothing changes; where the nodes are not
        told, to this user or at all, other copies are taken by chance. Asks nobody after the time
        ``until``, of ``time.monotonic``.
        """
        with self._lock:
            if self.preference != asked:
                return  # another thread has just been here
            told = self._shards(until)
            if told is None:
                instead = _new()
            else:
                host, shards = told
                hung = self._hung(host, shards, until)
                well = [node for node in shards if node not in hung]
                if not hung or not well or len(hung) >= _MOST_HUNG:
                    return
                # Preferred, not required: where they have no copy, or die, others are asked.
                instead = f"_prefer_nodes:{','.join(sorted(well))}"
            self._instead, self._instead_until = instead, time.monotonic() + _LEFT_OUT_S

    def _shards(self, until: float) -> tuple[Host, Mapping[str, tuple[str, int]]] | None:
        """A host that answers, and for each node with copies index and number of one; None where
        nobody says. Every host is asked, so that those that hang are set aside, and no others."""
        hosts = self._client.hosts
        told: tuple[Host, Any] | None = None
        for host in hosts:
            if time.monotonic() >= until:
                break
            # Without "local" it passes the request to the cluster manager, which may hang.
            found = self._client.ask(
                host, "GET", self._path, params={"local": "true"}, timeout_s=_PROBE_S
            )
            if not isinstance(found, Fault):
                told = host, found
        if told is None:
            return None
        host, found = told
        copies = [copy for shard in found["shards"] for copy in shard if copy["state"] == "STARTED"]
        return host, {copy["node"]: (copy["index"], int(copy["shard"])) for copy in copies}

    def _hung(self, host: Host, shards: Mapping[str, tuple[str, int]], until: float) -> set[str]:
        """The nodes that do not answer a host that does, at most a few."""
        hung: set[str] = set()
        for node, (index, shard) in shards.items():
            if len(hung) == _MOST_HUNG or time.monotonic() >= until:
                break
            found = self._client.ask(
                host,
                "POST",
                f"/{index}/_search",
                {"size": 0},
                {"preference": f"_shards:{shard}|_only_nodes:{node}"},
                timeout_s=_PROBE_S,
                blame=False,
            )
            if isinstance(found, Fault) and found.unanswered:
                hung.add(node)
        return hung


def _new() -> str:
    return f"arag-{uuid.uuid4().hex[:12]}"

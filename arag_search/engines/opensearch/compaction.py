"""Compaction: merging each shard into one segment until no deleted document is left.

A shard keeps recent deletions for copies that rejoin, and drops them when all copies have them,
which it checks every 30 seconds. Merges are repeated until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet

from arag_search.engines.deletions import Deletions, deletions_of
from arag_search.engines.opensearch.answers import ShardStatistics, shard_statistics
from arag_search.engines.opensearch.client import Client

LEFT_WAIT_S = 180.0
"""How long to wait for deleted documents that shards keep for their copies."""

_MERGE_S = 24 * 3600.0
_SHOW_EVERY_S = 10.0
_PAUSE_S = 2.0


def deletions_on(client: Client, indexes: Sequence[str]) -> Deletions:
    """Count the deleted documents in the primary shards of the indexes. A server also counts a
    marker for each deletion, so the result is up to twice their number."""
    return deletions_of(*_statistics(client, indexes))


def _statistics(client: Client, indexes: Sequence[str]) -> list[ShardStatistics]:
    reply = client.call("GET", f"/{','.join(indexes)}/_stats/docs,store,segments")
    return [shard_statistics(reply["indices"][index], 0) for index in indexes]


def compact(client: Client, indexes: Sequence[str], note: Callable[[str], None]) -> Deletions:
    """Merge, and return the deletions that remain because a copy of a shard is missing."""
    until = time.monotonic() + LEFT_WAIT_S
    waiting = False
    while True:
        for index, statistics in zip(indexes, _statistics(client, indexes), strict=True):
            if not waiting:
                note(f"Merging {index}, {statistics.documents:,} documents.")
            _merge(client, index, note)
        left = deletions_on(client, indexes)
        if not left.documents or time.monotonic() > until:
            return left
        if not waiting:
            note("Waiting for the shards to drop deleted documents: up to a minute.")
            waiting = True
        time.sleep(_PAUSE_S)


def _merge(client: Client, index: str, note: Callable[[str], None]) -> None:
    """Merge all shards once, and report how long it has taken so far."""
    began = time.monotonic()
    client.call("POST", f"/{index}/_flush", params={"force": "true"}, attempt_timeout_s=300)
    with ThreadPoolExecutor(1) as beside:
        merging = beside.submit(
            client.call,
            "POST",
            f"/{index}/_forcemerge",
            params={"max_num_segments": "1"},
            attempt_timeout_s=_MERGE_S,
        )
        while True:
            try:
                merging.result(timeout=_SHOW_EVERY_S)
                break
            except NotYet:
                note(f"... merging for {time.monotonic() - began:,.0f} s")
    client.call("POST", f"/{index}/_refresh", attempt_timeout_s=300)

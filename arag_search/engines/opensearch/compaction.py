"""Merging each shard into one segment, until no deleted document is left.

A shard keeps what was deleted lately for copies that come back, and lets it go when all of them
have it, which it looks at every 30 seconds: merges are repeated until then.
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
"""For so long deleted documents are waited for that the shards keep for their copies."""

_MERGE_S = 24 * 3600.0
_SHOW_EVERY_S = 10.0
_PAUSE_S = 2.0


def deletions_on(client: Client, indexes: Sequence[str]) -> Deletions:
    """The deleted documents in the primary shards of the indexes. A server also counts a mark for
    each deletion, so it is up to twice as many."""
    return deletions_of(*_statistics(client, indexes))


def _statistics(client: Client, indexes: Sequence[str]) -> list[ShardStatistics]:
    reply = client.call("GET", f"/{','.join(indexes)}/_stats/docs,store,segments")
    return [shard_statistics(reply["indices"][each], 0) for each in indexes]


def compact(client: Client, indexes: Sequence[str], note: Callable[[str], None]) -> Deletions:
    """Merge; the deletions that are left because a copy of a shard is away."""
    until = time.monotonic() + LEFT_WAIT_S
    waiting = False
    while True:
        for index, found in zip(indexes, _statistics(client, indexes), strict=True):
            if not waiting:
                note(f"Merging {index}, {found.documents:,} documents.")
            _merge(client, index, note)
        left = deletions_on(client, indexes)
        if not left.documents or time.monotonic() > until:
            return left
        if not waiting:
            note("Waiting for the shards to let go of deleted documents: up to a minute.")
            waiting = True
        time.sleep(_PAUSE_S)


def _merge(client: Client, index: str, note: Callable[[str], None]) -> None:
    """One merge of all shards; says how long it has taken so far."""
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

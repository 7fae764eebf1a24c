"""Our whole build on an OpenSearch node, beside ``parallel_bulk`` of opensearch-py.

Ours reads the corpus, cuts it, counts tokens, sends, checks what arrived and publishes. The rival
has the same documents in memory as ready actions. It sends them into indexes with the same mapping,
in bulks of as many bytes, as many at a time. Both end with a refresh, and hold the same documents.
The processor times of the client and of the node are told apart.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from arag_search.engines.opensearch.bulk import BULK_TIMEOUT_S, MAX_BULK_BYTES, SENDERS
from bench import BenchError, nodes
from bench.processes import processor_time
from bench.proxy import counting
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.peers import Passages
from bench.workbench import say
from index_jobs.build.new_index import build_index

OURS, BULK = "ours", "parallel_bulk"
_NAME, _BARE = "load", "bare"
_HEAP = "1g"
TARGET = Target("at most", 1.25)
"""The processor time of ours over the time of parallel_bulk."""
_WORK = {
    "indexing": ("indexing", "index_time_in_millis"),
    "merging": ("merges", "total_time_in_millis"),
    "refreshing": ("refresh", "total_time_in_millis"),
    "flushing": ("flush", "total_time_in_millis"),
}
"""The work of a node, by the names of its statistics."""
_KEPT_SETTINGS = ("number_of_shards", "number_of_replicas", "similarity", "analysis")


def beside_parallel_bulk(passages: Passages, rounds: int, *, warm_up: int = 1) -> Figure:
    """Load the passages by both sides in interleaved rounds. Raises BenchError if they do not hold
    as many documents."""
    options = replace(passages.options, without=(), overwrite=True, keep=0)
    with nodes.running(passages.folder / "loading", heap=_HEAP) as started:
        library = _Library(nodes.address(started))
        build = partial(build_index, [str(passages.source)], options=options)
        say("loading: the documents that both load")
        with counting(started[0].host) as proxy:
            proxy.before = library.remember
            build(f"{proxy.url}/{_NAME}")
        library.read_mappings()
        ours = partial(build, f"{nodes.address(started)}/{_NAME}")
        spent: dict[str, list[tuple[float, float]]] = {OURS: [], BULK: []}
        (pid,) = (node.pid for node in started)
        assert pid is not None
        sides = {
            OURS: _costed(ours, library, _NAME, pid, spent[OURS]),
            BULK: _costed(library.load, library, _BARE, pid, spent[BULK]),
        }
        say(f"loading: {len(library.actions):,} documents, {warm_up} + {rounds} rounds")
        timings = interleaved(sides, rounds, warm_up=warm_up)
        library.close()
    client, node = (
        Timings({name: tuple(of[place] for of in spent[name][-rounds:]) for name in spent})
        for place in (0, 1)
    )
    both = Timings({name: tuple(map(sum, spent[name][-rounds:])) for name in spent})
    rows = [
        Row.of_ratio("processor time of ours over parallel_bulk", both.ratio(OURS, BULK), TARGET),
        Row.of_ratio("processor time of the node", node.ratio(OURS, BULK)),
        Row.of_ratio("processor time of the client", client.ratio(OURS, BULK)),
        Row.of_ratio("time", timings.ratio(OURS, BULK)),
    ]
    for name in spent:
        rows.append(Row(f"{name}: client, processor time", client.median_s(name), "s"))
        rows.append(Row(f"{name}: node, processor time", node.median_s(name), "s"))
        done = library.work[_NAME if name == OURS else _BARE][-rounds:]
        for what in _WORK:
            median = statistics.median(of[what] for of in done)
            rows.append(Row(f"{name}: node, {what}, time of its threads", median, "s"))
    details = {"seconds": timings.seconds, "spent": spent, "documents": len(library.actions)}
    return Figure("loading", tuple(rows), details)


def _costed(
    work: Callable[[], object],
    library: _Library,
    name: str,
    node: int,
    spent: list[tuple[float, float]],
) -> Side:
    """Return a side that notes the processor time of this process and its workers, and of the
    node."""

    def run() -> float:
        library.delete(name)
        before, before_node = _own_time(), processor_time(node)
        seconds = timed(work)
        own = _own_time() - before
        library.settle(name)
        spent.append((own, processor_time(node) - before_node))
        return seconds

    return run


def _own_time() -> float:
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts ticks of 10 ms
    return time.process_time() + workers.ru_utime + workers.ru_stime


class _Library:
    """The documents of our index as actions of opensearch-py, which loads them beside it."""

    def __init__(self, url: str) -> None:
        from opensearchpy import OpenSearch

        self.actions: list[dict[str, Any]] = []
        self.work: dict[str, list[dict[str, float]]] = {}
        """The work of the node in each round by part, in seconds of its threads."""
        self._client = OpenSearch(url, timeout=BULK_TIMEOUT_S)
        self._bodies: dict[str, Any] = {}

    def remember(self, asked: str, body: bytes) -> None:
        """Keep what a bulk request of our build sends."""
        lines = body.splitlines() if asked == "POST /_bulk" else []
        for action, source in zip(*[map(orjson.loads, lines)] * 2, strict=True):
            (of,) = action.values()
            name = f"{_BARE}.sentences" if ".sentences" in of.pop("_index") else _BARE
            self.actions.append({"_op_type": "create", "_index": name, **of, "_source": source})

    def read_mappings(self) -> None:
        """Read the mappings and settings of our indexes."""
        for of in self._client.indices.get(index=f"{_NAME}*").values():
            (part,) = (alias for alias in of["aliases"])
            settings = {
                key: value
                for key, value in of["settings"]["index"].items()
                if key in _KEPT_SETTINGS
            }
            settings["refresh_interval"] = "-1"
            body = {"settings": settings, "mappings": of["mappings"]}
            self._bodies[part.replace(_NAME, _BARE, 1)] = body
        if not self.actions:
            raise BenchError("Our build loaded no document.")

    def load(self) -> None:
        """Create the indexes, send all actions, and refresh."""
        from opensearchpy.helpers import parallel_bulk

        for name, body in self._bodies.items():
            self._client.indices.create(index=name, body=body)
        sent = parallel_bulk(
            self._client, self.actions, thread_count=SENDERS, queue_size=SENDERS,
            chunk_size=len(self.actions), max_chunk_bytes=MAX_BULK_BYTES,
        )  # fmt: skip
        deque(sent, maxlen=0)  # it raises what fails
        self._client.indices.refresh(index=f"{_BARE}*")

    def delete(self, name: str) -> None:
        """Delete what was loaded."""
        if loaded := self._client.indices.get(index=f"{name}*"):
            self._client.indices.delete(index=",".join(loaded))

    def settle(self, name: str) -> None:
        """Wait until no segments are merged, and note what the node did. Raises BenchError if there
        are not as many documents as actions."""
        while True:
            stats = self._client.indices.stats(index=f"{name}*")["_all"]["primaries"]
            if not stats["merges"]["current"]:
                break
            time.sleep(0.2)
        if (count := stats["docs"]["count"]) != len(self.actions):
            where = f"{count:,} of {len(self.actions):,}"
            raise BenchError("Not all documents were loaded.", where=where)
        work = {what: stats[of][time_] / 1000 for what, (of, time_) in _WORK.items()}
        self.work.setdefault(name, []).append(work)

    def close(self) -> None:
        self._client.close()

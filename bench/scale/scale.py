"""Growth of build time, size, latency and changes with the corpus, on both engines.

    python -m bench scale
    python -m bench scale --sizes 10000,30000,100000 --engine opensearch
    python -m bench scale --engine opensearch --nodes 3 --sizes 3000000

A synthetic corpus of each size is built into an index by command. Then 1 and 4 clients search it
with queries of each class, which are drawn from passages all over it. After that, one document of a
hundred is deleted, as many are added, and the index is compacted. Each size is a figure in the file
of results, and is not measured again unless it is removed from there or --again is passed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import orjson

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.calls import Call, current_call
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.toolbox import Toolbox
from bench import nodes
from bench.arguments import BenchParser, names_from, positive, whole_from
from bench.processes import processor_time, run
from bench.report.rounds import percentile, played, timed
from bench.report.rows import Figure, Row, circumstances, show
from bench.scale import synthetic
from bench.scale.queries import CLASSES, drawn_queries
from bench.workbench import check_room, command_line, say, size_of, without_query_cache

EngineName = Literal["lucene", "opensearch"]
SIZES: Mapping[EngineName, Sequence[int]] = {
    "lucene": (10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000),
    "opensearch": (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000),
}
BYTES_A_PASSAGE = 4_500
"""The disk space for a passage, with the corpus file and a compaction, on either engine."""
QUERIES = 200
CLIENTS = (1, 4)
"""Threads of one process that search at the same time."""
REPLY_CLIENTS = (1, 16)
REPLIES = 700
"""The replies that are timed, of all classes alike."""
ROUNDS = 3
"""Each class is asked so many times. Its quietest round counts, which has the least median."""
SEARCHES_BEFORE = 6_000
"""The searches until Java has compiled the code of queries."""
CHANGED_SHARE = 100
"""One passage of so many is deleted, and as many new ones are added."""
SAMPLE = 2_000
SEEDS = (1607, 1714)
"""The seeds of the queries of the warm-up, and of the queries that count."""


def main(arguments: Sequence[str]) -> int:
    """Measure the sizes that are not measured yet, and return the exit code."""
    parser = BenchParser("scale", __doc__, resumes=True)
    add = parser.add_argument
    sizes = "; ".join(f"{engine} {','.join(map(str, sizes))}" for engine, sizes in SIZES.items())
    add("--sizes", type=_sizes, help=f"passages, each at least 100 (default: {sizes})")
    add("--engine", type=names_from(SIZES), default=tuple(SIZES), help="engines (default both)")
    parser.add_default("--queries", positive, QUERIES, "queries of each class")
    nodes_help = "nodes of OpenSearch, and shards of its index (default 1)"
    add("--nodes", type=int, choices=(1, 3), default=1, help=nodes_help)
    parser.add_default("--heap", str, "1g", "memory of each node")
    add("--again", action="store_true", help="measure again sizes that the file already has")
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _grown)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole_from(100)(piece) for piece in text.split(",")}))


def _grown(options: argparse.Namespace, command: str) -> int:
    known: set[str] = set()
    if options.json.exists() and not options.again:
        known |= set(orjson.loads(options.json.read_bytes())["figures"])
    for engine in options.engine:
        side = Side(engine, options.nodes if engine == "opensearch" else 1, options.heap)
        for size in options.sizes or SIZES[engine]:
            if (name := f"{side.name}, {size:,} passages") in known:
                say(f"{name}: measured already.")
                continue
            with tempfile.TemporaryDirectory(prefix="arag-scale-", dir=options.work) as folder:
                check_room(Path(folder), size * BYTES_A_PASSAGE * side.count)
                rows = tuple(measured(side, size, options.queries, Path(folder)))
            run = circumstances(command, seed=synthetic.SEED)
            details = {"queries": options.queries, "generator": synthetic.GENERATOR}
            show(options.json, [Figure(name, rows, details)], run)
    return 0


@dataclass(frozen=True, slots=True)
class Side:
    """An engine, and the ``count`` of nodes of our own, each with this ``heap``, that have its
    index."""

    engine: EngineName
    count: int = 1
    heap: str = nodes.HEAP

    @property
    def name(self) -> str:
        """The name in the results."""
        return self.engine if self.count == 1 else f"{self.engine}, {self.count} nodes"

    @contextmanager
    def place(self, folder: Path) -> Generator[tuple[str, list[int]]]:
        """Yield the location of an index, and the processes that serve it."""
        if self.engine == "lucene":
            yield str(folder / "index"), []
            return
        with nodes.running(folder / "nodes", self.count, heap=self.heap) as started:
            pids = [node.pid for node in started if node.pid is not None]
            yield f"{nodes.address(started)}/scale", pids


def measured(side: Side, passages: int, queries: int, folder: Path) -> Iterator[Row]:
    """Yield the figures of an index of so many passages, with ``queries`` of each class."""
    corpus, added = folder / "corpus.jsonl", folder / "added.jsonl"
    changed = range(0, passages, CHANGED_SHARE)
    say(f"{side.name}: writing {passages:,} passages")
    synthetic.write(passages, corpus)
    synthetic.write(len(changed), added, first=passages)
    with side.place(folder) as (location, pids):
        shards = ("--shards", str(side.count)) if side.count > 1 else ()
        index = ("index", "--to", location, "--format", "documents")
        steps = {
            "build": ((*index, corpus, *shards), ""),
            "search": ((), ""),
            "deletion": (("delete", location, "-"), "\n".join(map(str, changed))),
            "addition": (("add", *index[1:], added), ""),
            "compaction": (("compact", location), ""),
        }
        for step, (words, given) in steps.items():
            say(f"{side.name}: {passages:,} passages, {step}")
            if step == "search":
                yield from _searched(location, passages, queries)
                continue
            served = sum(map(processor_time, pids))
            cost = run((*command_line(), *words), given)
            served = sum(map(processor_time, pids)) - served
            yield Row(step, cost.seconds, "s")
            yield Row(f"{step}, processor time", cost.processor_s + served, "s")
            yield Row(f"{step}, memory of the command at most", cost.peak_bytes / 1e6, "MB")
            yield Row(f"{step}, index afterwards", _bytes_of(location) / passages, "bytes/passage")


def _bytes_of(location: str) -> int:
    """Return the bytes of an index in a folder, or of the primary shards of an index on a
    server."""
    url, _, name = location.rpartition("/")
    if not url.startswith("http"):
        return size_of(Path(location))
    first = url.split(",")[0]
    with urllib.request.urlopen(f"{first}/{name}*/_stats/store") as reply:
        return int(json.load(reply)["_all"]["primaries"]["store"]["size_in_bytes"])


def _searched(location: str, passages: int, queries: int) -> Iterator[Row]:
    sample = [passage.chunk() for passage in synthetic.sample(passages, SAMPLE)]
    warm_up, drawn = (drawn_queries(sample, queries, seed) for seed in SEEDS)
    with without_query_cache(), open_index(location, search_timeout_s=None) as index:
        yield Row("opening again", timed(lambda: open_index(location).close()), "s")
        for _ in range(-(-SEARCHES_BEFORE // (queries * len(CLASSES) * ROUNDS))):
            list(_latencies(index, warm_up, 1))
        for clients in CLIENTS:
            yield from _latencies(index, drawn, clients)
        yield from _replies(index, drawn)


def _latencies(index: Index, drawn: Mapping[str, Sequence[str]], clients: int) -> Iterator[Row]:
    for name, texts in drawn.items():
        search = partial(index.logical_search, top_k=5, granularity=CLASSES[name].granularity)
        ask = lambda number, search=search, texts=texts: search(texts[number])  # noqa: E731
        rounds = [played(ask, len(texts), clients).latencies for _ in range(ROUNDS)]
        quietest = min(rounds, key=statistics.median)
        of = f"{name}, {clients} at once" if clients > 1 else name
        yield Row(f"{of}: median", statistics.median(quietest) * 1000, "ms")
        yield Row(f"{of}: 95th percentile", percentile(quietest, 0.95) * 1000, "ms")


def _replies(index: Index, drawn: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yield what the reply of the tool logical_search takes, each the first of a conversation."""
    texts = [text for number in zip(*drawn.values(), strict=False) for text in number]
    preset, calls = load_preset(DEFAULT_PRESET), list[Call]()

    def ask(number: int) -> None:
        calls.append(call := Call(f"scale-{number}"))
        current_call.set(call)
        Toolbox(index, preset).call("logical_search", {"query": texts[number]})

    for clients in REPLY_CLIENTS:
        calls.clear()
        latencies = played(ask, min(len(texts), REPLIES), clients).latencies
        of = f"reply of the tool, {clients} at once" if clients > 1 else "reply of the tool"
        yield Row(f"{of}: median", statistics.median(latencies) * 1000, "ms")
        yield Row(f"{of}: 95th percentile", percentile(latencies, 0.95) * 1000, "ms")
        if trips := sum(call.round_trips for call in calls):
            yield Row(f"{of}: requests", trips / len(calls), "")

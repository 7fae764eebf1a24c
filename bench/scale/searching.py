"""Searches in an index of one size: opening, latency by class of query, replies, worst queries."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.engines.opensearch.address import is_address
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tools.logical_search import LogicalSearch
from bench import BenchError
from bench.report.memory import peak_anonymous
from bench.report.rounds import percentile, timed
from bench.scale import synthetic
from bench.scale.worst import LIMIT_S, Outcome, outcomes
from bench.speed.bare import without_query_cache
from bench.speed.queries import class_queries
from bench.workbench import say

CLIENTS = (1, 4)
"""Threads of one process that search at the same time."""
ROUNDS = 3
"""Each class is asked so many times; its quietest round, that of the least median, counts."""
TOP_K = 5
SAMPLE = 2_000
"""The number of passages from all over a corpus, from which queries are drawn."""
SEEDS = (1607, 1714)
"""The seeds of the queries of the warm-up, and of those that count."""
MIN_WARM_UP, MAX_WARM_UP = 3, 12
"""The rounds until Java has compiled the code of queries; on a server, this takes thousands of
queries. A large index gets fewer of them, since its loops are longer."""
WARM_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class QueryClass:
    """Queries of one shape; see ``bench.speed.queries``."""

    shape: str
    kind: str = "word"
    granularity: Granularity = "chunk"


CLASSES: Mapping[str, QueryClass] = {
    "term": QueryClass("{a}"),
    "AND": QueryClass("{a} AND {b}"),
    "OR": QueryClass("{a} OR {b} OR {c}"),
    "phrase": QueryClass("{a}", "phrase"),
    "NOT": QueryClass("{a} AND NOT {n}"),
    "prefix": QueryClass("{a}", "prefix"),
    "sentence": QueryClass("{a} AND {b}", granularity="sentence"),
}


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a class of queries, after others had warmed the engine.

    ``processor_ms`` and ``processor_p95_ms`` are of the processor time of the thread of a query, in
    which embedded Lucene searches; ``load`` is that of the machine.
    """

    queries: int
    without_hits: int
    median_ms: float
    p95_ms: float
    processor_ms: float
    processor_p95_ms: float
    queries_per_s: float
    load: float


@dataclass(frozen=True, slots=True)
class Searched:
    """The searches in an index.

    ``opening_s`` is the time of opening it in a new process, with the start of Java, and
    ``reopening_s`` that of opening it again. ``peak_bytes`` is the highest memory that no file
    backs. ``latency`` is by number of clients and class. ``replies`` is the time of a whole reply
    of logical_search over that of its search, by class.
    """

    sentences: int
    opening_s: float
    reopening_s: float
    peak_bytes: int
    latency: Mapping[int, Mapping[str, Latency]]
    replies: Mapping[str, float]
    worst: tuple[Outcome, ...]


def measured(location: str, passages: int, queries: int) -> Searched:
    """Measure searches in an index of so many synthetic passages, ``queries`` of each class."""
    embedded = not is_address(location)
    sample = [passage.chunk() for passage in synthetic.sample(passages, SAMPLE)]
    warm_up, drawn = (drawn_queries(sample, queries, seed) for seed in SEEDS)
    with ExitStack() as stack:
        peak = stack.enter_context(peak_anonymous())
        opening_s = timed(lambda: open_index(location).close())
        if embedded:
            stack.enter_context(without_query_cache())
        index = stack.enter_context(open_index(location, search_timeout_s=None))
        reopening_s = timed(lambda: open_index(location).close())
        _warm(index, warm_up)
        latency = {clients: _by_class(index, drawn, clients) for clients in CLIENTS}
        replies = {
            name: _reply_ratio(index, texts, CLASSES[name].granularity)
            for name, texts in drawn.items()
            if embedded
        }
        limited = stack.enter_context(open_index(location, search_timeout_s=LIMIT_S))
        worst = tuple(outcomes(limited))
        slowest = max(worst, key=lambda outcome: outcome.seconds)
        say(f"slowest: {slowest.name}, {slowest.seconds:.2f} s")
        return Searched(
            sentences=index.manifest.sentences,
            opening_s=opening_s,
            reopening_s=reopening_s,
            peak_bytes=peak(),
            latency=latency,
            replies=replies,
            worst=worst,
        )


def drawn_queries(sample: Sequence[Chunk], count: int, seed: int) -> dict[str, list[str]]:
    """Draw queries of each class; clauses of queries for sentences come from a single sentence."""
    queries_by_class: dict[str, list[str]] = {}
    for granularity, pieces in (("chunk", sample), ("sentence", _sentences(sample))):
        classes = {
            name: (query_class.shape, query_class.kind)
            for name, query_class in CLASSES.items()
            if query_class.granularity == granularity
        }
        queries_by_class |= class_queries(pieces, count, classes, seed)
    return queries_by_class


def _sentences(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the sentences of chunks, each as a chunk."""
    return [
        replace(chunk, content=sentence, sentence_ends=(len(sentence),))
        for chunk in chunks
        for sentence in chunk.sentences()
    ]


def _warm(index: Index, drawn: Mapping[str, Sequence[str]]) -> None:
    began = time.monotonic()
    for number in range(MAX_WARM_UP):
        if number >= MIN_WARM_UP and time.monotonic() - began > WARM_UP_S:
            return
        for name, texts in drawn.items():
            _latency(index, texts, CLASSES[name].granularity, 1)


def _by_class(index: Index, drawn: Mapping[str, Sequence[str]], clients: int) -> dict[str, Latency]:
    latency: dict[str, Latency] = {}
    for name, texts in drawn.items():
        rounds = [_latency(index, texts, CLASSES[name].granularity, clients) for _ in range(ROUNDS)]
        latency[name] = kept = min(rounds, key=lambda of: of.median_ms)
        say(
            f"{clients} at once, {name}: {kept.median_ms:.2f} ms, load {kept.load:.1f};"
            f" rounds {', '.join(f'{of.median_ms:.2f}' for of in rounds)}"
        )
    return latency


def _latency(
    index: Index, queries: Sequence[str], granularity: Granularity, clients: int
) -> Latency:
    def ask(query: str) -> tuple[float, float, bool]:
        began = time.thread_time()
        result = index.logical_search(query, top_k=TOP_K, granularity=granularity)
        return result.milliseconds, (time.thread_time() - began) * 1000, not result.hits

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(ask, queries))
    seconds = time.perf_counter() - began
    spent, processor, without = zip(*answers, strict=True)
    return Latency(
        queries=len(queries),
        without_hits=sum(without),
        median_ms=statistics.median(spent),
        p95_ms=percentile(list(spent), 0.95),
        processor_ms=statistics.median(processor),
        processor_p95_ms=percentile(list(processor), 0.95),
        queries_per_s=len(queries) / seconds,
        load=round(os.getloadavg()[0], 2),
    )


def _reply_ratio(index: Index, queries: Sequence[str], granularity: Granularity) -> float:
    """Return the median time of replies with the settings of logical_read over that of the searches
    in them, without snippets and feedback. Each query is asked in both ways, in turn. The time is
    that of the processor in this thread, which is where embedded Lucene searches."""
    tool = LogicalSearch(index, load_preset(DEFAULT_PRESET))
    shown = {"granularity": granularity} if granularity == "sentence" else {}

    def reply(query: str) -> None:
        result = tool.run({"query": query, "top_k": TOP_K, **shown})
        if result.status == "error":
            raise BenchError("A reply is an error.", where=query, do=result.text)

    def search(query: str) -> None:
        index.logical_search(
            query, top_k=TOP_K, granularity=granularity, snippets=False, feedback=False
        )

    spent: dict[Callable[[str], None], list[float]] = {reply: [], search: []}
    for at, query in enumerate(queries):
        for side in (reply, search) if at % 2 else (search, reply):
            began = time.thread_time()
            side(query)
            spent[side].append(time.thread_time() - began)
    return statistics.median(spent[reply]) / statistics.median(spent[search])

"""Logical search from query text against a bare loop that runs prebuilt Lucene queries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from arag_search.engines.lucene.compile import compiled
from arag_search.engines.lucene.jvm import java
from arag_search.query.tree import leaves
from arag_search.search.index import Index, open_index
from arag_search.search.results import SearchResult
from bench import BenchError
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.bare import BareSearcher, index_with_stored_names, without_query_cache
from bench.speed.queries import Query, logical_queries
from bench.workbench import Workbench, say

TARGET = Target("at least", 0.6)
QUERIES = 1000
TOP_K = 5
WARM_UP = 5
"""The number of rounds until Java has compiled the code in use."""

_TOLERANCE = 1e-6


def measure(
    bench: Workbench, rounds: int, *, count: int = QUERIES, warm_up: int = WARM_UP
) -> Figure:
    """Measure the throughput of both, with one thread and no cache, and compare their hits.

    Raises BenchError if they find different passages.
    """
    queries = logical_queries(bench.chunks, count)
    say(f"search: {len(queries):,} queries, {warm_up} + {rounds} rounds")
    with (
        bench.room() as room,
        without_query_cache(),
        open_index(bench.index, search_timeout_s=None) as index,
    ):
        index_with_stored_names(bench.chunks, room, index.manifest.language)
        bare = BareSearcher(room, index.manifest.k1, index.manifest.b)
        try:
            read = java("arag.Queries").read
            prebuilt = [read(compiled(index.parse(q.text).tree)[0]) for q in queries]
            results = [index.logical_search(q.text, top_k=TOP_K, snippets=False) for q in queries]
            tied = _compare(queries, results, prebuilt, bare)
            timings = interleaved(_sides(index, bare, queries, prebuilt), rounds, warm_up=warm_up)
        finally:
            bare.close()
    return _figure(timings, queries, results, tied)


def _sides(
    index: Index, bare: BareSearcher, queries: Sequence[Query], prebuilt: Sequence[Any]
) -> dict[str, Side]:
    texts = [query.text for query in queries]

    def ours(*, snippets: bool, feedback: bool) -> float:
        def run() -> None:
            for text in texts:
                index.logical_search(text, top_k=TOP_K, snippets=snippets, feedback=feedback)

        return timed(run)

    def theirs() -> None:
        for query in prebuilt:
            bare.search(query, TOP_K)

    return {
        "ours": lambda: ours(snippets=False, feedback=True),
        "bare": lambda: timed(theirs),
        "ours without feedback": lambda: ours(snippets=False, feedback=False),
        "ours with snippets": lambda: ours(snippets=True, feedback=True),
    }


def _compare(
    queries: Sequence[Query],
    results: Sequence[SearchResult],
    prebuilt: Sequence[Any],
    bare: BareSearcher,
) -> int:
    """Count the queries whose hits with equal scores are in another order; raise BenchError for
    other differences."""
    tied = 0
    for query, result, prebuilt_query in zip(queries, results, prebuilt, strict=True):
        ours = [(hit.id, hit.score) for hit in result.hits]
        theirs = bare.scored(prebuilt_query, TOP_K)
        if [name for name, _ in ours] == [name for name, _ in theirs]:
            continue
        if not _only_ties(ours, theirs):
            raise BenchError(
                "The bare loop finds other passages than ours.",
                where=f"{query.text}: {ours} | {theirs}",
            )
        tied += 1
    return tied


def _only_ties(ours: Sequence[tuple[str, float]], theirs: Sequence[tuple[str, float]]) -> bool:
    """Return whether two rankings have equal scores, and differ only in the choice among equals."""
    if len(ours) != len(theirs) or not ours:
        return False
    if not all(
        math.isclose(here, there, rel_tol=_TOLERANCE)
        for (_, here), (_, there) in zip(ours, theirs, strict=True)
    ):
        return False
    last = ours[-1][1]
    above = [
        {name for name, score in hits if not math.isclose(score, last, rel_tol=_TOLERANCE)}
        for hits in (ours, theirs)
    ]
    return above[0] == above[1]


def _figure(
    timings: Timings, queries: Sequence[Query], results: Sequence[SearchResult], tied: int
) -> Figure:
    without_hits = sum(not result.hits for result in results)
    rows = [
        Row.of_ratio("throughput of ours to the bare loop", timings.ratio("bare", "ours"), TARGET)
    ]
    for more in ("without feedback", "with snippets"):
        rows.append(Row.of_ratio(f"the same {more}", timings.ratio("bare", f"ours {more}")))
    for name in timings.seconds:
        rows.append(Row(name, timings.median_s(name) / len(queries) * 1000, "ms/query"))
    rows.append(Row("queries whose equal scores are in another order", tied, "queries"))
    counts = [sum(1 for _ in leaves(query.tree)) for query in queries]
    details = {
        "seconds": timings.seconds,
        "queries": len(queries),
        "queries_without_hits": without_hits,
        "mean_clauses": statistics.fmean(counts),
        "median_total": statistics.median(result.total for result in results),
        "examples": [query.text for query in queries[:20]],
    }
    return Figure("search", tuple(rows), details)

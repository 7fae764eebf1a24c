"""Throughput of our search on OpenSearch over that of bare opensearch-py.

    python -m bench opensearch_search
    python -m bench opensearch_search --rounds 3 --queries 200 --json

Our side begins with the text of a query and ends with hits and snippets. The bare loop has the
bodies of the requests ready and ends with the parsed JSON. One client and sixteen are measured, and
embedded Lucene runs the same queries. Every round runs every side, in alternating order.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from arag_search.engines.base import SearchRequest
from arag_search.engines.opensearch.compile import Dsl
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.query.tree import Node
from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.cluster.cluster import local_cluster
from bench.data import default_corpus
from bench.report.rounds import Ask, Latencies, Side, Timings, interleaved, percentile, threads
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.queries import SEED, Query, logical_queries
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

TARGET = Target("at least", 0.8)
CLIENTS = (1, 16)
QUERIES = 500
ROUNDS = 5
WARM_UP = 3
TOP_K = 5

_NAME = "arag-search-figure"


class Bare:
    """opensearch-py as its documentation shows it, with requests that are ready to be sent."""

    def __init__(self, url: str, index: str, bodies: Sequence[Dsl]) -> None:
        from opensearchpy import OpenSearch

        host = urlsplit(url)
        self._client = OpenSearch(
            hosts=[{"host": host.hostname, "port": host.port}], pool_maxsize=max(CLIENTS)
        )
        self._index = index
        self._bodies = bodies

    def ask(self, number: int) -> Any:
        """Send a request and return the answer."""
        return self._client.search(index=self._index, body=self._bodies[number])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def measure(
    indexes: tuple[Index, Index], url: str, queries: Sequence[Query], rounds: int, warm_up: int
) -> Figure:
    """Measure our throughput on OpenSearch over that of the bare loop; ``indexes`` are the embedded
    one and the one on the server at ``url``. Raises BenchError if the two sides find different
    passages."""
    embedded, served = indexes
    asked = requests_of(served, [query.tree for query in queries])
    latencies = Latencies()
    sides: dict[str, Side] = {}
    bares: list[Bare] = []
    for with_text in (False, True):
        suffix = ", snippets" if with_text else ""
        bare = Bare(url, asked[0], [bodies[with_text] for bodies in asked[1]])
        bares.append(bare)
        compare(served, bare, queries)
        for clients in CLIENTS:
            of = f"{clients} client{'s' if clients > 1 else ''}{suffix}"
            for who, ask in (
                ("ours", _asker(served, queries, with_text)),
                ("bare", bare.ask),
                ("embedded", _asker(embedded, queries, with_text)),
            ):
                name = f"{who}, {of}"
                sides[name] = latencies.side(name, threads(ask, len(queries)), clients)
    try:
        timings = interleaved(sides, rounds, warm_up=warm_up)
    finally:
        for bare in bares:
            bare.close()
    return _figure(timings, latencies, len(queries))


def _asker(index: Index, queries: Sequence[Query], with_text: bool) -> Ask:
    texts = [query.text for query in queries]
    return lambda number: index.logical_search(
        texts[number], top_k=TOP_K, snippets=with_text, feedback=False
    )


def requests_of(index: Index, trees: Sequence[Node]) -> tuple[str, list[tuple[Dsl, Dsl]]]:
    """Return the name of the index, and for each query the bodies that our engine sends without and
    with text."""
    engine = index.engine
    if not isinstance(engine, OpenSearchEngine):
        raise BenchError("The index is not on a server.", where=index.location)
    bodies = [
        (
            engine.request_body(SearchRequest(tree, TOP_K, with_text=False))[0],
            engine.request_body(SearchRequest(tree, TOP_K, with_text=True))[0],
        )
        for tree in trees
    ]
    return index.location.rpartition("/")[2], bodies


def compare(index: Index, bare: Bare, queries: Sequence[Query]) -> None:
    """Raise BenchError if the two find different passages or scores."""
    for number, query in enumerate(queries):
        hits = index.logical_search(query.text, top_k=TOP_K, snippets=False, feedback=False).hits
        ours = [(hit.id, hit.score) for hit in hits]
        bare_hits = bare.ask(number)["hits"]["hits"]
        theirs = [(str(hit["_source"]["id"]), float(hit["_score"] or 0.0)) for hit in bare_hits]
        same = [id for id, _ in ours] == [id for id, _ in theirs] and all(
            math.isclose(score, other, rel_tol=1e-6)
            for (_, score), (_, other) in zip(ours, theirs, strict=True)
        )
        if not same:
            raise BenchError(
                "The bare loop finds other passages than ours.",
                where=f"{query.text}: {ours} | {theirs}",
            )


def _figure(timings: Timings, latencies: Latencies, count: int) -> Figure:
    rows: list[Row] = []
    names = [name.partition(", ")[2] for name in timings.seconds if name.startswith("ours")]
    for of in names:
        ratio = timings.ratio(f"bare, {of}", f"ours, {of}")
        rows.append(Row.of_ratio(f"throughput of ours to the bare client, {of}", ratio, TARGET))
    for of in names:
        ratio = timings.ratio(f"ours, {of}", f"embedded, {of}")
        rows.append(Row.of_ratio(f"throughput of embedded Lucene to OpenSearch, {of}", ratio))
    for name in timings.seconds:
        spent = latencies.of(name, timings.rounds)
        rows += [
            Row(f"{name}: rate", count / timings.median_s(name), "queries/s"),
            Row(f"{name}: mean", 1000 * sum(spent) / len(spent), "ms"),
            Row(f"{name}: P95", 1000 * percentile(spent, 0.95), "ms"),
        ]
    return Figure("search", tuple(rows), {"seconds": timings.seconds, "queries": count})


# Command line


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed target is not a failure."""
    parser = BenchParser("opensearch_search", __doc__)
    parser.add_default("--corpus", Path, default_corpus(), "corpus to search")
    parser.add_default("--queries", positive, QUERIES, "queries per round")
    parser.add_rounds(ROUNDS)
    parser.add_printed_json("opensearch")
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with _indexes(options.corpus) as (indexes, url):
        run = circumstances(command, indexes[0].manifest, seed=SEED)
        queries = logical_queries(list(indexes[0].scan()), options.queries)
        say(f"{len(queries):,} queries, {WARM_UP} + {options.rounds} rounds")
        figure = measure(indexes, url, queries, options.rounds, WARM_UP)
    show(options.results, [figure], run, as_json=options.json)
    return 0


@contextmanager
def _indexes(corpus: Path) -> Generator[tuple[tuple[Index, Index], str]]:
    """Index a corpus with embedded Lucene and on one shard of one node whose request cache is
    off."""
    with (
        tempfile.TemporaryDirectory(prefix="arag-search-") as name,
        local_cluster(Path(name) / "cluster", 1) as cluster,
    ):
        location = f"{cluster.url}/{_NAME}"
        for place in (str(Path(name) / "index"), location):
            build_index([str(corpus)], place, BuildOptions())
        cluster.set(f"{_NAME}*", {"requests.cache.enable": False})
        with (
            open_index(Path(name) / "index", search_timeout_s=None) as embedded,
            open_index(location, search_timeout_s=None) as served,
        ):
            yield (embedded, served), cluster.url

"""OpenSearch and MemoryEngine must give the same answers to every request, on one shard and three.

The corpora, trees and limits are those of the comparison with Lucene (test_differential.py).
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import note
from hypothesis import strategies as st

from arag_search.engines.base import Granularity, KeywordRequest, Matching, SearchRequest
from arag_search.engines.memory import MemoryEngine
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.query.tree import Node, Scope
from tests.opensearch_server import Server
from tests.strategies import METADATA, corpus, document_chunks, queried_keywords, scopes, trees
from tests.test_differential import (
    EVERYTHING,
    EXAMPLES,
    GRANULARITIES,
    MATCHINGS,
    SCOPES,
    TREES,
    assert_equal,
    has_a_loose_repetition,
    in_any_order,
    tried,
)

pytestmark = pytest.mark.opensearch

SHARDS = (1, 3)
SIZES = (40, 6, 60)
"""Documents of the corpora; one of 1,010 follows, for totals beyond 1,000."""

Pair = tuple[MemoryEngine, OpenSearchEngine]
PAIRS = st.integers(0, (len(SIZES) + 1) * len(SHARDS) - 1)


@pytest.fixture(name="pairs", scope="module")
def every_pair(opensearch_url: str) -> Iterator[list[Pair]]:
    """Each corpus in memory and on the server, on one shard and on three."""
    random = Random(1678)
    server = Server(opensearch_url)
    pairs: list[Pair] = []
    corpora = [corpus(random, size) for size in SIZES]
    corpora.append(
        [
            chunk
            for number in range(1010)
            for chunk in document_chunks(number, "", [_long_corpus_text(number)], {"year": number})
        ]
    )
    try:
        for number, chunks in enumerate(corpora):
            k1, b = ((1.2, 0.75), (0.9, 0.4), (2.0, 1.0), (1.5, 0.0))[number]
            memory = MemoryEngine(
                chunks, metadata=METADATA, k1=k1, b=b, already_chunked=number == 1
            )
            for shards in SHARDS:
                name = f"parity-{number}-{shards}"
                pairs.append((memory, server.publish(name, chunks, memory.manifest, shards)))
        yield pairs
    finally:
        for _, engine in pairs:
            engine.close()
        server.clean()


def _long_corpus_text(number: int) -> list[str]:
    return ["opera " * (1 + number % 5), "born in " * (1 + number % 3) + "venice" * (number % 2)]


def test_opensearch_gives_the_pages_that_memory_gives(pairs: list[Pair]) -> None:
    with_hits: list[bool] = []

    @tried(
        EXAMPLES,
        PAIRS,
        TREES,
        SCOPES,
        GRANULARITIES,
        st.sampled_from((0, 0, 0, 1, 5, 40, 995)),
        st.sampled_from((1, 5, 5, 20, 1000)),
    )
    def check(
        number: int,
        query: Node,
        scope: Scope | None,
        granularity: Granularity,
        offset: int,
        top_k: int,
    ) -> None:
        memory, engine = pairs[number]
        note(f"{query} within {scope}")
        request = SearchRequest(query, top_k, offset, granularity, scope, with_text=top_k == 5)
        if has_a_loose_repetition(query):
            request = replace(request, offset=0, top_k=EVERYTHING)
            expected = memory.search(request)
            assert in_any_order(engine.search(request)) == in_any_order(expected)
        else:
            expected = memory.search(request)
            assert_equal(engine.search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)
    assert len(with_hits) >= EXAMPLES


def test_opensearch_counts_keywords_as_memory_does(pairs: list[Pair]) -> None:
    with_hits: list[bool] = []

    @tried(
        EXAMPLES // 5,
        PAIRS,
        queried_keywords(),
        SCOPES,
        MATCHINGS,
        st.sampled_from((0, 0, 1, 40)),
        st.sampled_from((1, 5, 1000)),
    )
    def check(
        number: int,
        keywords: tuple[str, ...],
        scope: Scope | None,
        matching: Matching,
        offset: int,
        top_k: int,
    ) -> None:
        memory, engine = pairs[number]
        request = KeywordRequest(keywords, top_k, offset, matching, scope, top_k == 5)
        note(f"{keywords} within {scope}")
        expected = memory.keyword_search(request)
        assert_equal(engine.keyword_search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)


def test_opensearch_counts_matches_as_memory_does(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 10, PAIRS, st.lists(st.tuples(trees(), GRANULARITIES), max_size=5), SCOPES)
    def check(number: int, queries: list[tuple[Node, Granularity]], scope: Scope | None) -> None:
        memory, engine = pairs[number]
        assert engine.counts(queries, scope) == memory.counts(queries, scope)


def test_explanations_of_opensearch_are_those_of_memory(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 8, PAIRS, trees(), GRANULARITIES)
    def check(number: int, query: Node, granularity: Granularity) -> None:
        memory, engine = pairs[number]
        note(str(query))
        request = SearchRequest(query, granularity=granularity, with_text=False)
        if has_a_loose_repetition(query):
            return
        ids = [hit.id for hit in memory.search(request).hits]
        expected, found = memory.explain(request, ids), engine.explain(request, ids)
        for ours, theirs in zip(expected, found, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert (other.leaf, other.scores) == (one.leaf, pytest.approx(one.scores, rel=1e-4))


def test_opensearch_reads_scans_and_knows_neighbours_as_memory_does(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 15, PAIRS, st.none() | scopes(), st.randoms(use_true_random=False))
    def check(number: int, scope: Scope | None, random: Random) -> None:
        memory, engine = pairs[number]
        chunks = list(memory.scan(None))
        some = random.sample(chunks, min(3, len(chunks)))
        ids = ["nowhere", "\udc00", *(chunk.id for chunk in some)]
        assert engine.read(ids, scope) == memory.read(ids, scope)
        for chunk in some:
            assert engine.neighbours(chunk, scope) == memory.neighbours(chunk, scope)
        assert list(engine.scan(scope)) == list(memory.scan(scope))

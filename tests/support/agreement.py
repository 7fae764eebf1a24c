"""What two engines that hold the same corpora must agree on, tried on drawn requests.

How many requests are tried: 300, in CI 2,000, always the same ones; or as many as
ARAG_TEST_EXAMPLES says, drawn anew each time.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from arag_search.engines.base import (
    MAX_TOTAL,
    Granularity,
    Hit,
    KeywordRequest,
    Matching,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.query.fields import DOC_ID
from arag_search.query.tree import KeywordEquals, Node, Phrase, Scope, leaves
from tests.support.strategies import (
    METADATA,
    corpus,
    document_chunks,
    queried_keywords,
    scopes,
    trees,
)

ASKED_FOR = os.environ.get("ARAG_TEST_EXAMPLES")
EXAMPLES = int(ASKED_FOR or (2000 if os.environ.get("CI") else 300))
TOLERANCE = 1e-4
"""How far scores of two engines may differ, as a share of them."""

Pair = tuple[SearchEngine, SearchEngine]
"""The engine that is right, and the one that is tried."""

_EVERYTHING = 10_000
_GRANULARITIES: st.SearchStrategy[Granularity] = st.sampled_from(("chunk", "chunk", "sentence"))
_MATCHINGS: st.SearchStrategy[Matching] = st.sampled_from(("token", "token", "substring"))
_TREES = st.one_of(trees(), trees(), trees(), trees(awkward=True))
_SCOPES = st.none() | scopes()


def corpora_in_memory(sizes: Sequence[int]) -> list[MemoryEngine]:
    """Corpora of so many documents, and one of 1,010 for totals beyond 1,000, each with its own
    parameters of BM25."""
    random = Random(1678)
    engines: list[MemoryEngine] = []
    for number, chunks in enumerate([*(corpus(random, size) for size in sizes), _long_corpus()]):
        k1, b = ((1.2, 0.75), (0.9, 0.4), (2.0, 1.0), (1.5, 0.0))[number % 4]
        already_chunked = number % 3 == 1
        engines.append(
            MemoryEngine(chunks, metadata=METADATA, k1=k1, b=b, already_chunked=already_chunked)
        )
    return engines


def _long_corpus() -> list[Any]:
    chunks: list[Any] = []
    for n in range(1010):
        text = ["opera " * (1 + n % 5), "born in " * (1 + n % 3) + "venice" * (n % 2)]
        chunks += document_chunks(n, "", [text], {"year": n})
    return chunks


def run_on_examples(examples: int, *strategies: st.SearchStrategy[Any]) -> Callable[..., Any]:
    """Run what is decorated, at once, on that many draws."""

    def run(check: Callable[..., None]) -> None:
        limits = settings(
            max_examples=examples,
            database=None,
            derandomize=not ASKED_FOR,
            suppress_health_check=[HealthCheck.too_slow],
        )
        limits(given(*strategies)(check))()

    return run


# What is agreed on


def agree_on_pages(pairs: Sequence[Pair], examples: int = EXAMPLES) -> None:
    """The same hits in the same order, their scores to 1e-4, the same texts and totals."""
    with_hits: list[bool] = []

    @run_on_examples(
        examples,
        st.sampled_from(pairs),
        _TREES,
        _SCOPES,
        _GRANULARITIES,
        st.sampled_from((0, 0, 0, 1, 5, 40, 995)),
        st.sampled_from((1, 5, 5, 20, 1000)),
        st.booleans(),
    )
    def check(
        pair: Pair,
        query: Node,
        scope: Scope | None,
        granularity: Granularity,
        offset: int,
        top_k: int,
        whole_text: bool,
    ) -> None:
        right, tested = pair
        note(f"{query} within {scope}")
        request = SearchRequest(
            query, top_k, offset, granularity, scope, with_text=top_k == 5, whole_text=whole_text
        )
        if has_a_loose_repetition(query):
            request = replace(request, offset=0, top_k=_EVERYTHING)
            expected = right.search(request)
            assert _in_any_order(tested.search(request)) == _in_any_order(expected)
        else:
            expected = right.search(request)
            assert_equal(tested.search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)
    assert len(with_hits) >= examples


def agree_on_keywords(pairs: Sequence[Pair]) -> None:
    """The same pages of keyword searches, their scores included."""
    with_hits: list[bool] = []

    @run_on_examples(
        EXAMPLES // 5,
        st.sampled_from(pairs),
        queried_keywords(),
        _SCOPES,
        _MATCHINGS,
        st.sampled_from((0, 0, 1, 40)),
        st.sampled_from((1, 5, 1000)),
    )
    def check(
        pair: Pair,
        keywords: tuple[str, ...],
        scope: Scope | None,
        matching: Matching,
        offset: int,
        top_k: int,
    ) -> None:
        right, tested = pair
        request = KeywordRequest(keywords, top_k, offset, matching, scope, top_k == 5)
        note(f"{keywords} within {scope}")
        expected = right.keyword_search(request)
        assert_equal(tested.keyword_search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)


def agree_on_counts(pairs: Sequence[Pair]) -> None:
    """The same number of matches of each of several queries."""
    queries = st.lists(st.tuples(trees(), _GRANULARITIES), max_size=5)

    @run_on_examples(EXAMPLES // 10, st.sampled_from(pairs), queries, _SCOPES)
    def check(pair: Pair, queries: list[tuple[Node, Granularity]], scope: Scope | None) -> None:
        right, tested = pair
        assert tested.counts(queries, scope) == right.counts(queries, scope)


def agree_on_explanations(pairs: Sequence[Pair]) -> None:
    """The same scores of each leaf in each field."""

    @run_on_examples(EXAMPLES // 8, st.sampled_from(pairs), trees(), _GRANULARITIES)
    def check(pair: Pair, query: Node, granularity: Granularity) -> None:
        right, tested = pair
        note(str(query))
        if has_a_loose_repetition(query):
            return
        request = SearchRequest(query, granularity=granularity, with_text=False)
        ids = [hit.id for hit in right.search(request).hits]
        expected, found = right.explain(request, ids), tested.explain(request, ids)
        for ours, theirs in zip(expected, found, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                scores = pytest.approx(one.scores, rel=TOLERANCE)
                assert (other.leaf, other.scores) == (one.leaf, scores)


def agree_on_reading(pairs: Sequence[Pair], *unknown: str) -> None:
    """The same chunks by id, neighbours, and scans; ``unknown`` are ids that no index holds."""

    @run_on_examples(
        EXAMPLES // 15, st.sampled_from(pairs), _SCOPES, st.randoms(use_true_random=False)
    )
    def check(pair: Pair, scope: Scope | None, random: Random) -> None:
        right, tested = pair
        chunks = list(right.scan(None))
        some = random.sample(chunks, min(3, len(chunks)))
        ids = ["nowhere", *unknown, *(chunk.id for chunk in some)]
        assert tested.read(ids, scope) == right.read(ids, scope)
        for chunk in some:
            assert tested.neighbours(chunk, scope) == right.neighbours(chunk, scope)
        assert list(tested.scan(scope)) == list(right.scan(scope))


def agree_on_ordinals(pairs: Sequence[Pair]) -> None:
    """The same chunks by ordinal, in and out of scopes, in any order; the same ordinals."""
    random = Random(1741)
    for right, tested in pairs:
        here = list(right.ordinals())
        assert list(tested.ordinals()) == here == sorted(set(here))
        some = [here[0], *random.choices(here, k=10), 0, here[0] + 1, here[-1] + (1 << 40)]
        random.shuffle(some)
        found = tested.chunks_at(some, None)
        assert found == right.chunks_at(some, None)
        assert [chunk and chunk.ordinal for chunk in found] == [
            ordinal if ordinal in here else None for ordinal in some
        ]
        for chunk in filter(None, found[:3]):
            scope = Scope((), (KeywordEquals(DOC_ID, chunk.doc_id),))
            within = tested.chunks_at(some, scope)
            assert within == right.chunks_at(some, scope)
            assert chunk not in within
        assert tested.chunks_at([], None) == []


# How it is compared


def has_a_loose_repetition(query: Node) -> bool:
    """Whether a phrase with slop holds a word twice, which the engines score differently."""
    return any(
        isinstance(leaf, Phrase) and leaf.slop and len(set(spelling)) < len(spelling)
        for leaf in leaves(query)
        for spelling in (leaf.spellings if isinstance(leaf, Phrase) else ())
    )


def assert_equal(page: Page, expected: Page) -> None:
    """The same hits in the same order, their scores to 1e-4, and the same totals."""
    assert list(map(_unscored, page.hits)) == list(map(_unscored, expected.hits))
    scores = [pytest.approx(hit.score, rel=TOLERANCE) for hit in expected.hits]
    assert [hit.score for hit in page.hits] == scores
    assert _totals(page) == _totals(expected)


def _in_any_order(page: Page) -> tuple[dict[str, Hit], tuple[int, bool, int | None]]:
    return {hit.id: _unscored(hit) for hit in page.hits}, _totals(page)


def _unscored(hit: Hit) -> Hit:
    return hit._replace(score=0.0)


def _totals(page: Page) -> tuple[int, bool, int | None]:
    assert page.total_is_exact or page.count > MAX_TOTAL
    return page.total, page.total_is_exact, page.passages

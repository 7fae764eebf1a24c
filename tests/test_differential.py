"""Lucene and MemoryEngine, which share no code, must give the same answers to every request.

How many requests are tried: 300, in CI 2,000, always the same ones; or as many as
ARAG_TEST_EXAMPLES says, drawn anew each time.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from arag_search.corpus import Chunk
from arag_search.engines.base import (
    MAX_TOTAL,
    Granularity,
    Hit,
    KeywordRequest,
    Matching,
    Page,
    SearchRequest,
)
from arag_search.engines.deletions import check_compact
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.memory import MemoryEngine
from arag_search.query.tree import Node, Phrase, Scope, TextLeaf, leaves, positive_leaves
from tests.strategies import METADATA, corpus, document_chunks, queried_keywords, scopes, trees

pytestmark = pytest.mark.engine

ASKED_FOR = os.environ.get("ARAG_TEST_EXAMPLES")
EXAMPLES = int(ASKED_FOR or (2000 if os.environ.get("CI") else 300))
CORPORA = 20 if EXAMPLES > 300 else 3
EVERYTHING = 10_000

Pair = tuple[MemoryEngine, LuceneEngine]
GRANULARITIES: st.SearchStrategy[Granularity] = st.sampled_from(("chunk", "chunk", "sentence"))
MATCHINGS: st.SearchStrategy[Matching] = st.sampled_from(("token", "token", "substring"))
PAIRS = st.integers(0, CORPORA)
TREES = st.one_of(trees(), trees(), trees(), trees(awkward=True))
SCOPES = st.none() | scopes()


@pytest.fixture(name="pairs", scope="module")
def every_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Pair]]:
    """Each corpus in both engines; the last is long enough for totals beyond 1,000."""
    random = Random(1678)
    pairs: list[Pair] = []
    for number in range(CORPORA):
        chunks = corpus(random, (40, 6, 60, 1, 20)[number % 5])
        k1, b = ((1.2, 0.75), (0.9, 0.4), (2.0, 1.0), (1.5, 0.0))[number % 4]
        memory = MemoryEngine(
            chunks, metadata=METADATA, k1=k1, b=b, already_chunked=random.random() < 0.3
        )
        folder = tmp_path_factory.mktemp("index")
        pairs.append((memory, in_lucene(folder, memory, chunks, 1 + (number + 2) % 4)))
    chunks = [
        chunk
        for number in range(1010)
        for chunk in document_chunks(number, "", [_long_corpus_text(number)], {"year": number})
    ]
    memory = MemoryEngine(chunks, metadata=METADATA)
    pairs.append((memory, in_lucene(tmp_path_factory.mktemp("index"), memory, chunks, 3)))
    yield pairs
    for memory, lucene in pairs:
        memory.close()
        lucene.close()


def _long_corpus_text(number: int) -> list[str]:
    return ["opera " * (1 + number % 5), "born in " * (1 + number % 3) + "venice" * (number % 2)]


def in_lucene(
    folder: Path, memory: MemoryEngine, chunks: list[Chunk], segments: int
) -> LuceneEngine:
    """The corpus of a MemoryEngine as a generation of several segments, opened."""
    writer = LuceneWriter(folder, metadata=METADATA, sentences=True, resume=False)
    size = len(chunks) // segments + 1
    for start in range(0, len(chunks), size):
        if start:
            writer.commit({"update": "1"})  # which begins another segment
        writer.add(chunks[start : start + size])
    manifest = replace(memory.manifest, engine="lucene")
    writer.finish({"manifest": manifest.to_json(), "update": "1"})
    engine = LuceneEngine.open(folder, str(folder))
    check_compact(engine.deletions(), str(folder))
    return engine


def tried(examples: int, *strategies: st.SearchStrategy[Any]) -> Callable[..., Any]:
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


def test_lucene_gives_the_pages_that_memory_gives(pairs: list[Pair]) -> None:
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
        memory, lucene = pairs[number]
        note(f"{query} within {scope}")
        request = SearchRequest(query, top_k, offset, granularity, scope, with_text=top_k == 5)
        if has_a_loose_repetition(query):
            request = replace(request, offset=0, top_k=EVERYTHING)
            expected = memory.search(request)
            assert in_any_order(lucene.search(request)) == in_any_order(expected)
        else:
            expected = memory.search(request)
            assert_equal(lucene.search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)
    assert len(with_hits) >= EXAMPLES


def test_lucene_counts_keywords_as_memory_does(pairs: list[Pair]) -> None:
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
        memory, lucene = pairs[number]
        request = KeywordRequest(keywords, top_k, offset, matching, scope, top_k == 5)
        note(f"{keywords} within {scope}")
        expected = memory.keyword_search(request)
        assert_equal(lucene.keyword_search(request), expected)
        with_hits.append(expected.total > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)


def test_lucene_counts_matches_as_memory_does(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 10, PAIRS, st.lists(st.tuples(trees(), GRANULARITIES), max_size=5), SCOPES)
    def check(number: int, queries: list[tuple[Node, Granularity]], scope: Scope | None) -> None:
        memory, lucene = pairs[number]
        assert lucene.counts(queries, scope) == memory.counts(queries, scope)


def test_explanations_agree_and_sum_up_to_the_scores(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 8, PAIRS, trees(), GRANULARITIES)
    def check(number: int, query: Node, granularity: Granularity) -> None:
        memory, lucene = pairs[number]
        note(str(query))
        request = SearchRequest(query, granularity=granularity, with_text=False)
        hits = memory.search(request).hits
        ids = [hit.id for hit in hits]
        expected = memory.explain(request, ids)
        texts = [str(leaf) for leaf in positive_leaves(query) if isinstance(leaf, TextLeaf)]
        for hit, scores in zip(hits, expected, strict=True):
            assert [score.leaf for score in scores] == texts
            parts = sum(max(score.scores.values(), default=0.0) for score in scores)
            assert parts == pytest.approx(hit.score, rel=1e-5)
        if not has_a_loose_repetition(query):
            for ours, theirs in zip(expected, lucene.explain(request, ids), strict=True):
                for one, other in zip(ours, theirs, strict=True):
                    assert (other.leaf, other.scores) == (one.leaf, pytest.approx(one.scores))


def test_lucene_reads_scans_and_knows_neighbours_as_memory_does(pairs: list[Pair]) -> None:
    @tried(EXAMPLES // 15, PAIRS, SCOPES, st.randoms(use_true_random=False))
    def check(number: int, scope: Scope | None, random: Random) -> None:
        memory, lucene = pairs[number]
        chunks = list(memory.scan(None))
        some = random.sample(chunks, min(3, len(chunks)))
        ids = ["nowhere", *(chunk.id for chunk in some)]
        assert lucene.read(ids, scope) == memory.read(ids, scope)
        for chunk in some:
            assert lucene.neighbours(chunk, scope) == memory.neighbours(chunk, scope)
        if len(chunks) < 200:
            assert list(lucene.scan(scope)) == list(memory.scan(scope))


def has_a_loose_repetition(query: Node) -> bool:
    """Whether a phrase with slop holds a word twice, which the engines score differently."""
    return any(
        isinstance(leaf, Phrase) and leaf.slop and len(set(spelling)) < len(spelling)
        for leaf in leaves(query)
        for spelling in (leaf.spellings if isinstance(leaf, Phrase) else ())
    )


def assert_equal(lucene: Page, memory: Page) -> None:
    """The same hits in the same order, their scores to 1e-4, and the same totals."""
    assert [unscored(hit) for hit in lucene.hits] == [unscored(hit) for hit in memory.hits]
    expected = [pytest.approx(hit.score, rel=1e-4) for hit in memory.hits]
    assert [hit.score for hit in lucene.hits] == expected
    assert totals(lucene) == totals(memory)


def in_any_order(page: Page) -> tuple[dict[str, Hit], tuple[int, bool, int | None]]:
    return {hit.id: unscored(hit) for hit in page.hits}, totals(page)


def unscored(hit: Hit) -> Hit:
    return replace(hit, score=0.0)


def totals(page: Page) -> tuple[int, bool, int | None]:
    assert page.total_is_exact or page.count > MAX_TOTAL
    return page.total, page.total_is_exact, page.passages

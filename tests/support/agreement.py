"""Checks that two engines with the same corpora agree on drawn requests.

Pages are compared for 200 requests, and most other answers for half as many; these are always the
same. In a long run there are ten times as many, drawn anew for each seed.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    MAX_TOTAL,
    FieldsRequest,
    Granularity,
    KeywordRequest,
    Matching,
    Page,
    SearchEngine,
    SearchRequest,
    SortBy,
)
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, ResolvedPlan
from arag_search.query.analysis import is_prefix
from arag_search.query.fields import DOC_ID, TEXT_FIELDS
from arag_search.query.filters import parse_filter
from arag_search.query.names import names_of
from arag_search.query.operators import NOT
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import (
    And,
    KeywordEquals,
    Modifier,
    Node,
    Phrase,
    Regex,
    all_of,
    condition_of,
    leaves,
    scores,
    weighted,
)
from arag_search.search.advice.judging import Judge
from arag_search.search.advice.parts import Parts
from arag_search.search.advice.relaxing import (
    MAX_NEAREST,
    nearest_hits,
    relaxed_queries,
    relaxed_requests,
)
from arag_search.search.counting.reply_forms import REPLY_FORMS, by_document, listed
from arag_search.search.finding.resolve import resolve_lookups
from arag_search.search.index import Index
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.examples import FULL, examples, is_long
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.plan import positive
from tests.support.oracle.vectors import MemoryVectors
from tests.support.plans import planned, scoped
from tests.support.strategies import (
    METADATA,
    SCHEMA,
    WORDS,
    Scope,
    corpus,
    document_chunks,
    queried_keywords,
    scopes,
    trees,
)

EXAMPLES = examples(FULL, share=20)
TOLERANCE = 1e-4
"""The largest relative difference between the scores of two engines."""

Pair = tuple[SearchEngine, SearchEngine]
"""The reference engine, and the engine under test."""

_EVERYTHING = 10_000
_GRANULARITIES: st.SearchStrategy[Granularity] = st.sampled_from(("chunk", "chunk", "sentence"))
_MATCHINGS: st.SearchStrategy[Matching] = st.sampled_from(("token", "token", "substring"))
_TREES = st.one_of(trees(), trees(), trees(), trees(awkward=True))
_SCOPES = st.none() | scopes()
_SORTS = st.none() | st.builds(SortBy, st.sampled_from((DOC_ID, *METADATA)), st.booleans())


def corpora_in_memory(sizes: Sequence[int]) -> list[MemoryEngine]:
    """Build corpora of these sizes, and a corpus of 1,010 documents for totals beyond 1,000, each
    with its own parameters of BM25."""
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
    """Build 612 documents, two of which have many chunks."""
    chunks: list[Any] = []
    n = 0
    for document in range(612):
        parts = {3: 301, 40: 99}.get(document, 1)
        texts = [
            ["opera " * (1 + n % 5), "born in " * (1 + n % 3) + "venice" * (n % 2)]
            for n in range(n, n + parts)
        ]
        chunks += document_chunks(document, "", texts, {"year": document % 97})
        n += parts
    return chunks


def run_on_examples(examples: int, *strategies: st.SearchStrategy[Any]) -> Callable[..., Any]:
    """Run the decorated check at once, on that many draws."""

    def run(check: Callable[..., None]) -> None:
        limits = settings(
            max_examples=examples,
            database=None,
            derandomize=not is_long(),
            suppress_health_check=[HealthCheck.too_slow],
        )
        limits(given(*strategies)(check))()

    return run


def verified(request: SearchRequest, engine: SearchEngine) -> SearchRequest:
    """Return a request with the matches of its patterns, as an Index gives it to its engine."""
    query = resolve_lookups(request.query.root, engine, request.granularity, request.scope)
    return replace(request, query=query)


# The checks


def agree_on_pages(pairs: Sequence[Pair], examples: int = 2 * EXAMPLES) -> None:
    """Check for the same hits in the same order, scores to 1e-4, and the same texts and totals."""
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
            planned(query),
            top_k,
            offset,
            granularity,
            scoped(scope),
            with_text=top_k == 5,
            whole_text=whole_text,
        )
        if has_a_loose_repetition(query):
            request = replace(request, offset=0, top_k=_EVERYTHING)
            expected = right.search(request)
            got = tested.search(verified(request, tested))
            assert _in_any_order(got) == _in_any_order(expected)
        else:
            expected = right.search(request)
            assert_equal(tested.search(verified(request, tested)), expected)
        with_hits.append(expected.total.number > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)
    assert len(with_hits) >= examples


def agree_on_weights_of_groups(pairs: Sequence[Pair]) -> None:
    """Check that the weights around a word count in the searches for the passages nearest to a
    query, and for the best one of each alternative."""
    for first, second in ((0.02, 100), (100, 0.02)):
        unmet = f"((venice^2 AND zzzz DEMOTE born)^{first} OR (opera AND yyyy)^{second})^0.5"
        either = f'(("opera born" OR title:venice^2)^{second} AND in NOT libretto)^{first}'
        (nearest,) = relaxed_queries(_root(unmet))
        wanted = f"(venice^2 DEMOTE born)^{first} OR opera^{second}"
        searches = [(nearest, f"({wanted})^0.5")]
        narrowed = Parts(_root(either), operators=True).inner
        for (_, search), part in zip(narrowed, ('"opera born"', "title:venice^2"), strict=True):
            searches.append((search, f"(({part} OR yyyy)^{second} AND in NOT libretto)^{first}"))
        alternatives = Parts(_root(f'("opera born"^2 OR title:venice)^{first}'), operators=True)
        for part, search in alternatives.searches():
            searches.append((search, f"({part} OR yyyy)^{first}"))
        for (right, tested), (search, expected) in itertools.product(pairs, searches):
            page = right.search(SearchRequest(planned(parse(expected).tree), 50))
            assert_equal(tested.search(SearchRequest(ResolvedPlan(search), 50)), page)


def _root(query: str) -> Clause:
    return planned(parse(query).tree).root


def agree_on_relaxing(pairs: Sequence[Pair], examples: int = EXAMPLES) -> None:
    """Check the passages nearest to a query that matches nothing against counts of the conditions
    that each passage meets, and scores that are the sums of theirs in the reference engine."""
    with_nearest: list[bool] = []

    @run_on_examples(
        examples,
        st.sampled_from(pairs),
        st.lists(trees(max_leaves=3), min_size=2, max_size=4),
        st.lists(trees(max_leaves=2), max_size=1),
        _SCOPES,
        st.sampled_from((1.0, 1.0, 0.3, 2.5)),
    )
    def check(
        pair: Pair, clauses: list[Node], excluded: list[Node], scope: Scope | None, weight: float
    ) -> None:
        right, tested = pair
        assume(
            not any(
                isinstance(leaf, Regex) for node in [*clauses, *excluded] for leaf in leaves(node)
            )
        )  # which are missed first
        plain = [node for node in map(condition_of, excluded) if getattr(node, "weight", 1) == 1]
        query = all_of(*map(condition_of, clauses), *(Modifier(NOT, node) for node in plain))
        query = weighted(query, weight if scores(query) else 1.0)
        assert isinstance(query, And)
        if has_a_loose_repetition(query):
            return
        note(f"{query} within {scope}")
        within = scoped(scope)
        root = planned(query).root
        steps = relaxed_queries(root)
        requests = relaxed_requests(SearchRequest(planned(query), scope=within), steps)
        conditions = [str(clause) for clause in positive(query)]
        if right.search(SearchRequest(planned(query), scope=within)).total.number:
            return
        if len(requests) < len(conditions) - 1:  # too many clauses
            return
        _, pages = tested.counts_and_pages((), requests, within)
        first = next((at for at, page in enumerate(pages) if page.hits), None)
        nearest = (
            () if first is None else nearest_hits(root, steps[first], pages[first], Judge(METADATA))
        )
        met: dict[str, list[str]] = {}
        sums: dict[str, float] = {}
        ordinals: dict[str, int] = {}
        without: set[str] = set()
        for clause in query.children:
            asked = clause.child if isinstance(clause, Modifier) else clause
            for hit in right.search(SearchRequest(planned(asked), _EVERYTHING, scope=within)).hits:
                if isinstance(clause, Modifier):
                    without.add(hit.id)
                else:
                    met.setdefault(hit.id, []).append(str(clause))
                    sums[hit.id] = sums.get(hit.id, 0.0) + hit.score * weight
                    ordinals[hit.id] = hit.ordinal
        met = {id: clauses for id, clauses in met.items() if id not in without}
        with_nearest.append(bool(met))
        if not met:
            assert nearest == ()
            return
        most = max(map(len, met.values()))
        best = [id for id, clauses in met.items() if len(clauses) == most]
        best.sort(key=lambda id: (-sums[id], ordinals[id]))
        lacks = {id: frozenset(conditions).difference(met[id]) for id in best[:MAX_NEAREST]}
        firsts = {lack: id for id, lack in reversed(lacks.items())}
        kept = [id for id in lacks if lacks[id] == lacks[best[0]] or firsts[lacks[id]] == id]
        for near, id in zip(nearest, kept, strict=True):
            assert near.score == pytest.approx(sums[id], rel=TOLERANCE)
            assert sums[near.id] == pytest.approx(sums[id], rel=TOLERANCE)
            assert set(near.lacks) == set(conditions).difference(met[near.id])
            assert len(met[near.id]) == most

    assert sum(with_nearest) >= 0.05 * examples


def agree_on_names(pairs: Sequence[Pair], examples: int = EXAMPLES) -> None:
    """Check for the same documents with names, and the same counts of their texts, in any scope."""
    several: list[bool] = []
    names = {
        number: sorted({name for c in right.scan(None) for name in names_of(c.title, c.doc_id)})
        for number, (right, _) in enumerate(pairs)
    }

    @run_on_examples(
        examples, st.sampled_from(range(len(pairs))), _SCOPES, st.integers(0, 1 << 32).map(Random)
    )
    def check(number: int, scope: Scope | None, random: Random) -> None:
        known = names[number]
        chosen = [*random.sample(known, min(len(known), 9)), *random.sample(WORDS, 3)]
        asked = {name: random.choice((name, "")) for name in chosen}
        note(f"{asked} within {scope}")
        expected, got = (
            Index(engine, "tested", scoped(scope)).named(asked) for engine in pairs[number]
        )
        assert got == expected
        several.append(len(expected) > 1)

    assert sum(several) >= 0.3 * examples


def agree_on_conditions(pairs: Sequence[Pair], examples: int = EXAMPLES) -> None:
    """Check searches by vectors under conditions: the reference gives the ranking of all passages
    without those that do not match, and the other engine the same hits in the same order."""
    encoder = HashingEncoder(16)
    shares: list[float] = []
    indexes: dict[int, tuple[Index, Index]] = {}
    for number, (right, tested) in enumerate(pairs):
        vectors = MemoryVectors(right.scan(None), encoder)
        source = VectorSource.of(vectors, encoder)
        indexes[number] = (
            Index(right, "memory", vectors=source),
            Index(tested, "tested", vectors=source),
        )

    @run_on_examples(
        examples,
        st.sampled_from(range(len(pairs))),
        _TREES,
        st.sampled_from((None, None, "year:>=1670", "NOT lang:en")),
        st.sampled_from(("Which opera is by Vivaldi?", "born in venice", "?")),
        st.sampled_from(("semantic_search", "naive_embedding_search", "hybrid_search")),
    )
    def check(number: int, drawn: Node, filter: str | None, query: str, name: str) -> None:
        right, tested = indexes[number]
        where = condition_of(drawn)
        note(f"{where} within {filter}")
        assume(_is_within_limits(where))
        options: dict[str, Any] = {"top_k": MAX_NEAREST * 4, "filter": filter, "where": str(where)}
        expected = getattr(right, name)(query, **options)
        got = getattr(tested, name)(query, **options)
        assert [(hit.id, hit.score) for hit in got.hits] == [
            (hit.id, hit.score) for hit in expected.hits
        ]
        assert (got.total, got.feedback) == (expected.total, expected.feedback)
        scope = None if filter is None else scoped(parse_filter(filter, SCHEMA))
        page = right.engine.search(
            SearchRequest(planned(where), _EVERYTHING, scope=scope, with_text=False)
        )
        matching = {hit.id for hit in page.hits}
        shares.append(len(matching) / right.manifest.chunks)
        if name != "hybrid_search":
            ranking = getattr(right, name)(query, top_k=1_000, snippets=False).hits
            ranked = [hit.id for hit in ranking if hit.id in matching]
            best = ranked[: MAX_NEAREST * 4]  # of the first 1,000
            assert [hit.id for hit in expected.hits][: len(best)] == best
        assert {hit.id for hit in expected.hits} <= matching

    assert sum(share == 0 for share in shares) >= 0.05 * examples
    assert sum(0 < share < 0.5 for share in shares) >= 0.2 * examples


def agree_on_orders(pairs: Sequence[Pair], examples: int = EXAMPLES) -> None:
    """Check for the same hits in the same order when matches are sorted by a field and limited per
    document, at any offset."""
    limited: list[bool] = []

    @run_on_examples(
        examples,
        st.sampled_from(pairs),
        trees(),
        _SCOPES,
        _GRANULARITIES,
        _SORTS,
        st.sampled_from((None, 1, 1, 2, 3, 50)),
        st.sampled_from((0, 0, 0, 1, 5, 40, 620)),
        st.sampled_from((1, 5, 20, 1000)),
        st.booleans(),
    )
    def check(
        pair: Pair,
        query: Node,
        scope: Scope | None,
        granularity: Granularity,
        sort: SortBy | None,
        per_document: int | None,
        offset: int,
        top_k: int,
        whole_text: bool,
    ) -> None:
        right, tested = pair
        if has_a_loose_repetition(query):
            return
        note(f"{query} within {scope}")
        request = SearchRequest(
            planned(query),
            top_k,
            offset,
            granularity,
            scoped(scope),
            with_text=top_k == 5,
            whole_text=whole_text,
            sort=sort,
            per_document=per_document,
        )
        expected = right.search(request)
        assert_equal(tested.search(verified(request, tested)), expected)
        passages = expected.passages or len(expected.hits)
        if granularity == "chunk" and per_document is not None:
            limited.append(bool(expected.hits) and passages < expected.total.number)

    assert len(limited) < 100 or sum(limited) >= 0.1 * len(limited)


def agree_on_field_values(pairs: Sequence[Pair]) -> None:
    """Check for the same values and numbers of passages of every field."""
    fields = (*TEXT_FIELDS, DOC_ID, *METADATA)

    @run_on_examples(
        EXAMPLES // 8,
        st.sampled_from(pairs),
        st.permutations(fields),
        st.sampled_from((0, 1, 3, MAX_QUICK_VALUES)),
        _SCOPES,
        st.booleans(),
    )
    def check(
        pair: Pair, fields: Sequence[str], values: int, scope: Scope | None, quick: bool
    ) -> None:
        right, tested = pair
        note(f"within {scope}")
        request = FieldsRequest(tuple(fields), values, scoped(scope), quick)
        assert tested.field_values(request) == right.field_values(request)


def agree_on_keywords(pairs: Sequence[Pair]) -> None:
    """Check for the same pages of keyword searches, including their scores."""
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
        request = KeywordRequest(keywords, top_k, offset, matching, scoped(scope), top_k == 5)
        note(f"{keywords} within {scope}")
        expected = right.keyword_search(request)
        assert_equal(tested.keyword_search(request), expected)
        with_hits.append(expected.total.number > 0)

    assert sum(with_hits) >= 0.3 * len(with_hits)


def agree_on_counts(pairs: Sequence[Pair]) -> None:
    """Check for the same number of matches of each of several queries."""
    queries = st.lists(st.tuples(trees(), _GRANULARITIES), max_size=5)

    @run_on_examples(EXAMPLES // 10, st.sampled_from(pairs), queries, _SCOPES)
    def check(pair: Pair, queries: list[tuple[Node, Granularity]], scope: Scope | None) -> None:
        right, tested = pair
        within = scoped(scope)
        asked = [(planned(query), granularity) for query, granularity in queries]
        known = [
            (resolve_lookups(plan.root, tested, granularity, within), granularity)
            for plan, granularity in asked
        ]
        for exact in (False, True):
            expected = right.counts(asked, within, exact=exact)
            assert tested.counts(known, within, exact=exact) == expected


def agree_on_lists(pairs: Sequence[Pair]) -> None:
    """Check for the same passages in corpus order, from any passage on, and for the same documents
    with the same numbers of matches."""
    listed: list[int] = []

    @run_on_examples(
        EXAMPLES // 5,
        st.sampled_from(pairs),
        _TREES,
        _GRANULARITIES,
        _SCOPES,
        st.sampled_from((0, 0, 1, 30, 1000)),
        st.sampled_from((1, 5, 1000)),
    )
    def check(
        pair: Pair,
        query: Node,
        granularity: Granularity,
        scope: Scope | None,
        skipped: int,
        top_k: int,
    ) -> None:
        right, tested = pair
        note(f"{query} within {scope}")
        first = next(itertools.islice(right.ordinals(), skipped, None), 0)
        request = SearchRequest(
            planned(query), top_k, granularity=granularity, scope=scoped(scope), from_ordinal=first
        )
        expected = right.search(request)
        assert_equal(tested.search(verified(request, tested)), expected)
        ordinals = [hit.ordinal for hit in expected.hits]
        assert ordinals == sorted(ordinals)
        assert all(ordinal >= first for ordinal in ordinals)
        of_tested = tested.field_values(by_document(verified(request, tested)))
        of_right = right.field_values(by_document(request))
        assert of_tested.fields[0].distinct == of_right.fields[0].distinct
        documents = _counted_documents(right, request)
        assert _counted_documents(tested, request) == documents
        counted, matches, in_all = documents
        if len(counted) == in_all:
            assert sum(number for _, number in counted) == matches
        listed.append(len(ordinals))

    assert sum(map(bool, listed)) >= 0.3 * len(listed)


def _counted_documents(
    engine: SearchEngine, request: SearchRequest
) -> tuple[list[tuple[str, int]], int, int | None]:
    """Return the first documents with their matches, and how many match and documents there are."""
    request = replace(verified(request, engine), per_document=1, from_ordinal=None)
    _, page, matches = listed(REPLY_FORMS["counts"], engine, request, engine.search(request))
    counted = zip((hit.doc_id for hit in page.hits), matches, strict=True)
    return list(counted), page.total.number, page.passages


def agree_on_words(pairs: Sequence[Pair]) -> None:
    """Check for the same counts, forms and nearest words."""
    prefixes = [f"{word[:3]}*" for word in WORDS if is_prefix(word[:3])]
    words = [*WORDS, *prefixes, *(f"{word}x" for word in WORDS)]
    words = [word for word in words if word.strip("*").isalnum() and len(word) > 3][::3]
    queries = [f"{first} AND title:{second}" for first, second in itertools.pairwise(WORDS[:6])]
    forms = 0
    for pair in pairs:
        right, tested = (Index(engine, "") for engine in pair)
        for filter in (None, "lang:en"):
            counted = right.words(*words, *queries, filter=filter)
            assert tested.words(*words, *queries, filter=filter) == counted
            forms += sum(len(word.forms) for word in counted)
    assert forms


def agree_on_explanations(pairs: Sequence[Pair]) -> None:
    """Check for the same scores of each leaf in each field."""

    @run_on_examples(EXAMPLES // 8, st.sampled_from(pairs), trees(), _GRANULARITIES)
    def check(pair: Pair, query: Node, granularity: Granularity) -> None:
        right, tested = pair
        note(str(query))
        if has_a_loose_repetition(query):
            return
        request = SearchRequest(planned(query), granularity=granularity, with_text=False)
        ids = [hit.id for hit in right.search(request).hits]
        expected = right.explain(request, ids)
        explanations = tested.explain(verified(request, tested), ids)
        for expected_leaves, leaf_scores in zip(expected, explanations, strict=True):
            for expected_leaf, leaf_score in zip(expected_leaves, leaf_scores, strict=True):
                near = pytest.approx(expected_leaf.scores, rel=TOLERANCE)
                assert (leaf_score.leaf, leaf_score.scores) == (expected_leaf.leaf, near)


def agree_on_reading(pairs: Sequence[Pair], *unknown: str) -> None:
    """Check for the same chunks by id, neighbours and scans; no index has the ``unknown`` ids."""

    @run_on_examples(
        EXAMPLES // 15, st.sampled_from(pairs), _SCOPES, st.randoms(use_true_random=False)
    )
    def check(pair: Pair, drawn: Scope | None, random: Random) -> None:
        right, tested = pair
        scope = scoped(drawn)
        chunks = list(right.scan(None))
        sample = random.sample(chunks, min(3, len(chunks)))
        ids = ["nowhere", *unknown, *(chunk.id for chunk in sample)]
        assert tested.read(ids, scope) == right.read(ids, scope)
        assert tested.neighbours(sample, scope) == right.neighbours(sample, scope)
        assert list(tested.scan(scope)) == list(right.scan(scope))


def agree_on_ordinals(pairs: Sequence[Pair]) -> None:
    """Check for the same chunks by ordinal, in and out of scopes, in any order, and the same
    ordinals."""
    random = Random(1741)
    for right, tested in pairs:
        ordinals = list(right.ordinals())
        assert list(tested.ordinals()) == ordinals == sorted(set(ordinals))
        beyond = (0, ordinals[0] + 1, ordinals[-1] + (1 << 40))
        sample = [ordinals[0], *random.choices(ordinals, k=10), *beyond]
        random.shuffle(sample)
        chunks = tested.chunks_at(sample, None)
        assert chunks == right.chunks_at(sample, None)
        assert [chunk and chunk.ordinal for chunk in chunks] == [
            ordinal if ordinal in ordinals else None for ordinal in sample
        ]
        for chunk in filter(None, chunks[:3]):
            excluded = (Modifier(NOT, KeywordEquals(DOC_ID, chunk.doc_id)),)
            scope = scoped(excluded)
            assert scope is not None
            within = tested.chunks_at(sample, scope)
            assert within == right.chunks_at(sample, scope)
            assert chunk not in within
            known = np.array(sorted({*ordinals[::2], *beyond}), np.int64)
            for asked in (np.array(ordinals, np.int64), known):
                marks = tested.among(asked, scope).tolist()
                assert marks == right.among(asked, scope).tolist()
        assert tested.chunks_at([], None) == []


# Comparison


def _is_within_limits(query: Node) -> bool:
    """Return whether a query is within the limits: a random tree may have too many prefixes."""
    try:
        parse(str(query), SCHEMA)
    except QueryError:
        return False
    return True


def has_a_loose_repetition(query: Node) -> bool:
    """Return whether a phrase with slop repeats a word, which the engines score differently."""
    return any(
        isinstance(leaf, Phrase) and leaf.slop and len(set(spelling)) < len(spelling)
        for leaf in leaves(query)
        for spelling in planned(leaf).root.words
    )


def assert_equal(page: Page, expected: Page) -> None:
    """Assert that two pages have the same hits in the same order, scores to 1e-4, and totals."""
    assert list(map(_unscored, page.hits)) == list(map(_unscored, expected.hits))
    near = [pytest.approx(hit.score, rel=TOLERANCE) for hit in expected.hits]
    assert [hit.score for hit in page.hits] == near
    assert _totals(page) == _totals(expected)


def _in_any_order(page: Page) -> tuple[dict[str, Hit], tuple[int, bool, int | None]]:
    return {hit.id: _unscored(hit) for hit in page.hits}, _totals(page)


def _unscored(hit: Hit) -> Hit:
    return hit._replace(score=0.0)


def _totals(page: Page) -> tuple[int, bool, int | None]:
    assert page.total.is_exact or page.total.number > MAX_TOTAL
    return *page.total.told, page.passages

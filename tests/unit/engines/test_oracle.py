"""What the oracle shares with the engines, so that they could agree on what is wrong: the values of
metadata, loose phrases, the best sentence, and the counts of keywords, worked out by hand."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import MetadataValue
from arag_search.engines.base import KeywordRequest, SearchRequest
from arag_search.query.operators import NOT
from arag_search.query.tree import And, KeywordEquals, Modifier, Node, Phrase, Range, Term
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import written
from tests.support.strategies import METADATA, document_chunks


def engine_of(*contents: str, title: str = "") -> MemoryEngine:
    return MemoryEngine(
        chunk
        for number, content in enumerate(contents)
        for chunk in document_chunks(number, title, [[content]], {})
    )


@pytest.fixture(name="tagged", scope="module")
def tagged_engine() -> MemoryEngine:
    values: Sequence[dict[str, MetadataValue]] = [
        {"lang": "en", "year": 1678, "published": "2001-05"},
        {"lang": "de", "year": 1680.5, "published": "2001-05-31", "topics": ("x", "y")},
        {"lang": "EN", "year": (1650, 1700), "published": ("1999", "2002")},
        {},
    ]
    return MemoryEngine(
        [
            chunk
            for number, metadata in enumerate(values)
            for chunk in document_chunks(number, "", [["opera"]], metadata)
        ],
        metadata=METADATA,
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (KeywordEquals("lang", "en"), ["d0"]),
        (KeywordEquals("topics", "y"), ["d1"]),
        (KeywordEquals("doc_id", "d3"), ["d3"]),
        (KeywordEquals("nowhere", "en"), []),
        (Range("year", "number", "1678", "1678"), ["d0"]),
        (Range("year", "number", "1678", None, include_lower=False), ["d1", "d2"]),
        (Range("year", "number", None, "1678"), ["d0", "d2"]),
        (Range("year", "number", "1651", "1699"), ["d0", "d1"]),
        (Range("year", "number", None, None), ["d0", "d1", "d2"]),
        (Range("published", "date", "2001", "2001"), ["d0", "d1"]),
        (Range("published", "date", "2001-05", None, include_lower=False), ["d2"]),
        (Range("published", "date", "2001-05-01", "2001-05-01"), ["d0"]),
        (Range("published", "date", None, "2001-05-31", include_upper=False), ["d0", "d2"]),
    ],
)
def test_metadata_clauses_match_any_value_of_their_field(
    tagged: MemoryEngine, query: Node, expected: list[str]
) -> None:
    page = tagged.search(SearchRequest(written(query)))
    assert [hit.doc_id for hit in page.hits] == expected
    assert {hit.score for hit in page.hits} <= {0.0}


@given(
    st.lists(st.sampled_from("abc"), max_size=9),
    st.lists(st.sampled_from("abc"), min_size=2, max_size=4),
    st.integers(0, 6),
)
def test_loose_phrases_match_by_their_definition(
    content: list[str], words: list[str], slop: int
) -> None:
    places = [[at for at, word in enumerate(content) if word == query_word] for query_word in words]
    spreads = [
        max(shifted) - min(shifted)
        for positions in itertools.product(*places)
        if len(set(positions)) == len(positions)
        for shifted in [[at - number for number, at in enumerate(positions)]]
    ]
    engine = engine_of(" ".join(content))
    holds = min(spreads, default=slop + 1) <= slop
    request = SearchRequest(written(Phrase(" ".join(words), slop, "content")))
    assert len(engine.search(request).hits) == holds


def test_sentences_are_matched_separately_and_chunks_rank_by_their_best_sentence() -> None:
    engine = MemoryEngine(
        [
            *document_chunks(0, "Vivaldi", [["He was born. ", "A b. ", "A born a. "]], {}),
            *document_chunks(1, "Bach", [["A c d e f. "], ["Born a. ", "A. "]], {}),
        ]
    )
    query = And((Term("a"), Modifier(NOT, Term("b"))))
    page = engine.search(SearchRequest(written(query), granularity="sentence"))
    # The best sentence of d1.2 is the shortest of all; d0.1 has "a" twice.
    assert [(hit.id, hit.matched_sentences) for hit in page.hits] == [
        ("d1.2", (0, 1)),
        ("d0.1", (2,)),
        ("d1.1", (0,)),
    ]
    assert (page.total.number, page.passages) == (4, 3)
    assert engine.counts([(written(query), "sentence"), (written(query), "chunk")], None) == [4, 2]
    title = And((Term("vivaldi", "title"), Term("born")))
    page = engine.search(SearchRequest(written(title), granularity="sentence"))
    assert [(hit.id, hit.matched_sentences) for hit in page.hits] == [("d0.1", (0, 2))]


@pytest.mark.parametrize(
    ("keywords", "scores"),
    [
        (("ab",), {"d0": 2 * 2 + 2, "d1": 2, "d2": 2}),
        (("ab ab",), {"d0": 2 * 5}),
        (("AB", "ab"), {"d0": 12, "d1": 4, "d2": 4}),
        (("it's",), {"d1": 2 * 4}),
        (("!", ""), {}),
    ],
)
def test_keyword_search_sums_count_times_length(
    keywords: tuple[str, ...], scores: dict[str, float]
) -> None:
    engine = engine_of("ab ab ab", "abc ab it's IT’S", "Ab-c")
    page = engine.keyword_search(KeywordRequest(keywords))
    assert {hit.doc_id: hit.score for hit in page.hits} == scores
    assert page.total.number == len(scores)


def test_substring_matching_counts_parts_of_words_without_overlaps() -> None:
    engine = engine_of("ababab", "Aba", "b!", title="ABA")
    page = engine.keyword_search(KeywordRequest(("aBa", "!"), matching="substring"))
    assert [(hit.doc_id, hit.score) for hit in page.hits] == [("d0", 6), ("d1", 6), ("d2", 4)]

"""The oracle on small corpora whose answers can be worked out by hand."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import Chunk, MetadataValue
from arag_search.engines.base import KeywordRequest, LeafScore, SearchEngine, SearchRequest
from arag_search.errors import IndexClosedError, NotServedError, UnknownChunkError
from arag_search.query.tree import (
    And,
    DateRange,
    KeywordEquals,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Prefix,
    Scope,
    Term,
    any_of,
)
from tests.support.oracle.engine import MemoryEngine
from tests.support.strategies import METADATA, document_chunks

ENGLISH = KeywordEquals("lang", "en")


def documents(*contents: str, title: str = "", **metadata: MetadataValue) -> list[Chunk]:
    return [
        chunk
        for number, content in enumerate(contents)
        for chunk in document_chunks(number, title, [[content]], metadata)
    ]


def engine_of(*contents: str, title: str = "") -> MemoryEngine:
    return MemoryEngine(documents(*contents, title=title))


def matching_documents(engine: MemoryEngine, query: Node, scope: Scope | None = None) -> list[str]:
    return [hit.doc_id for hit in engine.search(SearchRequest(query, 100, scope=scope)).hits]


def bm25(weight: float, frequency: float, length: int, average: float) -> float:
    norm = 1.2 * (0.25 + 0.75 * length / average)
    return weight * frequency / (frequency + norm)


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
        (KeywordEquals("year", "1678"), []),
        (NumberRange("year", 1678, 1678), ["d0"]),
        (NumberRange("year", 1678, None, include_lower=False), ["d1", "d2"]),
        (NumberRange("year", None, 1678), ["d0", "d2"]),
        (NumberRange("year", 1651, 1699), ["d0", "d1"]),
        (NumberRange("year", None, None), ["d0", "d1", "d2"]),
        (DateRange("published", "2001", "2001"), ["d0", "d1"]),
        (DateRange("published", "2001-05", None, include_lower=False), ["d2"]),
        (DateRange("published", "2001-05-01", "2001-05-01"), ["d0"]),
        (DateRange("published", None, "2001-05-31", include_upper=False), ["d0", "d2"]),
    ],
)
def test_metadata_clauses_match_any_value_of_their_field(
    tagged: MemoryEngine, query: Node, expected: list[str]
) -> None:
    page = tagged.search(SearchRequest(query))
    assert [hit.doc_id for hit in page.hits] == expected
    assert {hit.score for hit in page.hits} <= {0.0}


def test_words_match_in_title_and_content_whatever_their_case() -> None:
    engine = engine_of("The Opera in Venice", "vivaldi's seasons", title="Griselda")
    assert matching_documents(engine, Term("opera")) == ["d0"]
    assert matching_documents(engine, Term("GRISELDA")) == ["d0", "d1"]
    assert matching_documents(engine, Term("griselda", "content")) == []
    assert matching_documents(engine, Term("vivaldi")) == []


def test_a_word_that_the_analyser_splits_is_the_phrase_of_its_parts() -> None:
    engine = engine_of("COVID-19 came", "19 covid", "covid 19")
    assert sorted(matching_documents(engine, Term("covid-19"))) == ["d0", "d2"]


def test_both_apostrophes_match_either() -> None:
    engine = engine_of("O'Neil's", "O’Neil’s", "ONeils")
    for text in ("o'neil's", "o’neil’s"):
        assert matching_documents(engine, Term(text)) == ["d0", "d1"]
        assert matching_documents(engine, Prefix(text[:4])) == ["d0", "d1"]


@pytest.mark.parametrize(
    ("text", "slop", "expected"),
    [
        ("a b c", 0, ["d0"]),
        ("a c", 0, ["d2"]),
        ("a c", 1, ["d0", "d2"]),
        ("b a", 1, ["d2"]),
        ("b a", 2, ["d0", "d1", "d2"]),
        ("c b a", 3, ["d2"]),
        ("c b a", 4, ["d0", "d2"]),
        ("a a", 2, ["d3"]),
        ("a a", 1, ["d3"]),
        ("a a a", 20, []),
    ],
)
def test_slop_is_the_spread_of_the_words_about_their_places(
    text: str, slop: int, expected: list[str]
) -> None:
    engine = engine_of("a b c", "a b x x x x c", "b a c", "a x a")
    assert sorted(matching_documents(engine, Phrase(text, slop))) == expected


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
    assert matching_documents(engine, Phrase(" ".join(words), slop, "content")) == ["d0"] * holds


def test_prefixes_match_the_beginning_of_a_token() -> None:
    engine = engine_of("libretto", "librettist", "lib", "a libretto")
    assert matching_documents(engine, Prefix("libr")) == ["d0", "d1", "d3"]
    assert matching_documents(engine, Prefix("libretto")) == ["d0", "d3"]


def test_and_or_and_not_are_boolean() -> None:
    engine = engine_of("a b", "a", "b", "c")
    a, b, c = Term("a"), Term("b"), Term("c")
    assert matching_documents(engine, And((a, b))) == ["d0"]
    assert sorted(matching_documents(engine, Or((a, b)))) == ["d0", "d1", "d2"]
    assert matching_documents(engine, And((Or((a, c)), Not(b)))) == ["d3", "d1"]
    assert matching_documents(engine, And((a, Not(And((a, Not(b))))))) == ["d0"]


def test_a_score_is_bm25_of_the_better_field() -> None:
    engine = MemoryEngine(
        [
            *document_chunks(0, "opera", [["opera opera house"]], {}),
            *document_chunks(1, "", [["house of the"]], {}),
        ]
    )
    page = engine.search(SearchRequest(Term("opera")))
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert [hit.score for hit in page.hits] == [pytest.approx(bm25(idf, 2, 3, 3))]
    page = engine.search(SearchRequest(Term("opera", "title")))
    idf = math.log(1 + (1 - 1 + 0.5) / (1 + 0.5))  # of one title: an empty one does not count
    assert [hit.score for hit in page.hits] == [pytest.approx(bm25(idf, 1, 1, 1))]


def test_phrases_score_the_sum_of_their_words_and_loose_ones_by_width() -> None:
    engine = engine_of("a b", "a x b", "x x")
    idf = 2 * math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    hits = engine.search(SearchRequest(Phrase("a b", 1))).hits
    average = 7 / 3
    assert [hit.score for hit in hits] == [
        pytest.approx(bm25(idf, 1, 2, average)),
        pytest.approx(bm25(idf, 1 / 2, 3, average)),
    ]


def test_weights_multiply_down_to_prefixes_and_metadata_adds_nothing() -> None:
    engine = MemoryEngine(documents("opera", "house", lang="en"), metadata=METADATA)
    query = Or((And((Prefix("oper", weight=2.0), Term("opera")), 3.0), ENGLISH))
    hits = engine.search(SearchRequest(query)).hits
    word = engine.search(SearchRequest(Term("opera"))).hits[0].score
    assert [(hit.doc_id, hit.score) for hit in hits] == [
        ("d0", pytest.approx(3 * (2 + word))),
        ("d1", 0.0),
    ]


def test_a_prefix_counts_once_whichever_fields_and_words_match() -> None:
    engine = engine_of("libretto librettist", title="libretti")
    assert engine.search(SearchRequest(Prefix("libr", weight=1.5))).hits[0].score == 1.5


def test_equal_scores_are_in_corpus_order_whatever_the_order_of_the_chunks() -> None:
    chunks = documents("a", "a", "a a", "a")
    engine = MemoryEngine(reversed(chunks))
    assert matching_documents(engine, Term("a")) == ["d2", "d0", "d1", "d3"]
    assert [chunk.doc_id for chunk in engine.scan(None)] == ["d0", "d1", "d2", "d3"]


def test_pages_are_slices_of_the_ranking() -> None:
    engine = engine_of(*["a"] * 7)
    page = engine.search(SearchRequest(Term("a"), top_k=3, offset=3))
    assert [hit.doc_id for hit in page.hits] == ["d3", "d4", "d5"]
    assert (page.total, page.total_is_exact, page.passages) == (7, True, None)
    page = engine.search(SearchRequest(Term("a"), top_k=3, offset=6))
    assert ([hit.doc_id for hit in page.hits], page.passages) == (["d6"], 7)
    page = engine.search(SearchRequest(Term("a"), top_k=3, offset=9))
    assert (page.hits, page.passages) == ((), 7)


def test_totals_and_counts_stop_at_a_thousand() -> None:
    engine = engine_of(*["a"] * 1001, "b")
    page = engine.search(SearchRequest(any_of(Term("a"), Term("b"))))
    assert (page.total, page.total_is_exact) == (1000, False)
    page = engine.search(SearchRequest(Term("a")))
    assert (page.total, page.total_is_exact) == (1001, True)
    assert engine.counts([(Term(text), "chunk") for text in "abc"], None) == [1001, 1, 0]
    scope = Scope(exclude=(KeywordEquals("doc_id", "d0"),))
    page = engine.search(SearchRequest(Term("a"), scope=scope))
    assert (page.total, page.total_is_exact) == (1000, True)


def test_sentences_are_matched_separately_and_chunks_rank_by_their_best_sentence() -> None:
    engine = MemoryEngine(
        [
            *document_chunks(0, "Vivaldi", [["He was born. ", "A b. ", "A born a. "]], {}),
            *document_chunks(1, "Bach", [["A c d e f. "], ["Born a. ", "A. "]], {}),
        ]
    )
    query = And((Term("a"), Not(Term("b"))))
    page = engine.search(SearchRequest(query, granularity="sentence"))
    # The best sentence of d1.2 is the shortest of all; d0.1 has "a" twice.
    assert [(hit.id, hit.matched_sentences) for hit in page.hits] == [
        ("d1.2", (0, 1)),
        ("d0.1", (2,)),
        ("d1.1", (0,)),
    ]
    assert (page.total, page.passages) == (4, 3)
    assert engine.counts([(query, "sentence"), (query, "chunk")], None) == [4, 2]
    title = And((Term("vivaldi", "title"), Term("born")))
    page = engine.search(SearchRequest(title, granularity="sentence"))
    assert [(hit.id, hit.matched_sentences) for hit in page.hits] == [("d0.1", (0, 2))]


def test_sentences_that_do_not_match_are_empty_without_whole_text() -> None:
    engine = MemoryEngine(document_chunks(0, "T", [["One. ", "Two. ", "One é. ", "Three."]], {}))
    request = SearchRequest(Term("one"), granularity="sentence", whole_text=False)
    (hit,) = engine.search(request).hits
    assert (hit.content, hit.sentence_ends) == ("One. One é. ", (5, 5, 12, 12))
    (hit,) = engine.search(replace(request, with_text=False)).hits
    assert (hit.content, hit.sentence_ends, hit.matched_sentences) == (None, (), (0, 2))
    (hit,) = engine.search(replace(request, granularity="chunk")).hits
    assert hit.content == "One. Two. One é. Three."


def test_hits_have_the_indexed_fields_and_the_text_on_request() -> None:
    chunk = document_chunks(0, "T", [["One. ", "Two."]], {"lang": "en"})[0]
    engine = MemoryEngine([chunk], metadata=METADATA)
    hit = engine.search(SearchRequest(Term("one"))).hits[0]
    assert (hit.id, hit.title, hit.part, hit.parts, hit.ordinal) == ("d0.1", "T", 1, 1, 0)
    assert (hit.content, hit.sentence_ends, hit.metadata) == ("One. Two.", (5, 9), {"lang": "en"})
    hit = engine.search(SearchRequest(Term("one"), with_text=False)).hits[0]
    assert (hit.content, hit.sentence_ends) == (None, ())


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
    assert page.total == len(scores)


def test_keywords_are_counted_in_titles_too() -> None:
    engine = engine_of("ab", title="ab ab")
    assert engine.keyword_search(KeywordRequest(("ab",))).hits[0].score == 6


def test_substring_matching_counts_parts_of_words_without_overlaps() -> None:
    engine = engine_of("ababab", "Aba", "b!", title="ABA")
    page = engine.keyword_search(KeywordRequest(("aBa", "!"), matching="substring"))
    assert [(hit.doc_id, hit.score) for hit in page.hits] == [("d0", 6), ("d1", 6), ("d2", 4)]


def test_a_scope_bounds_search_counts_reading_neighbours_and_scans() -> None:
    engine = MemoryEngine(
        [
            chunk
            for number, lang in enumerate(("en", "de", "en"))
            for chunk in document_chunks(number, "", [["a"]], {"lang": lang})
        ],
        metadata=METADATA,
        already_chunked=True,
    )
    for scope in (Scope((ENGLISH,)), Scope((), (KeywordEquals("lang", "de"),))):
        assert matching_documents(engine, Term("a"), scope) == ["d0", "d2"]
        assert engine.keyword_search(KeywordRequest(("a",), scope=scope)).total == 2
        assert engine.counts([(Term("a"), "sentence")], scope) == [2]
        first, hidden, last = engine.read(["d0.1", "d1.1", "d2.1"], scope)
        assert first is not None
        assert last is not None
        assert hidden is None
        assert engine.neighbours(first, scope) == (None, "d2.1")
        assert engine.neighbours(last, scope) == ("d0.1", None)
        assert [chunk.id for chunk in engine.scan(scope)] == ["d0.1", "d2.1"]


def test_neighbours_stay_in_the_document_unless_the_corpus_is_pre_chunked() -> None:
    chunks = [
        *document_chunks(0, "", [["a"], ["b"]], {}),
        *document_chunks(1, "", [["c"]], {}),
    ]
    engine = MemoryEngine(chunks)
    assert [engine.neighbours(chunk, None) for chunk in chunks] == [
        (None, "d0.2"),
        ("d0.1", None),
        (None, None),
    ]
    engine = MemoryEngine(chunks, already_chunked=True)
    assert engine.neighbours(chunks[1], None) == ("d0.1", "d1.1")


def test_read_gives_none_for_an_unknown_chunk() -> None:
    engine = engine_of("a")
    assert engine.read(["nowhere", "d0.1"], None)[0] is None


def test_explain_gives_the_score_of_each_positive_leaf() -> None:
    engine = engine_of("a b", "a c", title="a")
    query = Or((And((Term("a", weight=2.0), Term("c"), Not(Term("d")))), Prefix("nothing")))
    page = engine.search(SearchRequest(query))
    explained = engine.explain(SearchRequest(query), ["d0.1", "d1.1"])
    assert explained[0] == [LeafScore(leaf, {}) for leaf in ("a^2", "c", "nothing*")]
    assert [sorted(score.scores) for score in explained[1]] == [
        ["content", "title"],
        ["content"],
        [],
    ]
    parts = sum(max(score.scores.values(), default=0.0) for score in explained[1])
    assert parts == pytest.approx(page.hits[0].score)


def test_explaining_an_unknown_chunk_is_an_error() -> None:
    with pytest.raises(UnknownChunkError) as caught:
        engine_of("a").explain(SearchRequest(Term("a")), ["d7.1"])
    assert str(caught.value) == 'No chunk "d7.1".'


def test_the_manifest_counts_and_fingerprints_the_corpus() -> None:
    chunks = [
        *document_chunks(0, "Opera", [["One. ", "Two."], ["Three."]], {}),
        *document_chunks(1, "", [[]], {}),
    ]
    manifest = MemoryEngine(chunks, metadata=METADATA, k1=0.9, sentences=False).manifest
    assert (manifest.documents, manifest.chunks, manifest.sentences) == (2, 3, 3)
    assert (manifest.engine, manifest.k1, manifest.without) == ("memory", 0.9, ("sentences",))
    assert (manifest.title_characters, manifest.tokens, manifest.metadata) == (5, 6, METADATA)
    assert manifest.fingerprint == MemoryEngine(reversed(chunks)).manifest.fingerprint
    assert manifest.fingerprint != MemoryEngine(chunks[:2]).manifest.fingerprint


def test_sentence_granularity_that_was_left_out_is_not_served() -> None:
    engine = MemoryEngine(documents("a"), sentences=False)
    with pytest.raises(NotServedError, match="The index holds no sentences"):
        engine.search(SearchRequest(Term("a"), granularity="sentence"))


def test_an_empty_corpus_gives_no_hits() -> None:
    engine = MemoryEngine([])
    for granularity in ("chunk", "sentence"):
        page = engine.search(SearchRequest(Or((Term("a"), ENGLISH)), granularity=granularity))
        assert (page.hits, page.total, page.passages) == ((), 0, 0)


def test_a_closed_engine_raises_on_every_call() -> None:
    engine = engine_of("a", "b")
    chunk = engine.read(["d0.1"], None)[0]
    assert chunk is not None
    started = engine.scan(None)
    next(started)
    engine.close()
    engine.close()
    for call in (
        lambda: engine.search(SearchRequest(Term("a"))),
        lambda: engine.keyword_search(KeywordRequest(("a",))),
        lambda: engine.counts([(Term("a"), "chunk")], None),
        lambda: engine.explain(SearchRequest(Term("a")), []),
        lambda: engine.read(["d0.1"], None),
        lambda: engine.neighbours(chunk, None),
        lambda: engine.scan(None),
        lambda: next(started),
    ):
        with pytest.raises(IndexClosedError, match="The index in memory is closed"):
            call()


def test_the_memory_engine_is_a_search_engine() -> None:
    engine: SearchEngine = engine_of("a")
    assert engine.manifest.chunks == 1

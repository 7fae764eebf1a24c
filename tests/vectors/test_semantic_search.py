"""Searches of an index by vectors: semantic, hybrid, naive; scopes, filters, pages, threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.hits import HybridRanks
from arag_search.errors import ArgumentError, IndexClosedError, NotServedError
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.vectors.base import VectorUnit, rows_of
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.patience import PATIENCE_S
from tests.support.semantic_indexes import TableEncoder, random_corpus, vector_index

QUERY = "vivaldi born in venice"


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


@pytest.fixture(scope="module")
def index() -> Index:
    return vector_index(*VIVALDI)


# Semantic search


def test_a_semantic_search_shows_the_sentences_that_are_near() -> None:
    first = chunk(0, "a", "Titles do not count", "Far. ", "Near. ", "Far too. ", "Nearer. ", year=1)
    second = chunk(1, "b", "", "Nearest. ", *(f"Away {number}. " for number in range(30)))
    table = {"q": (1, 0, 0), "Near.": (1, 1, 0), "Nearer.": (1, 0.5, 0), "Nearest.": (1, 0.1, 0)}
    index = vector_index(first, second, encoder=TableEncoder(table))
    result = index.semantic_search("q", top_k=1)
    assert (result.query, result.understood) == ("q", '"q"')
    assert (result.total, result.total_is_exact, result.passages) == (None, True, None)
    hit = result.hits[0]
    assert (hit.id, hit.doc_id, hit.part, hit.parts) == ("b.1", "b", 1, 1)
    assert hit.score == pytest.approx(1 / 1.01**0.5)
    result = index.semantic_search("q", top_k=5)
    assert ids(result) == ["b.1", "a.1"]
    assert result.passages == 2
    assert result.hits[1].snippet == "Far. Near. Far too. Nearer."  # All sentences were fetched.
    assert result.hits[1].metadata == {"year": 1}
    assert result.hits[1].score == pytest.approx(1 / 1.25**0.5)


def test_the_snippet_leaves_out_sentences_that_were_not_fetched() -> None:
    near = [chunk(n, f"d{n}", "", f"Near {n}. ", f"Far {n}. ", f"Near too {n}. ") for n in range(9)]
    table = {f"Near {word}{n}.": (1, 0.1, 0) for n in range(9) for word in ("", "too ")}
    index = vector_index(*near, encoder=TableEncoder({**table, "q": (1, 0, 0)}))
    result = index.semantic_search("q", top_k=5)
    assert [hit.snippet for hit in result.hits[:2]] == [
        "Near 0. ... Near too 0.",
        "Near 1. ... Near too 1.",
    ]


def test_a_search_without_snippets_reads_no_text(index: Index) -> None:
    for result in (
        index.semantic_search(QUERY, snippets=False),
        index.hybrid_search(QUERY, snippets=False),
        index.naive_embedding_search(QUERY, snippets=False),
    ):
        assert len(result.hits) == 5
        assert {(hit.content, hit.snippet) for hit in result.hits} == {("", "")}
        assert result.retrieved_tokens > 0  # The titles count.


# Naive and hybrid search


def test_a_naive_search_returns_whole_passages_ranked_by_their_vectors(index: Index) -> None:
    result = index.naive_embedding_search("Griselda is an opera by Antonio Vivaldi", top_k=2)
    assert result.hits[0].id == "griselda.1"
    assert result.hits[0].snippet == (
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. "
        "Its libretto was revised by the young Carlo Goldoni."
    )
    encoder = HashingEncoder()
    texts = [text for passage in VIVALDI for _, text in rows_of(passage, "passage")]
    query = encoder.encode_queries(["Griselda is an opera by Antonio Vivaldi"])[0]
    scores = sorted((encoder.encode(texts) @ query).tolist(), reverse=True)
    assert [hit.score for hit in result.hits] == pytest.approx(scores[:2], abs=1e-6)


@pytest.mark.parametrize("unit", ["passage", "sentence"])
def test_a_hybrid_search_fuses_the_ranks_of_words_and_vectors(
    index: Index, unit: VectorUnit
) -> None:
    query = "opera by Vivaldi in Venice"
    result = index.hybrid_search(query, vectors=unit)
    words = ids(index.logical_search("opera by vivaldi in venice", top_k=100, as_written=True))
    near = ids(
        index.semantic_search(query, top_k=100)
        if unit == "sentence"
        else index.naive_embedding_search(query, top_k=100)
    )
    assert len(words) < len(near) == 5
    for hit in result.hits:
        rank = words.index(hit.id) + 1 if hit.id in words else None
        assert hit.ranks == HybridRanks(rank, near.index(hit.id) + 1)
        by_words = 0.0 if rank is None else 1 / (60 + rank)
        assert hit.score == pytest.approx(by_words + 1 / (61 + near.index(hit.id)))
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert (result.total, result.passages) == (None, 5)
    snippets = {hit.id: hit.snippet for hit in result.hits}
    assert snippets["vivaldi.2"] == "He died in Vienna. Vivaldi's music was forgotten."


@pytest.mark.parametrize("name", ["semantic_search", "hybrid_search", "naive_embedding_search"])
def test_pages_follow_each_other_and_end(index: Index, name: str) -> None:
    search = getattr(index, name)
    all_hits = search(QUERY, top_k=20)
    pages = [search(QUERY, top_k=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [hit_id for page in pages for hit_id in ids(page)] == ids(all_hits)
    assert [len(page.hits) for page in pages] == [2, 2, 1, 0]
    assert pages[-1].passages == 5


def test_a_hybrid_search_merges_the_first_hundred_hits_of_both_rankings() -> None:
    chunks = [chunk(n, f"d{n}", "", f"{'opera ' * (1 + n % 7)}number {n}. ") for n in range(250)]
    result = vector_index(*chunks).hybrid_search("opera number 7", top_k=1000)
    assert 100 <= len(result.hits) == result.passages <= 200
    ranks = [rank for hit in result.hits for rank in (hit.ranks or ()) if rank is not None]
    assert sorted(ranks) == sorted([*range(1, 101)] * 2)


def test_a_hybrid_query_has_words_but_no_operators(index: Index) -> None:
    result = index.hybrid_search('NOT (opera OR "venice" title:x^2 AND -vivaldi*')
    assert result.notes == ()
    word_ranks = {hit.id: hit.ranks and hit.ranks.words for hit in result.hits}
    plain = 'not opera or venice "title:x" 2 and vivaldi'
    expected = ids(index.logical_search(plain, as_written=True))
    assert [
        hit_id for hit_id, rank in sorted(word_ranks.items(), key=lambda item: item[1] or 9) if rank
    ] == expected


def test_a_hybrid_query_without_words_gets_a_note_and_one_of_many_words_is_truncated(
    index: Index,
) -> None:
    result = index.hybrid_search("?!")
    assert result.notes == (
        "the query holds no word to look up; the passages are the nearest by vectors.",
    )
    assert {hit.ranks and hit.ranks.words for hit in result.hits} == {None}
    result = index.hybrid_search("opera " * 65)
    assert result.notes == ("only the first 64 words of the query were looked up.",)


# Queries and calls that are refused


@pytest.mark.parametrize("name", ["semantic_search", "hybrid_search", "naive_embedding_search"])
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", 'column 1, "": the query is empty. Write a question, or a few words.'),
        (" \n", 'column 1, " \n": the query is empty. Write a question, or a few words.'),
        ("x" * 2001,
         f'column 1, "{"x" * 40}": the query has 2,001 characters; at most 2,000 are read. '
         "Write a shorter query, or several."),
        ("a\ud800",
         'column 2, "?": this is half of a character (a lone surrogate). Text must be valid '
         "Unicode; leave it out."),
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_searched_for_is_refused(
    index: Index, name: str, query: str, problem: str
) -> None:
    with pytest.raises(QueryError) as caught:
        getattr(index, name)(query)
    assert str(caught.value) == f"Query not run: 1 problem.\n1. {problem}"
    assert caught.value.query == query


def test_pages_out_of_bounds_are_refused(index: Index) -> None:
    with pytest.raises(ArgumentError, match=r"top_k is 0\."):
        index.semantic_search("q", top_k=0)
    with pytest.raises(ArgumentError, match="offset is 9999 with top_k 5"):
        index.semantic_search("q", offset=9999)
    with pytest.raises(ArgumentError, match=r"top_k is 1001\."):
        index.hybrid_search("q", top_k=1001)
    with pytest.raises(ArgumentError, match=r"top_k is -1\."):
        index.naive_embedding_search("q", top_k=-1)
    with pytest.raises(ArgumentError, match="vectors is 'words'"):
        index.hybrid_search("q", vectors="words")  # type: ignore[arg-type]


def test_a_semantic_search_without_vectors_is_an_error() -> None:
    with pytest.raises(NotServedError) as caught:
        index_of(*VIVALDI).semantic_search("q")
    assert str(caught.value) == (
        "The index was opened without vectors.\nWhere: memory\n"
        "Do: Open it with open_index, or give Index its vectors."
    )


def test_a_search_by_a_unit_without_vectors_is_an_error() -> None:
    index = vector_index(*VIVALDI, units=("sentence",))
    assert index.semantic_search("vivaldi").hits
    with pytest.raises(NotServedError, match="There are no passage vectors"):
        index.naive_embedding_search("vivaldi")


# Scopes and filters


def test_a_filter_and_the_scope_of_the_index_hold_for_all_searches() -> None:
    chunks = [passage for passage in random_corpus(Random(4), 60) if passage.sentence_ends]
    index = vector_index(*chunks, scope="year:>=20")
    allowed = {passage.id for passage in chunks if 20 <= passage.metadata["year"] < 40}  # type: ignore[operator]
    for result in (
        index.semantic_search(QUERY, top_k=100, filter="year:<40"),
        index.naive_embedding_search(QUERY, top_k=100, filter="year:<40"),
        index.hybrid_search(QUERY, top_k=100, filter="year:<40"),
        index.hybrid_search(QUERY, top_k=100, filter="NOT year:>=40", vectors="sentence"),
    ):
        assert set(ids(result)) == allowed
        assert result.passages == len(allowed)
    assert len(index.naive_embedding_search(QUERY, top_k=100).hits) == len(
        [passage for passage in chunks if passage.metadata["year"] >= 20]  # type: ignore[operator]
    )
    result = index.semantic_search("  vivaldi\n born ", filter="year:<40 AND NOT year:25")
    assert result.understood == '"vivaldi born" within (year:<40 AND NOT year:25)'


def test_a_filter_that_admits_nothing_finds_nothing(index: Index) -> None:
    for result in (
        index.semantic_search("vivaldi", filter="year:>3000"),
        index.hybrid_search("vivaldi", filter="year:>3000"),
        index.naive_embedding_search("vivaldi", filter="year:>3000"),
    ):
        assert (result.hits, result.total, result.passages) == ((), None, 0)


# Conditions


@pytest.mark.parametrize("name", ["semantic_search", "naive_embedding_search", "hybrid_search"])
def test_a_condition_decides_what_is_ranked_and_not_how(index: Index, name: str) -> None:
    search = getattr(index, name)
    matching = set(ids(index.logical_search("vivaldi AND opera*", filter="year:>=1700")))
    result = search(QUERY, where="vivaldi AND opera*", filter="year:>=1700")
    assert set(ids(result)) == matching != set()
    assert result.understood.endswith(" where (vivaldi AND opera*) within year:>=1700")
    assert result.total is None
    weighted = search(QUERY, where="vivaldi^9 AND opera*", filter="year:>=1700")
    assert [(hit.id, hit.score) for hit in weighted.hits] == [
        (hit.id, hit.score) for hit in result.hits
    ]


def test_a_condition_of_metadata_gets_no_note_that_it_does_not_rank(index: Index) -> None:
    assert index.semantic_search(QUERY, where="year:>=1700").notes == ()
    (note,) = index.semantic_search(QUERY, where="vivaldi and opera").notes
    assert note == index.logical_search("vivaldi and opera").notes[0]


@pytest.mark.parametrize("where", ["vivaldi AND nowhere", "year:>3000"])
@pytest.mark.parametrize("name", ["semantic_search", "naive_embedding_search", "hybrid_search"])
def test_a_condition_that_nothing_meets_is_answered_as_a_logical_search_is(
    index: Index, name: str, where: str
) -> None:
    expected = index.logical_search(where, relax=True)
    result = getattr(index, name)(QUERY, where=where, relax=True)
    assert expected.feedback is not None
    asked = replace(expected.asked, query=QUERY)
    assert replace(result, milliseconds=0.0) == replace(expected, asked=asked, milliseconds=0.0)


def test_a_condition_with_problems_is_refused(index: Index) -> None:
    with pytest.raises(QueryError) as caught:
        index.hybrid_search("vivaldi", where="NOT opera")
    assert str(caught.value).endswith("Where: the condition where")
    assert "opera" in str(caught.value)


# Vectors that are not up to date


CHANGED = [replace(old, content="New. ", sentence_ends=(5,)) for old in VIVALDI[:2]]


@pytest.mark.parametrize("present", [VIVALDI[2:], (*CHANGED, *VIVALDI[2:])])
def test_passages_that_changed_meanwhile_are_left_out_and_counted(
    present: tuple[Chunk, ...],
) -> None:
    encoder = HashingEncoder()
    vectors = VectorSource.of(MemoryVectors(VIVALDI, encoder), encoder)
    index = Index(MemoryEngine(present), "memory", vectors=vectors)
    result = index.semantic_search(QUERY)
    assert sorted(ids(result)) == ["griselda.1", "page.1", "scarlatti.1"]
    assert result.notes == (
        "2 passages left out: changed or deleted since the vectors were opened.",
    )
    assert len(index.hybrid_search(QUERY).hits) == 3
    assert len(index.naive_embedding_search(QUERY).hits) == 3


# Opening, encoding, closing


def test_distinct_queries_are_encoded_together_and_invalid_ones_are_skipped() -> None:
    encoder = TableEncoder({})
    index = vector_index(*VIVALDI, encoder=encoder)
    index.encode_queries(["one", "two", "one", "", "x" * 3000, "\udc00", "cafe\u0301"])
    index.encode_queries([" "])
    assert encoder.encoded == [["one", "two", "caf\u00e9"]]


class SlowSource:
    """A source of vectors that opens slowly, and records each opening."""

    def __init__(self, failures: int = 0) -> None:
        self.opened: list[str] = []
        self.failures = failures
        self.encoder = TableEncoder({})
        self.vectors = MemoryVectors(VIVALDI, self.encoder)

    def open_vectors(self) -> MemoryVectors:
        self.opened.append("vectors")
        time.sleep(0.05)
        if self.failures:
            self.failures -= 1
            raise NotServedError("Not yet.")
        return self.vectors

    def open_encoder(self, _: object) -> TableEncoder:
        self.opened.append("encoder")
        return self.encoder

    def index(self) -> Index:
        source = VectorSource(self.open_vectors, self.open_encoder, "memory")
        return Index(MemoryEngine(VIVALDI), "memory", vectors=source)


def test_vectors_are_opened_once_by_the_first_search_of_several_threads() -> None:
    source = SlowSource()
    index = source.index()
    assert index.logical_search("vivaldi").hits
    assert source.opened == []
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: ids(index.semantic_search("q")), range(8)))
    assert source.opened == ["vectors", "encoder"]
    assert results == [results[0]] * 8


def test_a_failed_opening_is_retried() -> None:
    source = SlowSource(failures=1)
    index = source.index()
    with pytest.raises(NotServedError):
        index.semantic_search("q")
    assert index.semantic_search("q").hits
    assert source.opened == ["vectors", "vectors", "encoder"]


def test_closing_the_index_closes_the_encoder_and_the_vectors_once() -> None:
    source = SlowSource()
    index = source.index()
    index.semantic_search("q")
    index.close()
    index.close()
    assert source.encoder.closed == 1
    with pytest.raises(IndexClosedError):
        index.semantic_search("q")
    with pytest.raises(IndexClosedError):
        source.vectors.nearest("passage", source.encoder.encode(["q"]), 1)
    untouched = SlowSource()
    untouched.index().close()
    assert untouched.opened == []


def test_eight_threads_get_the_results_of_one_thread() -> None:
    chunks = random_corpus(Random(8), 80)
    index = vector_index(*chunks)
    random = Random(9)
    queries = [" ".join(random.choices(("opera", "venice", "born", "x"), k=3)) for _ in range(40)]

    def ask(query: str) -> list[list[tuple[str, float, str]]]:
        results = (
            index.semantic_search(query, filter="year:>=5"),
            index.hybrid_search(query),
            index.naive_embedding_search(query),
        )
        return [[(hit.id, hit.score, hit.snippet) for hit in result.hits] for result in results]

    expected = [ask(query) for query in queries]
    barrier = threading.Barrier(8)

    def work(_: int) -> list[object]:
        barrier.wait()
        return [ask(query) for query in queries]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [expected] * 8


def test_closing_waits_for_searches_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SlowSource()
    index = source.index()
    started, released = threading.Event(), threading.Event()
    nearest = source.vectors.nearest

    def slow(*arguments: Any) -> Any:
        started.set()
        assert released.wait(PATIENCE_S)
        return nearest(*arguments)

    monkeypatch.setattr(source.vectors, "nearest", slow)
    with ThreadPoolExecutor(2) as pool:
        search = pool.submit(index.semantic_search, "q")
        assert started.wait(PATIENCE_S)
        closing = pool.submit(index.close)
        time.sleep(0.05)
        assert not closing.done()
        released.set()
        assert len(search.result(PATIENCE_S).hits) == 5
        closing.result(PATIENCE_S)
    with pytest.raises(IndexClosedError):
        index.hybrid_search("q")

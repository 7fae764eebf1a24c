"""Counts of words: their forms, the nearest words, and that a scope hides the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from arag_search.engines.base import Deadline, Page, SearchRequest
from arag_search.errors import ArgumentError
from arag_search.query.problems import QueryError
from arag_search.search.counting.words import MAX_COUNTED_WORDS, WordSummary
from arag_search.search.index import Index
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk, index_of

PASSAGES = [
    chunk(0, "a", "Film", "A film of films. "),
    chunk(1, "b", "", "He filmed a libretto. ", year=2000),
    chunk(2, "c", "", "The librettist of librettos. ", year=2000),
    chunk(3, "d", "", "Silent films by Vivaldi. "),
]


def test_a_word_is_counted_in_title_and_text_with_the_forms_that_occur() -> None:
    assert index_of(*PASSAGES).words("film", "librett*", "fim~1", "title:films", '"=film"') == (
        WordSummary("film", 3, 1, 3, {"films": 2, "film": 1, "filmed": 1}),
        WordSummary("librett*", 2, 0, 2, {"librettist": 1, "libretto": 1, "librettos": 1}),
        WordSummary("fim~1", 3, 1, 3, {"films": 2, "film": 1, "filmed": 1}),
        WordSummary("title:films", 1, forms={"film": 1}),
        WordSummary('"=film"', 1, 1, 1),
    )


def test_words_as_written_count_only_what_is_written_so() -> None:
    index = index_of(*PASSAGES)
    assert [count.passages for count in index.words("film", "films")] == [3, 3]
    written = index.words("film", "films", as_written=True)
    assert [count.passages for count in written] == [1, 2]


def test_the_nearest_words_are_named_where_a_word_occurs_nowhere() -> None:
    (missing,) = index_of(*PASSAGES).words("vivladi")
    assert missing == WordSummary("vivladi", 0, 0, 0, nearest={"vivaldi": 1})


def test_pairs_phrases_and_metadata_are_counted_as_queries() -> None:
    index = index_of(*PASSAGES)
    words = index.words("film AND vivaldi", "silent film", '"silent vivaldi"~2', "year:2000")
    assert [(word.word, word.passages) for word in words] == [
        ("(film AND vivaldi)", 1),
        ('"silent film"', 1),
        ('"silent vivaldi"~2', 1),
        ("year:2000", 2),
    ]
    assert {word.title for word in words} == {None, 0}


def test_every_number_is_exact_beyond_a_thousand() -> None:
    many = [chunk(n, f"d{n}", "", "An opera, a song. ") for n in range(1234)]
    index = index_of(*many, chunk(1234, "last", "", "Operas. "))
    (opera, both) = index.words("opera", '"an opera" AND song')
    assert (opera.passages, dict(opera.forms), both.passages) == (1235, {"opera": 1234}, 1234)
    assert opera.other_forms == 1  # of the passage that was not read


def test_forms_beyond_the_passages_that_are_read_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arag_search.search.counting.words._READ", 4)
    index = index_of(*PASSAGES)
    film, librett, *_ = index.words("film", "librett*", "silen*", "vival*")
    assert (film.forms, film.other_forms) == ({"films": 2, "film": 1}, 1)
    assert (librett.forms, librett.other_forms) == ({"libretto": 1}, 1)


def test_a_scope_hides_counts_forms_and_nearest_words() -> None:
    index = index_of(*PASSAGES, scope="year:2000")
    assert index.words("film", "librett*", "vivladi", "vivaldi") == (
        WordSummary("film", 1, 0, 1, {"filmed": 1}),
        WordSummary("librett*", 2, 0, 2, {"librettist": 1, "libretto": 1, "librettos": 1}),
        WordSummary("vivladi", 0, 0, 0),
        WordSummary("vivaldi", 0, 0, 0),
    )
    assert index_of(*PASSAGES).words("film", filter="year:2000")[0].forms == {"filmed": 1}


def test_all_words_are_counted_in_one_request_and_their_forms_in_another() -> None:
    class Counting(MemoryEngine):
        calls = 0

        def counts_and_pages(self, *arguments: Any, **options: Any) -> tuple[list[int], list[Page]]:
            self.calls += 1
            counts, requests, *rest = arguments
            pages = [super(Counting, self).search(request) for request in requests]
            return super().counts(counts, *rest, **options), pages

        def counts(self, *arguments: Any, **options: Any) -> list[int]:
            self.calls += 1
            return super().counts(*arguments, **options)

        def search(self, request: SearchRequest) -> Page:
            self.calls += 1
            return super().search(request)

    engine = Counting(PASSAGES)
    Index(engine, "").words("film", "librett*", "silent film", "film AND vivaldi")
    assert engine.calls == 2


def test_where_the_nearest_words_take_too_long_they_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: object) -> Iterator[None]:
        raise Deadline(1).exceeded()
        yield

    monkeypatch.setattr("arag_search.search.counting.words.nearest_words", slow)
    assert index_of(*PASSAGES).words("vivladi", "film")[0] == WordSummary("vivladi", 0, 0, 0)


def test_all_problems_are_reported_and_too_many_words_are_refused() -> None:
    index = index_of(*PASSAGES)
    with pytest.raises(QueryError) as raised:
        index.words("film", "a AND", "x:y")
    assert len(raised.value.problems) == 2
    with pytest.raises(QueryError) as raised:
        index.words("film", "vivladi~")
    assert raised.value.mended == "vivladi~1"
    for words in ((), ("film",) * (MAX_COUNTED_WORDS + 1)):
        with pytest.raises(ArgumentError):
            index.words(*words)
    assert len(index.words(*["film"] * MAX_COUNTED_WORDS)) == MAX_COUNTED_WORDS

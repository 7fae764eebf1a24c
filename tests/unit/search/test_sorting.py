"""Searches in the order of a field, and with a limit of passages of a document."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.engines.base import SortBy
from arag_search.errors import ArgumentError
from arag_search.query.fields import Schema
from arag_search.search.counting.fields import parse_sort
from arag_search.search.index import Index
from tests.support.passages import SCHEMA


def ids(index: Index, query: str, **options: Any) -> list[str]:
    return [hit.id for hit in index.logical_search(query, top_k=50, **options).hits]


def test_equal_values_are_in_order_of_score_which_stays_bm25(index: Index) -> None:
    ranked = index.logical_search("vivaldi OR venice OR died")
    scores = {hit.id: hit.score for hit in ranked.hits}
    by_year = index.logical_search("vivaldi OR venice OR died", sort="year")
    assert {hit.id: hit.score for hit in by_year.hits} == scores
    born = [hit for hit in by_year.hits if hit.doc_id == "vivaldi"]
    assert [hit.score for hit in born] == sorted((hit.score for hit in born), reverse=True)
    assert by_year.sort == "year:asc"


def test_a_document_shows_its_first_passages_and_the_total_counts_all(index: Index) -> None:
    result = index.logical_search("vivaldi", per_document=1)
    assert [hit.doc_id for hit in result.hits] == ["vivaldi", "griselda"]
    assert (result.total, result.passages, result.per_document) == (3, 2, 1)
    pages = [ids(index, "vivaldi", per_document=1, offset=offset) for offset in range(3)]
    assert pages == [[hit.id for hit in result.hits], [result.hits[1].id], []]


def test_a_limit_of_passages_counts_at_sentence_granularity_too(index: Index) -> None:
    options: dict[str, Any] = {"granularity": "sentence", "sort": "year:desc"}
    assert ids(index, "vivaldi OR died", **options) == ["griselda.1", "vivaldi.2", "vivaldi.1"]
    assert len(ids(index, "vivaldi OR died", **options, per_document=1)) == 2


def test_a_query_without_words_has_no_note_on_ranking_if_it_is_sorted(index: Index) -> None:
    assert index.logical_search("year:>=1600", sort="year").notes == ()
    assert len(index.logical_search("year:>=1600").notes) == 1


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("year", SortBy("year")),
        (" year:asc ", SortBy("year")),
        ("lang:desc", SortBy("lang", True)),
        ("doc_id", SortBy("doc_id")),
    ],
)
def test_an_order_names_a_field_and_perhaps_a_direction(text: str, sort: SortBy) -> None:
    assert parse_sort(text, SCHEMA) == sort


@pytest.mark.parametrize(
    "text", ["", "title", "colour", "year:down", "year:", "year:asc:desc", "x" * 999]
)
def test_another_order_is_rejected(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_sort(text, SCHEMA)


def test_the_message_names_the_fields_that_have_an_order() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_sort("title:desc", Schema({"year": "number"}))
    assert "title" in caught.value.what


@pytest.mark.parametrize("per_document", [0, -1, 1001])
def test_a_limit_out_of_bounds_is_rejected(index: Index, per_document: int) -> None:
    with pytest.raises(ArgumentError):
        index.logical_search("vivaldi", per_document=per_document)

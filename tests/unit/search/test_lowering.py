"""Passages that a DEMOTE lowered are marked, and a PREFER that nothing meets is noted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from arag_search.search.index import Index
from tests.support.passages import VIVALDI, chunk, index_of


@pytest.fixture(name="index", scope="module")
def index_of_vivaldi() -> Index:
    return index_of(*VIVALDI)


def lowered(index: Index, query: str, **options: Any) -> dict[str, tuple[str, ...]]:
    hits = index.logical_search(query, **options).hits
    return {hit.id: hit.lowered for hit in hits if hit.lowered}


def test_lowered_passages_are_those_whose_score_a_demote_multiplies(index: Index) -> None:
    plain = {hit.id: hit.score for hit in index.logical_search("vivaldi").hits}
    result = index.logical_search("vivaldi DEMOTE^0.25 goldoni")
    marked = {hit.id for hit in result.hits if hit.lowered == ("DEMOTE^0.25 goldoni",)}
    assert marked
    assert marked < set(plain)
    assert {hit.id: hit.score for hit in result.hits} == pytest.approx(
        {id: score * (0.25 if id in marked else 1) for id, score in plain.items()}
    )
    assert [hit.to_dict().get("lowered") for hit in result.hits if hit.lowered] == [
        ["DEMOTE^0.25 goldoni"]
    ] * len(marked)


def test_a_demote_in_a_group_that_does_not_match_lowers_nothing(index: Index) -> None:
    assert lowered(index, "(nowhere DEMOTE goldoni) OR vivaldi") == {}
    assert set(lowered(index, "(vivaldi DEMOTE goldoni) OR nowhere")) == {"griselda.1"}


def test_at_sentence_granularity_the_sentence_is_judged(index: Index) -> None:
    by_sentence = lowered(index, "vivaldi DEMOTE goldoni", granularity="sentence")
    assert "griselda.1" not in by_sentence  # another sentence of it names Goldoni


def test_a_preference_that_no_passage_meets_is_noted(index: Index) -> None:
    notes = index.logical_search("vivaldi PREFER gondola PREFER goldoni").notes
    assert notes == ("PREFER gondola: no passage shown has it.", "gondola occurs nowhere.")


def test_published_queries_have_words_instead_of_operators(index: Index) -> None:
    published = index.logical_search("vivaldi DEMOTE goldoni", as_written=True)
    assert published.understood == r"(vivaldi OR \DEMOTE OR goldoni)"
    assert not any(hit.lowered for hit in published.hits)


def test_a_passage_is_not_taken_for_a_sentence_that_an_id_reads_like() -> None:
    sentences = ("An opera is sung. ",)
    first = chunk(0, "x", "Rome", *sentences)
    like = replace(chunk(1, "y", "Opera", *sentences), id=f"{first.id} 0")
    index = index_of(first, like)
    for query in ("opera", "opera DEMOTE nowhere"):
        hits = index.logical_search(query, granularity="sentence").hits
        assert {hit.id: hit.is_named for hit in hits} == {first.id: False, like.id: True}

"""Reranking: which passages are ordered again, by what, and what stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from arag_search.agent.presets import changed_preset, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.errors import ArgumentError, NotServedError
from arag_search.search.index import Index
from arag_search.search.reranking import RERANKED
from arag_search.search.results import SearchResult
from arag_search.tools.document_search import DocumentSearch
from tests.support.passages import chunk, index_of
from tests.support.semantic_indexes import vector_index

PASSAGES = tuple(
    chunk(number, f"d{number:02}", f"Title {number}", f"The opera has {number} acts.")
    for number in range(RERANKED + 10)
)


class ByNumber:
    """A reranker that prefers greater numbers in a text, or finds all texts equal."""

    name = "by number"

    def __init__(self, *, equal: bool = False) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []
        self.closed = 0
        self._equal = equal

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, texts))
        return [0.5 if self._equal else int(text.split()[1]) / 100 for text in texts]

    def close(self) -> None:
        self.closed += 1


def opened(reranker: ByNumber | None = None) -> Index:
    index = vector_index(*PASSAGES)
    index.reranker = reranker or ByNumber()
    return index


Search = Callable[..., SearchResult]
SEARCHES: dict[str, tuple[Callable[[Index], Search], Any, str]] = {
    "logical": (lambda index: index.logical_search, "opera NOT rain", "opera"),
    "keyword": (lambda index: index.keyword_search, ["opera", "acts"], "opera acts"),
    "semantic": (lambda index: index.semantic_search, "an opera", "an opera"),
    "hybrid": (lambda index: index.hybrid_search, "an opera", "an opera"),
    "naive": (lambda index: index.naive_embedding_search, "an opera", "an opera"),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_the_first_passages_of_any_search_are_ordered_again_and_its_set_and_totals_stay(
    kind: str,
) -> None:
    reranker = ByNumber()
    index = opened(reranker)
    method, query, question = SEARCHES[kind]
    search = method(index)
    plain = search(query, top_k=40)
    again = search(query, top_k=40, rerank=True)
    first, rest = again.hits[:RERANKED], again.hits[RERANKED:]
    assert {hit.id for hit in first} == {hit.id for hit in plain.hits[:RERANKED]}
    assert [hit.relevance for hit in first] == sorted(
        (int(hit.title.split()[1]) / 100 for hit in first), reverse=True
    )
    assert rest == plain.hits[RERANKED:]
    assert (again.total, again.passages) == (plain.total, plain.passages)
    scores = {hit.id: hit.score for hit in plain.hits}
    assert all(hit.score == scores[hit.id] for hit in again.hits)
    assert reranker.asked[0][0] == question
    assert len(reranker.asked[0][1]) == RERANKED
    assert "Title 0\nThe opera has 0 acts." in reranker.asked[0][1]


def test_pages_of_a_search_that_is_ordered_again_join_without_gaps() -> None:
    index = opened()
    whole = index.logical_search("opera", top_k=40, rerank=True).hits
    pages = [
        hit
        for offset in range(0, 40, 7)
        for hit in index.logical_search("opera", top_k=7, offset=offset, rerank=True).hits
    ]
    assert [hit.id for hit in pages] == [hit.id for hit in whole]
    assert index.logical_search("opera", offset=35, rerank=True).offset == 35


def test_equal_scores_keep_the_order_of_the_search() -> None:
    index = opened(ByNumber(equal=True))
    plain = index.logical_search("opera", top_k=20)
    again = index.logical_search("opera", top_k=20, rerank=True)
    assert [hit.id for hit in again.hits] == [hit.id for hit in plain.hits]


def test_a_search_orders_again_only_where_it_is_asked_to_and_ranks_by_score() -> None:
    reranker = ByNumber()
    index = opened(reranker)
    for options in (
        {},
        {"rerank": False},
        {"rerank": True, "offset": RERANKED},
        {"rerank": True, "sort": "year"},
        {"rerank": True, "show": "titles"},
        {"rerank": True, "show": "lines"},
    ):
        hits = index.logical_search("opera", **options).hits  # type: ignore[arg-type]
        assert all(hit.relevance is None for hit in hits)
        assert all("relevance" not in hit.to_dict() for hit in hits)
    assert not index.logical_search("rain", rerank=True).hits
    assert not reranker.asked


def test_a_meaning_is_what_passages_are_compared_with() -> None:
    reranker = ByNumber()
    opened(reranker).hybrid_search("opera AND acts", meaning="a play", rerank=True)
    assert reranker.asked[0][0] == "a play"


def test_an_index_without_a_reranker_says_how_to_name_one() -> None:
    with pytest.raises(NotServedError) as raised:
        index_of(*PASSAGES).logical_search("opera", rerank=True)
    assert str(raised.value) == (
        "The index was opened without a reranker.\nWhere: memory\n"
        "Do: Name one: open_index(..., reranker=NAME), or --reranker NAME."
    )


@pytest.mark.parametrize(
    "options", [{"top_k": 0}, {"top_k": "5"}, {"offset": -1}, {"rerank": "yes"}, {"top_k": 1001}]
)
def test_wrong_arguments_are_refused_as_without_it(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        opened().logical_search("opera", **{"rerank": True, **options})


def test_a_part_shares_the_reranker_and_the_index_closes_it() -> None:
    reranker = ByNumber()
    index = opened(reranker)
    part = index.within("doc_id:(d01 OR d02)")
    assert [hit.doc_id for hit in part.logical_search("opera", rerank=True).hits] == ["d02", "d01"]
    part.close()
    assert not reranker.closed
    index.close()
    assert reranker.closed == 1


def test_a_preset_with_rerank_shows_the_scores_and_needs_a_reranker() -> None:
    preset = changed_preset(load_preset("logical_read"), {"rerank": True}, "test")
    assert preset.fingerprint != load_preset("logical_read").fingerprint
    tool = tools_of(preset, opened())["logical_search"]
    assert "relevance 0.29" in tool.run({"query": "opera"}).text.splitlines()[1]
    plain = tools_of(load_preset("logical_read"), opened())["logical_search"]
    assert "relevance" not in plain.run({"query": "opera"}).text
    with pytest.raises(NotServedError) as raised:
        tools_of(preset, index_of(*PASSAGES))
    assert str(raised.value) == (
        "Preset logical_read orders passages again, and the index has no reranker.\n"
        "Where: memory\nDo: Name one with --reranker, or set rerank: false in the preset."
    )


@pytest.mark.parametrize("backend", ["words", "hybrid", "logical", "semantic"])
def test_documents_are_found_by_the_order_of_the_reranker(backend: str) -> None:
    preset = changed_preset(
        load_preset("agentic_rag"), {"rerank": True, "documents": {"search_backend": backend}}, "t"
    )
    reranker = ByNumber()
    tool = tools_of(preset, opened(reranker))["search"]
    assert isinstance(tool, DocumentSearch)
    assert tool.run({"queries": ["opera"]}).status == "ok"
    assert [query for query, _ in reranker.asked] == ["opera"]

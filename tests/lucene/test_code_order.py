"""Passages of code in an index of a folder: definitions first, tests lower, pages in one order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.cli.search import explanation_text
from arag_search.engines.base import Page, SearchRequest
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from tests.support.code_folders import code_folder


@pytest.fixture(name="index", scope="module")
def index_of_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("code")
    build_index([str(code_folder(folder / "files"))], folder / "index", BuildOptions(language="en"))
    with open_index(folder / "index") as index:
        yield index


@pytest.mark.parametrize(
    ("query", "rule"),
    [("parse_response", "definition"), ("ParseResponse", "words"), ("parse response", "words")],
)
def test_the_definition_of_a_name_comes_first(index: Index, query: str, rule: str) -> None:
    best = index.logical_search(query).hits[0]
    assert (best.doc_id, [of.name for of in best.rules]) == ("lib/parsing.py", [rule])
    explained = index.logical_search(query, explain=True)
    assert "\n  score times " in explanation_text(explained.hits)
    assert explained.hits[0].to_dict()["rules"][0]["name"] == rule
    by_score_alone = index.logical_search(f"{query} DEMOTE nowhere").hits
    assert rule == "definition" or by_score_alone[0].doc_id != "lib/parsing.py"


@pytest.mark.parametrize(
    ("query", "factor"),
    [("sessions drops", 0.9), ("sessions drops test", 1), ("drops AND path:tests/", 1)],
)
def test_a_test_is_lowered_unless_the_query_asks_for_tests(
    index: Index, query: str, factor: float
) -> None:
    hits = {hit.doc_id: hit for hit in index.logical_search(query).hits}
    factors = [rule.factor for rule in hits["tests/test_session.py"].rules if rule.name == "aside"]
    assert factors == [factor] * (factor < 1)


def test_pages_continue_each_other_beyond_the_hits_that_rules_order(index: Index) -> None:
    everything = [hit.id for hit in index.logical_search("parse_response", top_k=100).hits]
    assert len(everything) == len(set(everything)) > 40
    for size in (1, 7, 20):
        pages = [
            hit.id
            for offset in range(0, len(everything), size)
            for hit in index.logical_search("parse_response", top_k=size, offset=offset).hits
        ]
        assert pages == everything


def test_pages_continue_each_other_where_alternatives_take_places_on_page_one(index: Index) -> None:
    query = "parse_response^99 OR (sessions AND drops)"
    total = index.logical_search(query).total
    pages = [
        index.logical_search(query, top_k=5, offset=offset, branches=True, first_page=5)
        for offset in range(0, 60, 5)
    ]
    ids = [hit.id for page in pages for hit in page.hits]
    assert pages[1].first_page == 5
    assert len(ids) == len(set(ids)) == total


def test_sorted_listed_and_published_searches_keep_the_order_of_the_engine(index: Index) -> None:
    for options in (
        {"sort": "file:asc"},
        {"per_document": 1},
        {"show": "titles"},
        {"show": "counts"},
        {"as_written": True},
        {"operators": False},
        {"granularity": "sentence"},
    ):
        hits = index.logical_search("parse_response", **options).hits
        assert hits
        assert not any(hit.rules for hit in hits), options
    for query in ("parse_response DEMOTE client", "parse_response PREFER client", "type:py"):
        assert not any(hit.rules for hit in index.logical_search(query).hits), query


def test_an_index_without_code_is_asked_for_a_page_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    search = LuceneEngine.search

    def noted(engine: LuceneEngine, request: SearchRequest) -> Page:
        asked.append(request.top_k)
        return search(engine, request)

    monkeypatch.setattr(LuceneEngine, "search", noted)
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.md").write_text("# Notes\n\nWe call parse_response.\n", "utf-8")
    build_index([str(files)], tmp_path / "index", BuildOptions(language="en"))
    with open_index(tmp_path / "index") as index:
        assert [hit.rules for hit in index.logical_search("parse_response").hits] == [()]
    assert asked == [5]
    code = tmp_path / "more"
    code.mkdir()
    (code / "more.py").write_text("def parse_response():\n    return 1\n", "utf-8")
    add_documents([str(code)], tmp_path / "index")
    with open_index(tmp_path / "index") as index:
        assert index.logical_search("parse_response").hits[0].rules

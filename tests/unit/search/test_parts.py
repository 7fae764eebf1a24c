"""Parts of an index: what they share with the whole, and that they show nothing of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import FieldsPage, FieldsRequest, Page, SearchRequest
from arag_search.errors import ArgumentError, IndexClosedError, UnknownDocumentError
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.reading import documents
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, VIVALDI, index_of
from tests.support.semantic_indexes import vector_index


def test_a_part_shares_engine_and_vectors_and_closing_it_closes_neither() -> None:
    index = vector_index(*VIVALDI)
    with index.within("year:>1700") as part:
        assert part.engine is index.engine
        assert part.open_vectors() == index.open_vectors()
    assert len(part.semantic_search("opera").hits) == 2
    assert len(index.semantic_search("opera").hits) == len(VIVALDI)
    index.close()
    with pytest.raises(IndexClosedError):
        part.logical_search("opera")
    with pytest.raises(IndexClosedError):
        part.semantic_search("opera")


def test_a_part_costs_no_request() -> None:
    class Silent(MemoryEngine):
        def field_values(self, request: FieldsRequest) -> FieldsPage:
            raise AssertionError

        def scan(self, scope: ResolvedPlan | None, deadline: object = None) -> Iterator[Chunk]:
            raise AssertionError

        def search(self, request: SearchRequest) -> Page:
            raise AssertionError

    index = Index(Silent(VIVALDI, metadata=SCHEMA.metadata), "memory")
    part = index.within("year:>1700")
    assert str(part.scope) == "year:>1700"


def test_filters_of_parts_of_parts_and_of_calls_only_narrow() -> None:
    part = index_of(*VIVALDI, scope="year:>=1700").within("year:<1735").within("NOT doc_id:page")
    assert [chunk.id for chunk in part.scan()] == ["scarlatti.1"]
    result = part.logical_search("griselda OR vivaldi", filter="year:>0")
    assert (result.total, [hit.id for hit in result.hits]) == (1, ["scarlatti.1"])
    assert part.logical_search("griselda", filter="year:1735").total == 0


def test_a_filter_as_data_is_the_same_scope_as_its_text_wherever_one_is_taken() -> None:
    index, text = index_of(*VIVALDI), "lang:(en OR de) AND year:<1700"
    data: dict[str, Any] = {"lang": ["en", "de"], "year": {"lt": 1700}}
    parts = [index.within(filter) for filter in (data, text)]
    assert parts[0].scope == parts[1].scope
    for call in (
        lambda filter: index.logical_search("opera OR vivaldi", filter=filter).understood,
        lambda filter: index.keyword_search(["opera"], filter=filter).understood,
        lambda filter: list(index.scan(filter=filter)),
        lambda filter: list(index.documents(filter=filter)),
        lambda filter: index.read(["vivaldi.1", "griselda.1"], filter=filter),
        lambda filter: index.chunk_read(["vivaldi.1"], filter=filter),
        lambda filter: index.document_read("vivaldi", filter=filter),
        lambda filter: index.words("opera", filter=filter),
        lambda filter: index.fields(filter=filter),
        lambda filter: index.named({"griselda": ""}, filter=filter),
    ):
        assert call(data) == call(text)
    data["lang"].append("it")
    del data["year"]
    assert parts[0].logical_search("opera").total == parts[1].logical_search("opera").total


@pytest.mark.parametrize("wrong", [None, 5, ["lang:en"], b"lang:en"])
def test_a_filter_of_another_type_is_an_argument_error(wrong: Any) -> None:
    index = index_of(*VIVALDI)
    with pytest.raises(ArgumentError, match="filter is "):
        index.within(wrong)
    if wrong is not None:
        with pytest.raises(ArgumentError, match="filter is "):
            index.logical_search("opera", filter=wrong)


@pytest.mark.parametrize("filter", ["", "{}", "opera", "acl:hr", "year:", "year:1700 OR opera"])
def test_a_filter_that_is_none_is_refused(filter: str) -> None:
    with pytest.raises(QueryError) as raised:
        index_of(*VIVALDI).within(filter)
    assert str(raised.value).startswith("Query not run: ")
    assert "\nWhere: the filter" in str(raised.value)


def test_lines_that_the_whole_index_keeps_are_not_those_of_a_part() -> None:
    index = index_of(*VIVALDI)
    part, other = index.within("year:1735"), index.within("NOT doc_id:page")
    for _ in range(2):
        assert index.document_lines(["vivaldi"])[0] is not None
        assert part.document_lines(["vivaldi", "griselda"])[0] is None
        assert other.document_lines(["vivaldi"]) == index.document_lines(["vivaldi"])


def test_ids_are_suggested_in_a_small_part_of_a_large_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "MAX_COMPARED", 3)
    index = index_of(*VIVALDI)
    with pytest.raises(UnknownDocumentError) as raised:
        index.document_read("griseldo")
    assert "Did you mean" not in str(raised.value)
    with pytest.raises(UnknownDocumentError, match='Did you mean "griselda"'):
        index.within("year:>1700").document_read("griseldo")

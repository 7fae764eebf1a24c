"""Answers that are not those of OpenSearch are blamed on the server; errors of ours are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from arag_search.engines.base import FieldsRequest, KeywordRequest, SearchRequest
from arag_search.engines.opensearch import compile
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.faults import UNEXPECTED
from arag_search.engines.opensearch.physical import PhysicalIndex, PhysicalIndexes
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.errors import EngineError, IndexDamagedError
from arag_search.query.reading import parse
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, VIVALDI
from tests.support.plans import planned

WHERE = "http://127.0.0.1:9200"
REQUEST = SearchRequest(planned(parse("opera", SCHEMA).tree))


def client_for(answer: Any) -> Client:
    class Answering(Client):
        """A client that gets the same answer to every call."""

        def call(self, *_: Any, **__: Any) -> Any:
            return answer

    return Answering(parse_address(f"{WHERE}/wiki"), ConnectionOptions())


def engine_for(answer: Any) -> OpenSearchEngine:
    manifest = MemoryEngine(VIVALDI, metadata=SCHEMA.metadata).manifest
    chunks, sentences = (PhysicalIndex(name, 1, None) for name in ("wiki-1", "wiki-1.sentences"))
    indexes = PhysicalIndexes(chunks, sentences, manifest)
    return OpenSearchEngine(client_for(answer), indexes, f"{WHERE}/wiki")


CALLS: dict[str, Callable[[OpenSearchEngine], object]] = {
    "search": lambda engine: engine.search(REQUEST),
    "keyword search": lambda engine: engine.keyword_search(KeywordRequest(("opera",))),
    "counts": lambda engine: engine.counts([(REQUEST.query, "chunk")], None),
    "field values": lambda engine: engine.field_values(FieldsRequest(("year",))),
    "explain": lambda engine: engine.explain(REQUEST, ["vivaldi.1"]),
    "read": lambda engine: engine.read(["vivaldi.1"], None),
    "scan": lambda engine: list(engine.scan(None)),
    "ordinals": lambda engine: list(engine.ordinals()),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [KeyError, TypeError, AttributeError, ValueError, IndexError])
def test_an_error_of_ours_in_the_middle_of_a_method_is_not_blamed_on_the_server(
    name: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise kind("a mistake of ours")

    monkeypatch.setattr(compile, "filtered", broken)
    with pytest.raises(kind, match="a mistake of ours"):
        CALLS[name](engine_for({"hits": {"hits": []}, "responses": []}))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("answer", [{}, {"hits": {}}, {"hits": {"hits": [{}]}}, [], None, "x"])
def test_an_answer_that_is_cut_or_changed_is_blamed_on_the_server(name: str, answer: Any) -> None:
    with pytest.raises(EngineError, match="The server does not answer as OpenSearch does") as error:
        CALLS[name](engine_for(answer))
    assert error.value.where == WHERE


def test_what_reading_an_answer_raises_is_told_with_four_parts_unless_it_is_an_error_of_ours() -> (
    None
):
    client = client_for(None)
    assert client.read(len, [1, 2]) == 2
    with pytest.raises(EngineError) as error:
        client.read(lambda answer: answer["hits"], {})
    assert error.value.where == str(WHERE)
    assert "hits" in error.value.what
    for kind in UNEXPECTED:

        def fails(_: Any, kind: type[Exception] = kind) -> None:
            raise kind("x")

        with pytest.raises(EngineError):
            client.read(fails, {})

    def damaged(_: Any) -> None:
        raise IndexDamagedError("No _meta.", where="wiki")

    with pytest.raises(IndexDamagedError, match="No _meta"):
        client.read(damaged, {})

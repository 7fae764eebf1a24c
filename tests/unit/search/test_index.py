"""The searches of an open index as Python calls them: one signature, arguments, filters."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import arag_search
from arag_search.errors import ArgumentError, UnknownChunkError
from arag_search.search.index import Index
from tests.support.passages import VIVALDI, index_of

SEARCHES = tuple(name for name in dir(Index) if name.endswith("_search"))
METHODS = (*SEARCHES, "parse", "read", "chunk_read", "scan", "encode_queries", "with_neighbours")
FILTERS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "lang:en": lambda metadata: "en" in metadata.get("lang", ()),
    "year:>=1700": lambda metadata: metadata.get("year", 0) >= 1700,
    "NOT lang:en": lambda metadata: "en" not in metadata.get("lang", ()),
    "lang:it OR year:1721": lambda metadata: metadata.get("year") == 1721 or "lang" in metadata,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_has_the_same_first_parameters(name: str) -> None:
    _, asked, *options = inspect.signature(getattr(Index, name)).parameters.values()
    assert asked.name in ("query", "keywords")
    assert [option.name for option in options[:3]] == ["top_k", "offset", "filter"]
    assert [option.default for option in options[:3]] == [5, 0, None]
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


def checked_functions() -> list[tuple[str, Callable[..., Any]]]:
    methods = [(name, getattr(index_of(*VIVALDI), name)) for name in METHODS]
    return [*methods, ("open_index", arag_search.open_index), ("parse", arag_search.parse)]


@pytest.mark.parametrize(("name", "function"), checked_functions())
def test_every_public_argument_of_a_wrong_type_is_refused(
    name: str, function: Callable[..., Any]
) -> None:
    parameters = inspect.signature(function).parameters.values()
    right: dict[str, Any] = {
        "query": "opera", "text": "opera", "keywords": ["opera"], "queries": ["opera"],
        "ids": ["page.1"], "chunk": VIVALDI[0], "location": "nowhere",
    }  # fmt: skip
    needed = {key: right[key] for key in (p.name for p in parameters) if key in right}
    for parameter in parameters:
        for wrong in (object(), b"opera", 1j, [b"opera"], {"opera"}):
            with pytest.raises(ArgumentError) as caught:
                function(**{**needed, parameter.name: wrong})
            error = caught.value
            assert error.what.startswith(parameter.name)
            assert all((error.where, error.allowed, error.do)), error


def test_a_list_of_one_query_and_a_number_as_text_are_refused(index: Index) -> None:
    with pytest.raises(ArgumentError) as caught:
        index.logical_search(["vivaldi"])  # type: ignore[arg-type]
    assert str(caught.value) == (
        "query is ['vivaldi'].\nWhere: Index.logical_search\n"
        "Allowed: a valid string\nDo: See help(Index.logical_search)."
    )
    with pytest.raises(ArgumentError, match=r"^top_k is True\."):
        index.keyword_search(["vivaldi"], top_k=True)
    with pytest.raises(ArgumentError, match=r"^top_k is '5'\."):
        index.logical_search("vivaldi", top_k="5")  # type: ignore[arg-type]


@pytest.mark.parametrize("scope", [None, *FILTERS])
@pytest.mark.parametrize("filter", FILTERS)
def test_a_filter_narrows_the_scope_of_every_call_and_never_widens_it(
    scope: str | None, filter: str
) -> None:
    def is_allowed(metadata: Mapping[str, Any]) -> bool:
        return FILTERS[filter](metadata) and (scope is None or FILTERS[scope](metadata))

    everything, index = index_of(*VIVALDI), index_of(*VIVALDI, scope=scope)
    for search in (
        lambda index, **options: index.logical_search("vivaldi OR opera", **options),
        lambda index, **options: index.logical_search(
            "vivaldi OR opera", granularity="sentence", explain=True, **options
        ),
        lambda index, **options: index.keyword_search(["Vivaldi", "opera"], **options),
    ):
        result = search(index, filter=filter)
        expected = [hit for hit in search(everything).hits if is_allowed(hit.metadata)]
        assert list(result.hits) == expected
        assert result.passages == len(expected)
    allowed = [chunk if is_allowed(chunk.metadata) else None for chunk in VIVALDI]
    assert index.read([chunk.id for chunk in VIVALDI], filter=filter) == allowed
    assert list(index.scan(filter=filter)) == [chunk for chunk in allowed if chunk is not None]


def test_what_is_read_under_a_filter_obeys_it_and_so_do_its_neighbours() -> None:
    index = index_of(*VIVALDI)
    assert index.chunk_read(["vivaldi.1"], filter="lang:en")[0].next_id == "vivaldi.2"
    with pytest.raises(UnknownChunkError, match=r"No chunk has the id \"vivaldi\.1\""):
        index.chunk_read(["griselda.1", "vivaldi.1"], filter="year:>1700")
    assert index.read(["vivaldi.1"], filter="year:>1700") == [None]


def test_a_filter_is_part_of_what_was_understood_and_its_mistakes_are_named(index: Index) -> None:
    assert index.logical_search("opera", filter="year:1735").understood == (
        "opera within year:1735"
    )
    assert index.keyword_search(["opera"], filter="NOT lang:en").understood == (
        '"opera" within NOT lang:en'
    )
    for call in (
        lambda: index.logical_search("opera", filter="opera"),
        lambda: index.keyword_search(["opera"], filter="opera"),
        lambda: index.read(["page.1"], filter="opera"),
        lambda: index.chunk_read(["page.1"], filter="opera"),
        lambda: index.scan(filter="opera"),
    ):
        with pytest.raises(arag_search.QueryError, match="the filter"):
            call()


def test_results_are_dictionaries_of_json(index: Index) -> None:
    for result in (
        index.logical_search("opera AND venice", explain=True, top_k=1),
        index.logical_search("opera AND nowhere"),
        index.keyword_search(["Venice"], filter="lang:it"),
    ):
        values = result.to_dict()
        assert json.loads(json.dumps(values)) == values
        for hit, printed in zip(result.hits, values["hits"], strict=True):
            highlights = result.highlights(hit)
            assert highlights is not None
            assert printed == {**hit.to_dict(), "highlights": highlights.to_dict()}
    assert values["hits"][0]["metadata"] == {"year": 1678, "lang": ["en", "it"]}
    read = index.chunk_read(["vivaldi.2"])[0].to_dict()
    assert json.loads(json.dumps(read)) == read
    assert (read["doc_id"], read["previous_id"], read["next_id"]) == ("vivaldi", "vivaldi.1", None)


def test_feedback_counts_within_the_filter(index: Index) -> None:
    result = index.logical_search("goldoni AND opera", filter="year:1721")
    assert str(result.feedback).startswith("Alone: goldoni occurs nowhere; opera 1.")

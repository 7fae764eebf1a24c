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
from tests.support.passages import VIVALDI, chunk, index_of

SEARCHES = tuple(name for name in dir(Index) if name.endswith("_search"))
METHODS = (*SEARCHES, "read", "chunk_read", "scan", "encode_queries", "with_neighbours")
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
    assert caught.value.where == "Index.logical_search"
    assert "vivaldi" in caught.value.what
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
    with pytest.raises(UnknownChunkError, match=r"No passage has the id \"vivaldi\.1\""):
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


def test_of_equal_scores_on_a_page_words_as_typed_come_first() -> None:
    names = ("Dori Bell", "Doris Hill", "Dori Wood", "Doris Lake")
    rows = [chunk(n, f"d{n}", "", f"{name} is here.") for n, name in enumerate(names)]
    index = index_of(*rows)

    def order(query: str, **options: Any) -> str:
        return "".join(hit.doc_id[1] for hit in index.logical_search(query, **options).hits)

    assert order("Doris") == "1302"
    assert order("Dori") == "0213"
    assert order("dori doris") == "0123"
    assert order("Doris OR lake") == "3102"  # a better score is before all
    assert order("title:Doris OR here") == "0123"
    assert order("Doris", granularity="sentence") == "1302"
    assert order("Doris", show="lines") == "1302"
    # A page has the passages that it has by corpus order.
    assert order("Doris", top_k=2) + order("Doris", top_k=2, offset=2) == "1032"
    # What is in corpus order stays so, and what is searched as written.
    assert order("Doris", show="titles", after="d0.1") == "123"
    assert order("Doris", operators=False) == "13"


def test_a_line_begins_at_the_word_as_typed() -> None:
    sentence = f"Dori came; {'and so on ' * 20}. Doris came, {'too ' * 20}."
    result = index_of(chunk(0, "d", "", sentence)).logical_search("doris", show="lines")
    assert result.first_match(sentence, "d") == sentence.index("Doris")
    assert result.first_match("A dori.", "d") == 2
    assert result.first_match("None.", "d") == 0

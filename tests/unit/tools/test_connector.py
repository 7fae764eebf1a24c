"""The tools of connectors: their JSON, what they make of any query, and their bounds."""

from __future__ import annotations

import json

import pytest

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.connector import RESULTS, ConnectorFetch, ConnectorSearch
from arag_search.tools.preset import plain_preset
from arag_search.tools.tool import ToolResult
from tests.support.passages import VIVALDI, chunk, index_of

QUESTION = "Who revised the libretto of Griselda?"


def search(query: object, *chunks: Chunk, scope: str | None = None) -> ToolResult:
    index = index_of(*(chunks or VIVALDI), scope=scope)
    return ConnectorSearch(index).served_as("notes").run({"query": query})


def fetch(id_: object, *chunks: Chunk, tokens: int = 12_000) -> ToolResult:
    tool = ConnectorFetch(index_of(*(chunks or VIVALDI)), plain_preset(max_result_tokens=tokens))
    return tool.served_as("notes").run({"id": id_})


def ids(query: str, *chunks: Chunk) -> list[str]:
    return [entry["id"] for entry in json.loads(search(query, *chunks).text)["results"]]


def test_a_search_returns_id_title_and_url_as_json_and_as_an_object() -> None:
    result = search("griselda AND goldoni")
    content = {
        "results": [
            {
                "id": "griselda.1",
                "title": "Griselda (Vivaldi)",
                "url": "arag://notes/chunk/griselda.1",
            }
        ]
    }
    assert (json.loads(result.text), result.structured) == (content, content)
    assert (result.status, result.ids, result.total) == ("ok", ("griselda.1",), 1)


def test_parts_of_a_document_are_told_apart_and_a_passage_without_title_has_its_document() -> None:
    titles = {
        entry["title"]
        for entry in json.loads(search("violin vienna untitled page").text)["results"]
    }
    assert {"Antonio Vivaldi (1 of 2)", "Antonio Vivaldi (2 of 2)", "page"} <= titles


@pytest.mark.parametrize(
    ("query", "first"),
    [
        (QUESTION, "griselda.1"),
        ("goldoni libretto", "griselda.1"),
        ('"born in venice"', "vivaldi.1"),
        ("year:1721 AND griselda", "scarlatti.1"),
        ("griselda NOT vivaldi", "scarlatti.1"),
        ("vienna OR", "vivaldi.2"),  # corrected
        ("Vivaldi: where (did he die, in Vienna?", "vivaldi.2"),
        ('what about "Carlo Goldoni', "griselda.1"),
        ("author:Goldoni revised", "griselda.1"),
        ("vienna AND griselda AND goldoni", "griselda.1"),  # matches nothing: any of its words
        ("opera" + " goldoni" * 400, "griselda.1"),  # longer than a query may be
        ("opera " + "AND (" * 50 + "goldoni", "griselda.1"),
        ("\ud800 goldoni", "griselda.1"),
    ],
)
def test_any_query_with_words_is_answered(query: str, first: str) -> None:
    assert ids(query)[0] == first


@pytest.mark.parametrize("query", ["griselda AND year:1999", "griselda NOT opera", "xylophone"])
def test_fields_and_exclusions_are_obeyed_even_if_nothing_is_left(query: str) -> None:
    result = search(query)
    assert (result.structured, result.status) == ({"results": []}, "empty")


def test_the_scope_of_the_index_is_obeyed() -> None:
    result = search("griselda", scope="year:1721")
    assert result.ids == ("scarlatti.1",)


@pytest.mark.parametrize("query", ["", "  ", "?!"])
def test_a_query_without_a_word_is_an_error_that_says_what_to_write(query: str) -> None:
    result = search(query)
    assert (result.status, result.structured) == ("error", None)
    assert "Write a question, or a few words." in result.text


def test_a_search_shows_at_most_so_many_results_and_never_too_many_tokens() -> None:
    title = "Opera " + "🎭 " * 300
    chunks = [chunk(number, f"d{number}", title, "An opera.") for number in range(30)]
    tool = ConnectorSearch(index_of(*chunks), plain_preset(max_result_tokens=400))
    result = tool.run({"query": "opera"})
    assert 0 < len(json.loads(result.text)["results"]) < RESULTS
    assert result.tokens <= 400


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        (("not a url", "http://example.org"), "http://example.org"),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("https://a b", None),
        ("http://[", None),
    ],
)
def test_the_field_url_is_cited_if_it_is_an_address_of_the_web(
    value: str | tuple[str, ...], url: str | None
) -> None:
    page = chunk(0, "p/a ü", "Page", "A page.", url=value)
    own = "arag://notes/{}/p%2Fa%20%C3%BC{}"
    (entry,) = json.loads(search("page", page).text)["results"]
    assert entry["url"] == (url or own.format("chunk", ".1"))
    assert json.loads(fetch("p/a ü", page).text)["url"] == (url or own.format("document", ""))


def test_a_passage_is_fetched_with_its_metadata_and_neighbours() -> None:
    result = fetch("vivaldi.1")
    content = {
        "id": "vivaldi.1", "title": "Antonio Vivaldi", "text": VIVALDI[0].content,
        "url": "arag://notes/chunk/vivaldi.1", "metadata": {"year": "1678", "lang": "en, it",
        "doc_id": "vivaldi", "part": "1 of 2", "next_id": "vivaldi.2"},
    }  # fmt: skip
    assert (json.loads(result.text), result.structured) == (content, content)


def test_a_document_is_fetched_by_its_id_as_one_text() -> None:
    content = json.loads(fetch("vivaldi").text)
    assert content["text"] == f"{VIVALDI[0].content}\n\n{VIVALDI[1].content}"
    assert content["url"] == "arag://notes/document/vivaldi"
    assert content["metadata"]["passages"] == "2"


@pytest.mark.parametrize("id_", ["unknown", "", "\ud800", "x" * 5_000])
def test_an_unknown_id_is_an_error(id_: str) -> None:
    result = fetch(id_)
    assert result.status == "error"
    assert result.text.startswith('There is nothing with the id "')
    assert result.text.endswith('". Use an id that search gave.')
    assert result.tokens < 100


@pytest.mark.parametrize("tokens", [200, 400, 12_000])
@pytest.mark.parametrize("text", ["A word. " * 20_000, '"\\\n\x07🎭' * 5_000])
def test_a_long_text_is_cut_so_that_the_reply_stays_json_within_its_bound(
    text: str, tokens: int
) -> None:
    page = chunk(0, "long", "T" * 3_000, text, note="n" * 9_000, other="o " * 9_000)
    result = fetch("long.1", page, tokens=tokens)
    content = json.loads(result.text)
    assert content["metadata"]["truncated"] == "the text ends early"
    assert content["text"]
    assert count_tokens(result.text) <= tokens


def test_a_document_of_many_passages_says_how_many_are_left_out() -> None:
    chunks = [chunk(0, "d", "D", f"Text {part}.", part=part, parts=80) for part in range(1, 81)]
    content = json.loads(fetch("d", *chunks).text)
    assert content["metadata"]["truncated"] == "50 of 80 passages; search for others"
    assert content["text"].startswith("Text 1.\n\nText 2.")


def test_the_description_names_the_fields_of_the_index() -> None:
    index: Index = index_of(*VIVALDI)
    assert ConnectorSearch(index).description.endswith(
        'Fields of this corpus: year (number, 1678 to 1735), lang ("en", "it").'
    )

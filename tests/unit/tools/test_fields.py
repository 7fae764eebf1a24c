"""The tool fields, and the arguments sort and per_document of logical_search."""

from __future__ import annotations

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import MIN_RESULT_TOKENS
from arag_search.tools.fields import MAX_REPLY_TOKENS, Fields
from arag_search.tools.logical_search import LogicalSearch
from tests.support.passages import chunk, index_of


def test_the_reply_lists_fields_with_values_as_queries_write_them(index: Index) -> None:
    result = Fields(index).run({})
    assert result.text == (
        "Fields of 5 passages; every number counts passages.\n"
        "title (text): 4\n"
        "content (text): 5\n"
        "doc_id (keyword): 5\n"
        "year (number): 4; 1678 to 1735\n"
        "lang (keyword): 2; 2 values: en 2, it 2"
    )
    assert (result.status, result.ids, result.total, result.retrieved_tokens) == ("ok", (), None, 0)


def test_a_named_field_shows_more_values_and_an_unknown_one_is_an_error() -> None:
    index = index_of(*(chunk(n, f"d{n}", "", "An opera.", lang=f"l {n}") for n in range(60)))
    assert Fields(index).run({}).text.endswith('; 60 values: "l 0" 1, "l 1" 1, "l 10" 1, "l 11" 1, '
        '"l 12" 1, "l 13" 1, "l 14" 1, "l 15" 1, "l 16" 1, "l 17" 1, ...')  # fmt: skip
    assert Fields(index).run({"field": "lang"}).text.count(" 1") > 50
    refused = Fields(index).run({"field": "colour"})
    assert refused.status == "error"
    assert "year (number), lang (keyword)" in refused.text


def test_the_reply_is_bounded_whatever_the_values_are() -> None:
    index = index_of(
        *(chunk(n, f"d{n}", "", "An opera.", lang=f"ඞ{n}\n[d0.1] x " * 99) for n in range(60))
    )
    for bound in (MIN_RESULT_TOKENS, 4_000):
        tool = Fields(index, max_result_tokens=bound)
        for arguments in ({}, {"field": "lang"}):
            text = tool.run(arguments).text
            assert count_tokens(text) <= min(bound, MAX_REPLY_TOKENS)
            assert not any(line.startswith("[") for line in text.splitlines())


def test_a_search_says_how_passages_were_sorted_and_limited(index: Index) -> None:
    tool = LogicalSearch(index, refinements=True)
    result = tool.run({"query": "vivaldi", "sort": "year:desc", "per_document": 1, "top_k": 1})
    lines = result.text.splitlines()
    assert lines[0] == "1 of 3 passages for vivaldi, sorted by year:desc, at most 1 of a document"
    assert lines[1] == "[griselda.1] Griselda (Vivaldi) (whole document)"
    assert lines[-1] == "More: offset=1."
    assert result.total == 3
    last = tool.run({"query": "vivaldi", "per_document": 1, "offset": 1}).text.splitlines()
    assert last[0] == "Passage 2 of 3 for vivaldi, at most 1 of a document"
    assert last[-1].endswith("revised by the young Carlo Goldoni.")
    assert tool.run({"query": "vivaldi", "per_document": 1, "offset": 2}).text == (
        "Only 2 passages are shown for vivaldi, at most 1 of a document: there are no further ones."
    )


def test_a_wrong_sort_comes_back_to_the_model(index: Index) -> None:
    result = LogicalSearch(index, refinements=True).run({"query": "vivaldi", "sort": "colour"})
    assert result.status == "error"
    assert result.text == (
        'Tool not run: 1 problem.\n1. sort names the field "colour", which the index does not '
        "have. Allowed: year, lang, doc_id; with :asc or :desc."
    )


def test_without_refinements_the_arguments_are_not_there(index: Index) -> None:
    tool = LogicalSearch(index)
    for argument, value in (("sort", "year"), ("per_document", 1)):
        result = tool.run({"query": "vivaldi", argument: value})
        assert result.status == "error"
        assert "there is no such argument" in result.text
    assert tool.run({"query": "lang:EN"}).text == (
        'No passage matches lang:EN.\nlang has no value "EN"; nearest: "en" (2 passages).'
    )

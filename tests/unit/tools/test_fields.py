"""The tool fields."""

from __future__ import annotations

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import MIN_RESULT_TOKENS
from arag_search.tools.fields import MAX_REPLY_TOKENS, Fields
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

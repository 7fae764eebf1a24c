"""The tool words: words, and fields with their values."""

from __future__ import annotations

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.words import MAX_FIELDS_TOKENS, Words
from arag_search.tools.preset import MIN_RESULT_TOKENS, plain_preset
from tests.support.passages import chunk, index_of


def test_the_reply_lists_fields_with_values_as_queries_write_them(index: Index) -> None:
    result = Words(index).run({})
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
    assert Words(index).run({}).text.endswith('; 60 values: "l 0" 1, "l 1" 1, "l 10" 1, "l 11" 1, '
        '"l 12" 1, "l 13" 1, "l 14" 1, "l 15" 1, "l 16" 1, "l 17" 1, ...')  # fmt: skip
    assert Words(index).run({"fields": ["lang"]}).text.count(" 1") > 50
    refused = Words(index).run({"fields": ["colour"]})
    assert refused.status == "error"
    assert "year (number), lang (keyword)" in refused.text


def test_the_reply_is_bounded_whatever_the_values_are() -> None:
    index = index_of(
        *(chunk(n, f"d{n}", "", "An opera.", lang=f"ඞ{n}\n[d0.1] x " * 99) for n in range(60))
    )
    for bound in (MIN_RESULT_TOKENS, 4_000):
        tool = Words(index, plain_preset(max_result_tokens=bound))
        for arguments in ({}, {"fields": ["lang"]}):
            text = tool.run(arguments).text
            assert count_tokens(text) <= min(bound, MAX_FIELDS_TOKENS)
            assert not any(line.startswith("[") for line in text.splitlines())


def test_words_are_counted_with_their_forms_and_the_nearest_of_one_that_occurs_nowhere() -> None:
    index = index_of(
        chunk(0, "a", "Film", "A film of films. ", year=1999),
        chunk(1, "b", "", "He filmed a libretto. ", year=2001),
        chunk(2, "c", "", "The librettist of librettos. ", year=2002),
        chunk(3, "d", "", "Silent films. ", year=2003),
    )
    tool = Words(index)
    words = ["film", "librett*", "silent film", "libretta", "Film AND librett*", "=", "year:1999"]
    refused = tool.run({"words": words})
    assert refused.status == "error"
    assert refused.text.startswith('Query not run: 1 problem.\n1. column 1, "="')
    del words[5]
    result = tool.run({"words": words})
    assert result.text == (
        "Every number counts passages.\n"
        "film: 3 (title 1, text 3); films 2, film 1, filmed 1\n"
        "librett*: 2; librettist 1, libretto 1, librettos 1\n"
        '"silent film": 1\n'
        "libretta: 0; nearest libretto 2\n"
        "(Film AND librett*): 1\n"
        "year:1999: 1"
    )
    assert (result.status, result.ids, result.total, result.retrieved_tokens) == ("ok", (), None, 0)
    assert tool.run({"words": ["film", "libretto"], "filter": "year:>=2002"}).text == (
        "Every number counts passages.\nfilm: 1; films 1\nlibretto: 1; librettos 1"
    )
    data: list[object] = [{"year": {"gte": 2002}}, '{"year": {"gte": 2002}}']
    for filter in data:
        assert tool.run({"words": ["film"], "filter": filter}).text.endswith("\nfilm: 1; films 1")
    both = tool.run({"words": ["libretto"], "fields": ["year"]}).text
    assert both.splitlines()[1:] == [
        "libretto: 2; libretto 1, librettos 1",
        "Fields of 4 passages; every number counts passages.",
        "year (number): 4; 1999 to 2003",
    ]


def test_wrong_words_and_filters_come_back_to_the_model(index: Index) -> None:
    tool = Words(index)
    two = tool.run({"words": ["vivaldi AND", "opera", "a:b"]})
    assert (two.status, two.text.splitlines()[0]) == ("error", "Query not run: 2 problems.")
    assert tool.run({"words": ["opera"], "filter": "opera"}).status == "error"
    many = tool.run({"words": ["a"] * 71}).text
    assert many.endswith("Allowed: a list of 0 to 70 strings.")


def test_a_reply_on_many_words_is_bounded() -> None:
    forms = [f"librett{'o' * n}" for n in range(1, 9)]
    index = index_of(*(chunk(n, f"d{n}", "", f"{form}. ") for n, form in enumerate(forms)))
    for bound in (MIN_RESULT_TOKENS, 4_000):
        tool = Words(index, plain_preset(max_result_tokens=bound))
        assert count_tokens(tool.run({"words": ["librett*"] * 70}).text) <= bound

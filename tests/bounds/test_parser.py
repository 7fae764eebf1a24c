"""Very large queries: problems, messages and time stay bounded."""

from __future__ import annotations

import contextlib
import gc
import time

import pytest

from arag_search.query.fields import Schema
from arag_search.query.filters import parse_filter
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.problems import MAX_PROBLEMS, QueryError
from arag_search.query.reading import parse

SCHEMA = Schema({"year": "number", "lang": "keyword", "published": "date"})


HUGE = {
    "quotes": '"' * 100_000,
    "parentheses": "(" * 100_000 + "a" + ")" * 100_000,
    "closing": ")" * 100_000,
    "nots": "NOT " * 50_000 + "a",
    "minus": "-" * 100_000 + "a",
    "backslashes": "\\" * 100_000,
    "surrogates": "\ud800" * 1_000,
    "marks": "a\u0301\u200b\u200f\u202e" * 20_000,
    "words": "vivaldi OR " * 9_000 + "a",
    "stars": "*" * 100_000,
    "colons": ":" * 100_000,
    "carets": "a^" * 50_000,
    "brackets": "[" * 100_000,
    "questions": "?" * 100_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_and_hostile_text_is_rejected_or_parsed(name: str) -> None:
    text = HUGE[name]
    if len(text) > MAX_CHARACTERS:
        with pytest.raises(QueryError, match="characters; at most 2,000"):
            parse(text, SCHEMA)
    short = text[:MAX_CHARACTERS]
    for limits in (True, False):
        try:
            parse(short if limits else text[:10_000], SCHEMA, limits=limits)
        except QueryError as error:
            assert error.problems


_LONG = {
    **HUGE,
    "fields": "a:b ",
    "name": "a" * 100_000 + ":b",
    "paths": r"C:\\x ",
    "phrase": '"' + "a" * 100_000,
    "apostrophes": "a'b'c'd'e'f'g'h ",
    "symbols": "C++ ",
    "excluded": "!" + "a" * 100_000,
    "filters": "lang:a^2 ",
    "blanks": "title: a ",
}


@pytest.mark.parametrize("name", _LONG)
def test_without_limits_the_problems_and_their_message_are_bounded(name: str) -> None:
    unit = _LONG[name]
    text = (unit * (100_000 // len(unit) + 1))[:100_000]
    for read in (lambda: parse(text, SCHEMA, limits=False), lambda: parse_filter(text, SCHEMA)):
        try:
            read()
        except QueryError as error:
            assert 1 <= len(error.problems) <= MAX_PROBLEMS
            assert error.mended is None
            assert len(str(error)) < 4_000


def test_parsing_without_limits_stops_at_the_maximum_of_problems() -> None:
    with pytest.raises(QueryError) as raised:
        parse("vi* " * 100_000, SCHEMA, limits=False)
    assert len(raised.value.problems) == MAX_PROBLEMS
    assert raised.value.problems[-1].column == 4 * MAX_PROBLEMS - 3
    assert str(raised.value).splitlines()[-1] == "And at least 1,980 more, further on."


@pytest.mark.long
def test_twice_the_text_takes_at_most_2_6_times_as_long() -> None:
    units = ("vivaldi ", '"a b" ', "a AND (b OR c) ", "(a ", "a^2 ", "x:y ", '"', "é’ö ")

    def seconds(unit: str, length: int) -> float:
        text = (unit * length)[:length]
        start = time.process_time()
        with contextlib.suppress(QueryError):
            parse(text, SCHEMA)
        return time.process_time() - start

    gc.disable()  # a collection would scan the objects of other tests during a long parse
    try:
        for unit in units:
            ratios: list[float] = []
            while not ratios or min(ratios) > 2.6:  # a slow ratio may be a pause of the machine
                assert len(ratios) < 5, (unit, ratios)
                short, long = (min(seconds(unit, n) for _ in range(3)) for n in (1_000, 2_000))
                ratios.append(long / short)
    finally:
        gc.enable()

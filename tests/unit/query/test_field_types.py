"""The types of metadata fields."""

from __future__ import annotations

from datetime import date
from typing import cast

import pytest

from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Interval
from arag_search.plan.lower import lower
from arag_search.query import field_types
from arag_search.query.field_types import (
    BOOLEAN,
    FIELD_TYPES,
    KEYWORD,
    FieldType,
    date_text,
    period_ms,
    relative_dates,
)
from arag_search.query.fields import ANY_SCHEMA, Schema
from arag_search.query.filters import parse_filter
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import KeywordEquals
from arag_search.search.advice.judging import Judge
from tests.support.passages import chunk

SCHEMA = Schema({"draft": "boolean", "year": "number"})
NOT_A_BOOLEAN = (
    "draft is a boolean field, and this is not a boolean. Write draft:true or draft:false."
)


@pytest.mark.parametrize(
    "text",
    [
        "0001",
        "1678",
        "2001-05-31",
        "2001-05-31T12:30",
        "2001-05-31T12:30:05",
        "1950-01-02T00:00:00.5",
    ],
)
def test_a_moment_is_written_as_the_shortest_date_that_begins_there(text: str) -> None:
    moment = period_ms(text)[0]
    assert period_ms(date_text(moment))[0] == moment
    assert len(date_text(moment)) <= max(len(text), 10) + 2


@pytest.mark.parametrize(
    ("text", "column", "first", "last"),
    [
        ("published:2026-08-01", "published", "2026-08-01T00:00", "2026-08-01T23:59:59.999"),
        ("published:2026-08-01T00:30", "published", "2026-08-01T00:30", "2026-08-01T00:30:59.999"),
        ("published:2026-08-01T00:30Z", "published@", "2026-08-01T00:30",
         "2026-08-01T00:30:59.999"),
        ("published:2026-08-01T00:30+02:00", "published@", "2026-07-31T22:30",
         "2026-07-31T22:30:59.999"),
        ("published:[2026-08-01 TO 2026-08-01T12:00:00-03:30]", "published@", "2026-08-01",
         "2026-08-01T15:30:00.999"),
        ("published:[0001-01-01T00:00+05:00 TO 2001]", "published@", "0000", "2001-12-31"),
    ],
)  # fmt: skip
def test_a_day_is_the_one_written_and_a_time_with_a_zone_is_a_moment(
    text: str, column: str, first: str, last: str
) -> None:
    interval = lower(parse(text, Schema({"published": "date"})).tree).interval
    assert interval is not None
    assert (interval.column, interval.lower, interval.upper) == (
        column,
        -62_135_614_800_000 if first == "0000" else period_ms(first)[0],
        period_ms(last)[1],
    )


# Ranges


@pytest.mark.parametrize(
    ("text", "canonical", "least", "greatest"),
    [
        ("size:2K", "size:2k", 2_000, 2_999),
        ("size:>2k", "size:>2k", 3_000, (1 << 63) - 1),
        ("size:{2k TO 4K}", "size:{2k TO 4k}", 3_000, 3_999),
    ],
)
def test_an_ordered_type_costs_its_row_alone(
    monkeypatch: pytest.MonkeyPatch, text: str, canonical: str, least: int, greatest: int
) -> None:
    size = FieldType(
        "size",  # type: ignore[arg-type]
        "long",
        read=str,
        stored=lambda value: int(str(value)),
        share=1,
        allowed="{name}:2k",
        holds=lambda text: text[:-1].isdigit() and text[-1] in "kK",
        ends=lambda text: (int(text[:-1]) * 1_000, int(text[:-1]) * 1_000 + 999),
        canonical=str.lower,
    )
    monkeypatch.setitem(cast("dict[str, FieldType]", FIELD_TYPES), "size", size)
    parsed = parse(text, Schema({"size": "size"}))  # type: ignore[dict-item]
    assert parsed.text == canonical
    clause = lower(parsed.tree)
    assert clause.interval == Interval("size", "size", least, greatest)  # type: ignore[arg-type]
    hits = [
        Hit.of(chunk(at, f"d{at}", "", "Text.", size=number), 0.0)
        for at, number in enumerate((least - 1, least, least + 1))
    ]
    assert Judge({"size": "size"}).meeting(hits, [clause]) == [  # type: ignore[dict-item]
        {"d1.1", "d2.1"}
    ]


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("published:{2002 TO 2001}", "published:[2001 TO 2002]"),
        ("published:{2001 TO 2001-05}", "published:[2001 TO 2001-05]"),
        ("year:{5 TO 5]", "year:5"),
        ("year:[5 TO 4}", "year:{4 TO 5]"),
        ("year:{1.0000000000000002 TO 1}", "year:[1 TO 1.0000000000000002]"),
    ],
)
def test_a_range_that_holds_nothing_is_refused_with_one_that_holds_something(
    text: str, mended: str
) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text, Schema({"published": "date", "year": "number"}))
    assert caught.value.mended == mended


# Dates as people write them

DATED = Schema({"published": "date", "year": "number"})
FRIDAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((text, "2026-08-01") for text in ("2026-8-1", "2026/08/01", "20260801", "1.8.2026")),
        *((f'"{text}"', "2026-08-01") for text in ("1 August 2026", "Aug 1, 2026")),
        ("2026-8", "2026-08"),
        ('"august 2026"', "2026-08"),
        ("2026-8-1T9:30", "2026-08-01T09:30"),
        ('"2026-08-01 00:30:00 +0200"', "2026-08-01T00:30:00+02:00"),
        (">=2026-8-1", ">=2026-08-01"),
        ("[2026-8-1 TO 2026/8/3}", "[2026-08-01 TO 2026-08-03}"),
    ],
)
def test_a_date_that_can_be_read_in_one_way_is_read_with_a_note(written: str, meant: str) -> None:
    parsed = parse(f"sea AND published:{written}", DATED)
    assert parsed.text == f"(sea AND published:{meant})"
    assert all(" was read as 2026-08" in note for note in parsed.notes)
    assert parsed.notes


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("today", "2026-11-27"),
        ("<now/d", "<2026-11-27"),
        ("yesterday", "2026-11-26"),
        ("now-7d", ">=2026-11-20"),
        (">NOW-7DAYS", ">2026-11-20"),
        ("[now-1M/d TO now]", "[2026-10-27 TO 2026-11-27]"),
        ('"this year"', "2026"),
        ('"last month"', "2026-10"),
        ('"last week"', "[2026-11-16 TO 2026-11-22]"),
        ('"past 2 weeks"', ">=2026-11-13"),
        ('"3 months ago"', ">=2026-08-27"),
        ("soon", None),
        ("3/4/2026", None),
        ("2026-02-30", None),
        ("7d", None),
    ],
)
def test_a_time_as_seen_from_today_is_refused_with_its_dates(
    monkeypatch: pytest.MonkeyPatch, written: str, meant: str | None
) -> None:
    monkeypatch.setattr(field_types, "current_day", lambda: FRIDAY)
    with pytest.raises(QueryError) as caught:
        parse(f"published:{written}", DATED)
    assert len(caught.value.problems) == 1
    assert caught.value.mended == (meant and f"published:{meant}")
    if written == "now-7d":
        assert str(caught.value) == (
            'Query not run: 1 problem.\n1. column 11, "now-7d": published is a date field, and this'
            " is not a date. Write a year, month, day or moment, such as 2001, 2001-05, 2001-05-31"
            " or 2001-05-31T12:00.\nWrite: published:>=2026-11-20"
        )


def test_the_last_day_of_a_longer_month_is_that_of_the_shorter() -> None:
    assert relative_dates("now-1month", date(2026, 3, 31)) == ("2026-02-28", "")


# Booleans


@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_is_read_from_json_and_from_text(value: bool) -> None:
    texts = (value, str(value), str(value).upper(), str(value).lower())
    assert [BOOLEAN.read(text) for text in texts] == [value] * 4
    assert BOOLEAN.stored(value) == KEYWORD.read(value) == str(value).lower()


@pytest.mark.parametrize("value", ["yes", "1", 1, 0, 1.0, "", [True], {}])
def test_what_is_no_boolean_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="true or false, or a list of them"):
        BOOLEAN.read(value)


@pytest.mark.parametrize("text", ["draft:true", 'draft:"true"', "Draft:true", "draft:(true)"])
def test_a_boolean_is_asked_for_by_its_name_in_json(text: str) -> None:
    assert parse(text, SCHEMA).tree == KeywordEquals("draft", "true")
    assert str(parse(text, SCHEMA).tree) == "draft:true"
    assert parse_filter(text, SCHEMA) == (KeywordEquals("draft", "true"),)
    assert parse("draft:true", ANY_SCHEMA).tree == KeywordEquals("draft", "true")


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        *((f"draft:{word}", "draft:true") for word in ("True", "TRUE", "yes", "Y", "on", "1", "t")),
        *((f"draft:{word}", "draft:false") for word in ("False", "no", "N", "off", "0", "f")),
        ('draft:"Yes"', "draft:true"),
        ("draft:true,", "draft:true"),
        ("opera AND NOT draft:yes", "(opera AND NOT draft:true)"),
        ("draft:(yes OR false)", "(draft:true OR draft:false)"),
        ("draft:maybe", None),
        ("draft:2", None),
        ("opera AND draft:none", None),
    ],
)
def test_another_spelling_of_a_boolean_is_refused_with_the_right_one(
    text: str, mended: str | None
) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text, SCHEMA)
    assert [problem.message for problem in caught.value.problems] == [NOT_A_BOOLEAN]
    assert caught.value.mended == mended


@pytest.mark.parametrize("text", ["draft:>true", "draft:[false TO true]"])
def test_booleans_have_no_ranges(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text, SCHEMA)
    (problem,) = caught.value.problems
    assert problem.message == (
        "a range on the boolean field draft. Its values are matched whole; "
        "write draft:true or draft:false."
    )
    assert caught.value.mended is None


@pytest.mark.parametrize("text", ["draft = yes", "draft : yes", "draft: yes", "draft == true"])
def test_a_spaced_clause_of_a_boolean_is_mended_whole(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text, SCHEMA)
    assert caught.value.mended == "draft:true"

"""Filters as data, and values in quotes: no sign of a value is read as more than a value."""

from __future__ import annotations

import datetime
import json
import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search import AragError, QueryError, quote
from arag_search.corpus import nfc
from arag_search.errors import ArgumentError
from arag_search.query.fields import Schema
from arag_search.query.filters import NOTHING, filter_text, parse_filter
from arag_search.query.limits import MAX_DEPTH
from arag_search.query.operators import NOT
from arag_search.query.tree import And, KeywordEquals, Modifier, Or
from arag_search.search.opening import IndexOpening
from tests.support.hostile_values import values

SCHEMA = Schema(
    {"owner": "keyword", "year": "number", "on": "date", "draft": "boolean", "not": "keyword"}
)


def text_of(filter: Any) -> str:
    """Return the canonical text of a filter, which means the same."""
    parts = parse_filter(filter, SCHEMA)
    text = " AND ".join(map(str, parts))
    assert parse_filter(text, SCHEMA) == parts
    return text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"owner": "ann"}, "owner:ann"),
        ({"owner": ["ann", "everyone"], "year": {"gte": 2020}, "not": {"draft": True}},
         "owner:(ann OR everyone) AND year:>=2020 AND NOT draft:true"),
        ({"not": {"owner": "ann"}}, "NOT owner:ann"),
        ({"not": {"draft": True}, "owner": ["ann"]}, "owner:ann NOT draft:true"),
        ({"not": {"owner": "ann", "not": {"year": 1}}}, "NOT (owner:ann AND NOT year:1)"),
        ({"not": {"not": {"owner": "ann", "year": 1}}}, "owner:ann AND year:1"),
        ({"year": [1, 2.5, -0.0, 1e22]}, "year:(1 OR 2.5 OR 0 OR 1e22)"),
        ({"year": {"gt": 1, "lte": 5}}, "year:{1 TO 5]"),
        ({"on": {"lt": 2020}}, "on:<2020"),
        ({"on": ["2020-05", datetime.date(2020, 1, 2)]}, "on:(2020-05 OR 2020-01-02)"),
        ({"on": datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC)},
         "on:2020-01-02T03:04:00+00:00"),
        ({"draft": False}, "draft:false"),
        ({"owner": ("ann", "bob")}, "owner:(ann OR bob)"),
        ({"owner": {"bob", "ann"}}, "owner:(ann OR bob)"),
        ({"owner": {"ann": 1, "bob": 2}.keys()}, "owner:(ann OR bob)"),
        ({"year": np.int64(3), "draft": np.bool_(True)}, "year:3 AND draft:true"),
        ({"year": np.arange(2)}, "year:(0 OR 1)"),
        (MappingProxyType({"doc_id": "a"}), "doc_id:a"),
        (' {"owner": "\\u00e9"}\n', "owner:é"),
    ],
)  # fmt: skip
def test_data_and_text_make_the_same_tree(data: Any, text: str) -> None:
    assert parse_filter(data, SCHEMA) == parse_filter(text, SCHEMA)
    text_of(data)


@given(values())
def test_a_value_is_the_value_alone_as_data_as_json_and_in_quotes(value: str) -> None:
    leaf = KeywordEquals("owner", nfc(value))
    filters: list[Any] = [f"owner:{quote(value)}", f"year:>0 NOT owner:{quote(value)}"]
    for spelled in (value, [value], {value}):
        if len(nfc(value).encode()) <= 4096:
            filters += [{"owner": spelled}, {"year": {"gt": 0}, "not": {"owner": spelled}}]
    filters += [json.dumps({"owner": value})] * (len(nfc(value).encode()) <= 4096)
    for filter in filters:
        (tree,) = parse_filter(filter, SCHEMA)
        assert tree == leaf or tree.children[1:] == (Modifier(NOT, leaf),)  # type: ignore[union-attr]
        text_of(filter)


@given(values(), values())
def test_values_in_quotes_stand_beside_each_other(first: str, second: str) -> None:
    leaves = tuple(KeywordEquals("owner", nfc(value)) for value in (first, second))
    left, right = quote(first), quote(second)
    for text in (f"owner:({left} OR {right})", f"(owner:{left} OR owner:{right})"):
        assert parse_filter(text, SCHEMA) == (Or(leaves),)
    for text in (f"owner:({left} {right})", f"owner:{left} AND owner:{right}"):
        assert parse_filter(text, SCHEMA) == (And(leaves),)


@given(st.one_of(values(), st.sampled_from((">=0", "[0 TO 9]", "{0 TO 9}", "<9", "* TO 9"))))
def test_a_value_in_quotes_is_no_comparison_of_numbers_or_dates(value: str) -> None:
    for field in ("year", "on"):
        try:
            (leaf,) = parse_filter(f"{field}:{quote(value)}", SCHEMA)
        except QueryError:
            continue
        assert leaf.lower == leaf.upper is not None  # type: ignore[union-attr]


def test_quotes_around_a_comparison_that_was_typed_stay_without_effect() -> None:
    assert text_of('year:">=5"') == "year:>=5"


def test_a_value_that_is_no_unicode_text_has_no_quotes() -> None:
    for wrong in ("\ud800", "a\udfff"):
        with pytest.raises(ArgumentError, match="lone surrogate"):
            quote(wrong)
    with pytest.raises(ArgumentError, match="value is 5"):
        quote(5)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        parse_filter(f"owner:{quote('')}", SCHEMA)


def test_an_empty_list_matches_nothing_and_its_negation_everything() -> None:
    for nothing in ([], (), set[str](), np.array([])):
        assert parse_filter({"owner": nothing}, SCHEMA) == (NOTHING,)
    assert text_of({"owner": []}) == '(doc_id:"an empty list" AND NOT doc_id:"an empty list")'
    assert text_of({"not": {"owner": []}}).startswith("NOT (doc_id:")


_WRONG: list[tuple[Any, str, str]] = [
    ({}, "{}", "it is empty."),
    ({"not": {}}, "not", "it is empty."),
    ({"owner": "ann", "not": {"not": {}}}, "not.not", "it is empty."),
    ({"owner": None}, "owner", "null is no value of a keyword field. Allowed: text."),
    ({"owner": ["ann", None]}, "owner", "null is no value of a keyword field."),
    ({"owner": 5}, "owner", "5 is no value of a keyword field."),
    ({"owner": True}, "owner", "true is no value of a keyword field."),
    ({"owner": ["ann", 5]}, "owner", "5 is no value of a keyword field."),
    ({"owner": [["ann"]]}, "owner", '["ann"] is no value of a keyword field.'),
    ({"owner": {"gte": ""}}, "owner", '{"gte": ""} is no value of a keyword field.'),
    ({"owner": {"$ne": None}}, "owner", '{"$ne": null} is no value of a keyword field.'),
    ({"owner": ""}, "owner", "an empty value of owner."),
    ({"owner": "é" * 2049}, "owner", "Allowed: a keyword of at most 4,096 bytes."),
    ({"year": "2020"}, "year", '"2020" is no value of a number field. Allowed: a number.'),
    ({"year": True}, "year", "true is no value of a number field."),
    ({"year": math.nan}, "year", "null is no value of a number field."),
    ({"year": math.inf}, "year", "null is no value of a number field."),
    ({"year": 2**60}, "year", "Allowed: an integer up to 9,007,199,254,740,992;"),
    ({"year": {}}, "year", "{} is no range. Allowed: gte or gt"),
    ({"year": {"$gt": 1}}, "year", '{"$gt": 1} is no range.'),
    ({"year": {"gte": 1, "gt": 1}}, "year", "is no range."),
    ({"year": {"gte": None}}, "year", "null is no value of a number field."),
    ({"year": {"gte": [1]}}, "year", "[1] is no value of a number field."),
    ({"year": {"gte": 2, "lt": 2}}, "year", "a range that holds nothing."),
    ({"on": ">=2000"}, "on", '">=2000" is no value of a date field.'),
    ({"on": "last year"}, "on", '"last year" is no value of a date field.'),
    ({"on": 1.5}, "on", "1.5 is no value of a date field."),
    ({"draft": "true"}, "draft", '"true" is no value of a boolean field. Allowed: true or false.'),
    ({"draft": 1}, "draft", "1 is no value of a boolean field."),
    ({"who": "ann"}, "who", "it is no field. Allowed: doc_id, owner (keyword), year (number),"),
    ({"Owner": "ann"}, "Owner", "it is no field."),
    ({"$or": [{"owner": "ann"}]}, "$or", "it is no field."),
    ({"title": "opera"}, "title", "it searches text."),
    ({"not": "ann"}, "not", '"ann" is no mapping of conditions.'),
    ({"not": [{"owner": "ann"}]}, "not", '[{"owner": "ann"}] is no mapping of conditions.'),
    ('{"owner": "a", "owner": "b"}', '{"owner": "a", "owner": "b"}', "a key is given twice"),
    ('{"year": NaN}', "year", "a finite number."),
    ('{"year": 1e999}', "year", "a finite number."),
    ('{"owner": "\\ud800"}', "owner", "a keyword without lone surrogates."),
    ('{"owner": "a"} OR owner:b', '{"owner": "a"} OR owner:b', "it is not JSON (Extra data"),
    ("{owner: a}", "{owner: a}", "it is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "place", "message"), _WRONG)
def test_what_is_no_condition_is_an_error_that_names_its_key(
    data: Any, place: str, message: str
) -> None:
    with pytest.raises(QueryError) as raised:
        parse_filter(data, SCHEMA)
    assert len(raised.value.problems) == 1
    assert f'1. "{place}": ' in str(raised.value)
    assert message in str(raised.value)
    assert "\nWhere: the filter\nDo: Write {" in str(raised.value)


def test_all_problems_of_data_are_listed() -> None:
    with pytest.raises(QueryError) as raised:
        parse_filter({"owner": 5, "not": {"year": "x", "who": 1}, "draft": True}, SCHEMA)
    assert str(raised.value) == (
        "Query not run: 3 problems.\n"
        '1. "owner": 5 is no value of a keyword field. Allowed: text.\n'
        '2. "not.year": "x" is no value of a number field. Allowed: a number.\n'
        '3. "not.who": it is no field. Allowed: doc_id, owner (keyword), year (number), on (date), '
        "draft (boolean), not (keyword).\n"
        "Where: the filter\n"
        'Do: Write {"FIELD": VALUE, "FIELD": [VALUE, ...], "FIELD": {"gte": VALUE}, "not": {...}}.'
    )


def test_what_json_cannot_hold_is_no_filter() -> None:
    wrong = (iter("ab"), b"ann", object(), 10**30, "\ud800", {"a": 1}.values(), math)
    for value in wrong:
        with pytest.raises(ArgumentError, match="The filter is no data: ") as raised:
            parse_filter({"owner": value}, SCHEMA)
        assert str(raised.value).count("\n") == 3
    for data in ({5: "ann"}, {None: "ann"}, {True: "ann"}, {"owner": {1: "ann"}}):
        with pytest.raises(ArgumentError, match="must be str"):
            parse_filter(data, SCHEMA)  # type: ignore[arg-type]


def test_negations_have_a_depth_and_deep_json_is_refused() -> None:
    def nested(depth: int) -> Any:
        data: Any = {"owner": ["a", "b"]}
        for _ in range(depth):
            data = {"not": data, "year": [1, 2]}
        return data

    text_of(nested(MAX_DEPTH))
    deep = '{"not":' * 100_000
    for wrong in (nested(MAX_DEPTH + 1), nested(200), deep, f'{{"owner":{"[" * 100_000}'):
        with pytest.raises(QueryError):
            parse_filter(wrong, SCHEMA)
    with pytest.raises(AragError):
        parse_filter(nested(2_000), SCHEMA)


def test_data_that_changes_later_is_not_read_again() -> None:
    data = {"owner": ["ann"]}
    text, opening = filter_text(data), IndexOpening("my-index", filter=data)
    data["owner"].append("bob")
    assert text_of(text) == text_of(opening.filter) == "owner:ann"


def test_a_field_called_not_is_written_in_text() -> None:
    assert parse_filter("not:ann", SCHEMA) == (KeywordEquals("not", "ann"),)

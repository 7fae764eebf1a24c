"""Names in queries by meaning, and the note on those that no passage contains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.query.filters import parse_filter
from arag_search.search.finding.by_vectors import MAX_QUERY_NAMES, likely_names, missing_names
from arag_search.tools.passages.search import reply
from arag_search.tools.preset import plain_preset
from arag_search.tools.tool import ReadSet
from tests.support.passages import SCHEMA, VIVALDI, index_of
from tests.support.plans import scoped


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who directed the film starring Alexander Korda?", ["Alexander Korda"]),
        ("Where was André Cayatte born?", ["André Cayatte"]),
        ('film "Under the cards" director', ["Under the cards"]),
        ("is it in Cumbria? Yes. The Lake District", ["Cumbria", "Lake District"]),
        ("the U.S. president J. R. Smith", ["U.S", "J R Smith"]),
        ("in Rome, Venice and Paris", ["Rome", "Venice", "Paris"]),
        ("JOHN", []),
        ("what is a fugue", []),
        ("", []),
    ],
)
def test_names_are_quoted_or_begin_with_a_capital(text: str, names: list[str]) -> None:
    assert likely_names(text) == names


@given(st.text())
def test_any_text_has_few_short_names(text: str) -> None:
    names = likely_names(text)
    assert len(names) <= MAX_QUERY_NAMES
    assert all(name and len(name) <= 60 for name in names)


def test_names_that_no_passage_in_scope_contains_are_named() -> None:
    state = index_of(*VIVALDI).state
    text = "Did Antonio Vivaldi meet Alexander Korda and Goldoni?"
    assert missing_names(state, text, None) == ['no passage contains "Alexander Korda".']
    scope = scoped(parse_filter("year:<1700", SCHEMA))
    assert missing_names(state, text, scope) == [
        'no passage contains "Alexander Korda", "Goldoni".'
    ]
    assert missing_names(state, "the opera", None) == []


def test_replies_to_searches_by_vectors_show_the_cosine() -> None:
    from dataclasses import replace

    page = index_of(*VIVALDI).logical_search("older")
    result = replace(page, total=None, hits=(page.hits[0]._replace(score=0.6234),))
    marked = reply(result, plain_preset(whole_up_to_tokens=160), ReadSet()).text
    assert "[scarlatti.1] Griselda (Scarlatti) (whole document, cosine 0.62)\n" in marked

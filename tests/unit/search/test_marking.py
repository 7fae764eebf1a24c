"""Where the words of a query stand in a text."""

from __future__ import annotations

import pytest

from arag_search.query.parser import parse
from arag_search.query.tree import TextLeaf, positive_leaves
from arag_search.search.marking import marks

TEXT = "Antonio Vivaldi's Four Seasons. The seasons, of Vivaldi; a librettist 𝒳 wrote."


def found(query: str, field: str = "content", text: str = TEXT) -> list[str]:
    leaves = [one for one in positive_leaves(parse(query).tree) if isinstance(one, TextLeaf)]
    return [text[start:end] for start, end in marks(text, leaves, field)]  # pyright: ignore


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("seasons", ["Seasons", "seasons"]),
        ("VIVALDI", ["Vivaldi"]),
        ('"four seasons"', ["Four Seasons"]),
        ('"seasons four"', []),
        ('"seasons four"~2', ["Four", "Seasons"]),
        ('"the seasons vivaldi"~1', ["The", "seasons", "Vivaldi"]),
        ("librett*", ["librettist"]),
        ("wrote", ["wrote"]),
        ("seasons AND NOT vivaldi", ["Seasons", "seasons"]),
        ("title:seasons", []),
        ("content:four", ["Four"]),
        ('four "four seasons" seasons', ["Four Seasons", "seasons"]),
        ("year:1678 AND librettist", ["librettist"]),
        ("vivaldi’s", ["Vivaldi's"]),
    ],
)
def test_places_are_those_that_the_query_finds(query: str, marked: list[str]) -> None:
    assert found(query) == marked


def test_a_title_is_marked_by_leaves_of_titles_and_of_no_field() -> None:
    assert found("title:seasons AND vivaldi AND content:four", "title") == [
        "Seasons", "seasons", "Vivaldi"
    ]  # fmt: skip


def test_an_empty_text_and_no_leaves_have_no_places() -> None:
    assert marks("", [], "content") == []
    assert found("vivaldi", text="") == []

"""The places of the words of a query in a text."""

from __future__ import annotations

import pytest

from arag_search.query.fields import Schema
from arag_search.query.parser import parse
from arag_search.query.tree import TextLeaf, positive_leaves
from arag_search.search.occurrences import marks

TEXT = "Antonio Vivaldi's Four Seasons. The seasons, of Vivaldi; a librettist 𝒳 wrote."


def marked_texts(query: str, field: str = "content", text: str = TEXT) -> list[str]:
    tree = parse(query, Schema(open=True, language="en")).tree
    leaves = [leaf for leaf in positive_leaves(tree) if isinstance(leaf, TextLeaf)]
    return [text[start:end] for start, end in marks(text, leaves, field)]  # pyright: ignore


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("seasons", ["Seasons", "seasons"]),
        ("VIVALDI", ["Vivaldi's", "Vivaldi"]),
        ('"=VIVALDI"', ["Vivaldi"]),
        ("season AND librettists", ["Seasons", "seasons", "librettist"]),
        ("libretist~1 AND sezon~2", ["Seasons", "seasons", "librettist"]),
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
        ("vivaldi’s", ["Vivaldi's", "Vivaldi"]),
    ],
)
def test_marks_are_the_matches_of_the_query(query: str, marked: list[str]) -> None:
    assert marked_texts(query) == marked


def test_a_title_is_marked_by_title_leaves_and_leaves_without_a_field() -> None:
    assert marked_texts("title:seasons AND vivaldi AND content:four", "title") == [
        "Vivaldi's", "Seasons", "seasons", "Vivaldi"
    ]  # fmt: skip


def test_an_empty_text_and_no_leaves_have_no_marks() -> None:
    assert marks("", [], "content") == []
    assert marked_texts("vivaldi", text="") == []

"""The pieces of canonical queries."""

from __future__ import annotations

import pytest
from hypothesis import given

from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.viewer.pieces import pieces
from tests.support.strategies import trees


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("vivaldi", "word:vivaldi"),
        ('"four seasons"~2^3', 'phrase:"four seasons" weight:~2^3'),
        ("librett*^2", "prefix:librett* weight:^2"),
        ("a AND NOT b", "group:( word:a operator:AND operator:NOT word:b group:)"),
        ("(a OR b)^2", "group:( word:a operator:OR word:b group:) weight:^2"),
        ("title:griselda", "field:title: word:griselda"),
        ('content:"a b"', 'field:content: phrase:"a b"'),
        ('lang:"en GB"', 'filter:lang: value:"en GB"'),
        ("year:[1670 TO 1680]", "filter:year: value:[1670 TO 1680]"),
        ("year:>=1670", "filter:year: value:>=1670"),
        (r"\AND", r"word:\AND"),
        (r"a\:b", r"word:a\:b"),
        ("/a b+/i", "pattern:/a b+/i"),
        (r"title:/^\w/", r"field:title: pattern:/^\w/"),
    ],
)
def test_pieces_have_their_kinds(query: str, expected: str) -> None:
    text = parse(query).text
    labels = [f"{kind}:{piece}" for kind, piece in pieces(text) if kind != "blank"]
    assert " ".join(labels) == expected


@given(trees())
def test_the_pieces_of_a_query_join_to_its_text(tree: object) -> None:
    text = str(tree)
    assert "".join(piece.text for piece in pieces(text)) == text


def test_a_text_that_is_no_query_is_also_split_into_pieces() -> None:
    for text in ("", '"', "a \\", "(((", "x: ^~", "\u202e AND"):
        assert "".join(piece.text for piece in pieces(text)) == text
        with pytest.raises(QueryError):
            parse(text)

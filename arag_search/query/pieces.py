"""The canonical text of a query -> its pieces, each of a kind, for who shows it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from arag_search.query.fields import TEXT_FIELDS
from arag_search.query.lexer import Lexeme, find_special, lex

Kind = Literal[
    "operator", "field", "filter", "word", "phrase", "prefix", "value", "group", "weight", "blank"
]

KINDS: dict[Kind, str] = {
    "operator": "operator",
    "field": "field of the text",
    "filter": "metadata, which filters",
    "word": "word",
    "phrase": "phrase",
    "prefix": "prefix",
    "value": "value of metadata",
    "group": "parenthesis",
    "weight": "weight or slop",
    "blank": "blank",
}
"""What each kind is."""

_OPERATORS = frozenset({"AND", "OR", "NOT"})


class Piece(NamedTuple):
    """A stretch of the text; joined, the pieces are the text."""

    kind: Kind
    text: str


def pieces(text: str) -> list[Piece]:
    """The pieces of a query as ``str(tree)`` prints it. O(len(text))."""
    found: list[Piece] = []
    position = 0
    in_filter = False
    for one in lex(text):
        if one.start > position:
            found.append(Piece("blank", text[position : one.start]))
            in_filter = False
        in_filter = in_filter and one.joined
        found += _of_lexeme(one, in_filter)
        in_filter = found[-1].kind == "filter"
        position = one.end
    if position < len(text):
        found.append(Piece("blank", text[position:]))
    return found


def _of_lexeme(one: Lexeme, in_filter: bool) -> list[Piece]:
    suffix = [Piece("weight", one.suffix)] if one.suffix else []
    match one.kind:
        case "open" | "close":
            return [Piece("group", one.raw), *suffix]
        case "phrase":
            return [Piece("value" if in_filter else "phrase", one.raw), *suffix]
        case _:
            return [*_of_word(one.raw), *suffix]


def _of_word(raw: str) -> list[Piece]:
    """The pieces of what stands between blanks: field, word or value, weight."""
    if raw in _OPERATORS:
        return [Piece("operator", raw)]
    found: list[Piece] = []
    colon = find_special(raw, ":")
    is_text = True
    if colon > 0:
        is_text = raw[:colon] in TEXT_FIELDS
        found.append(Piece("field" if is_text else "filter", raw[: colon + 1]))
        raw = raw[colon + 1 :]
    if not is_text:
        return [*found, Piece("value", raw)] if raw else found
    caret = find_special(raw, "^")
    word, weight = (raw, "") if caret < 0 else (raw[:caret], raw[caret:])
    if word:
        is_prefix = find_special(word, "*") == len(word) - 1
        found.append(Piece("prefix" if is_prefix else "word", word))
    if weight:
        found.append(Piece("weight", weight))
    return found

"""The canonical text of a query, cut into pieces of different kinds for display."""

from __future__ import annotations

from typing import Literal, NamedTuple

from arag_search.query.fields import TEXT_FIELDS
from arag_search.query.lexer import Lexeme, find_special, lex
from arag_search.query.operators import SPELLED, factored

PieceKind = Literal[
    "operator", "field", "filter", "word", "phrase", "prefix", "pattern", "value", "group",
    "weight", "blank",
]  # fmt: skip

KINDS: dict[PieceKind, str] = {
    "operator": "operator",
    "field": "field of the text",
    "filter": "metadata, which filters",
    "word": "word",
    "phrase": "phrase",
    "prefix": "prefix",
    "pattern": "pattern",
    "value": "value of metadata",
    "group": "parenthesis",
    "weight": "weight or slop",
    "blank": "blank",
}
"""The kinds in words."""


class Piece(NamedTuple):
    """A stretch of the text; joined, the pieces are the text."""

    kind: PieceKind
    text: str


def pieces(text: str) -> list[Piece]:
    """Return the pieces of a query as ``str(tree)`` prints it. O(len(text))."""
    result: list[Piece] = []
    position = 0
    in_filter = False
    for lexeme in lex(text):
        if lexeme.start > position:
            result.append(Piece("blank", text[position : lexeme.start]))
            in_filter = False
        in_filter = in_filter and lexeme.joined
        result += _of_lexeme(lexeme, in_filter)
        in_filter = result[-1].kind == "filter"
        position = lexeme.end
    if position < len(text):
        result.append(Piece("blank", text[position:]))
    return result


def _of_lexeme(lexeme: Lexeme, in_filter: bool) -> list[Piece]:
    suffix = [Piece("weight", lexeme.suffix)] if lexeme.suffix else []
    match lexeme.kind:
        case "open" | "close":
            return [Piece("group", lexeme.raw), *suffix]
        case "phrase":
            return [Piece("value" if in_filter else "phrase", lexeme.raw), *suffix]
        case "regex":
            field, slash, pattern = lexeme.raw.partition("/")
            return [*([Piece("field", field)] if field else []), Piece("pattern", slash + pattern)]
        case _:
            return [*_of_word(lexeme.raw), *suffix]


def _of_word(raw: str) -> list[Piece]:
    """Return the pieces of text between blanks: field, word or value, weight."""
    if raw in SPELLED:
        return [Piece("operator", raw)]
    if operator := factored(raw):
        word = operator.word
        return [Piece("operator", word), Piece("weight", raw[len(word) :])]
    result: list[Piece] = []
    colon = find_special(raw, ":")
    is_text = True
    if colon > 0:
        is_text = raw[:colon] in TEXT_FIELDS
        result.append(Piece("field" if is_text else "filter", raw[: colon + 1]))
        raw = raw[colon + 1 :]
    if not is_text:
        return [*result, Piece("value", raw)] if raw else result
    caret = find_special(raw, "^")
    word, weight = (raw, "") if caret < 0 else (raw[:caret], raw[caret:])
    if word:
        is_prefix = find_special(word, "*") == len(word) - 1
        result.append(Piece("prefix" if is_prefix else "word", word))
    if weight:
        result.append(Piece("weight", weight))
    return result

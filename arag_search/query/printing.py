"""Parts of the canonical text of a query: parsing a part gives back what it was printed from."""

from __future__ import annotations

import re
from decimal import Decimal

from arag_search.query.operators import NOT_SIGNS, SPELLED, OperatorWord
from arag_search.query.typography import HYPHENS, INVISIBLE, OPENING_QUOTES

_WORD_SPECIAL = re.compile(r'([\s\\"():^~*?])')
_PHRASE_SPECIAL = re.compile(r'([\\"*])')
_SLASH = re.compile(r"(\\.)|/", re.DOTALL)
_PLAIN_KEYWORD = re.compile(r"[\w./@#][\w./@#&'-]*")


def field_text(name: str | None) -> str:
    """Return the field before a clause, if it has one."""
    return f"{name}:" if name else ""


def weight_text(weight: float) -> str:
    """Return the weight after a clause, if it is not 1."""
    if weight == 1:
        return ""
    return f"^{int(weight)}" if weight == int(weight) else f"^{weight!r}"


def operator_text(operator: OperatorWord, factor: float | None) -> str:
    """Return an operator with its factor, if that is not the default, without an exponent."""
    is_default = factor is None or operator.factor in (None, factor)
    return operator.word if is_default else f"{operator.word}^{Decimal(repr(factor)):f}"


def word_text(text: str, field: str | None) -> str:
    """Return a word after its field."""
    if text.isalnum() and text not in SPELLED:
        return f"{field}:{text}" if field else text
    escaped = _WORD_SPECIAL.sub(r"\\\1", text)
    if text[0] == '"' and text[1:2].isalnum():
        escaped = f'\\"\\{escaped[2:]}'  # which is no phrase in escaped quotes
    if (
        text in SPELLED
        or text[0] == "+"
        or text[0] in NOT_SIGNS
        or text[0] in OPENING_QUOTES + HYPHENS + INVISIBLE
        or (text[0] in "[{" and (field or text[-1] not in "]}"))
        or text[0] == "/"  # which could begin a pattern
    ):
        escaped = "\\" + escaped
    return field_text(field) + escaped


def quoted(text: str) -> str:
    """Return a phrase, or a keyword that is not a plain word, in quotes."""
    if '"' in text or "\\" in text or "*" in text:
        text = _PHRASE_SPECIAL.sub(r"\\\1", text)
    return f'"{text}"'


def phrase_text(text: str, field: str | None, slop: int) -> str:
    """Return a phrase after its field, with its slop."""
    return f"{field_text(field)}{quoted(text)}{f'~{slop}' if slop else ''}"


def with_escaped_slashes(pattern: str) -> str:
    """Return a pattern whose slashes all have a backslash."""
    return _SLASH.sub(lambda match: match[1] or "\\/", pattern)


def keyword_text(value: str) -> str:
    """Return the value of a keyword field, quoted if it is not a plain word."""
    return value if _PLAIN_KEYWORD.fullmatch(value) else quoted(value)


def range_text(
    lower: str | None, upper: str | None, include_lower: bool, include_upper: bool
) -> str:
    """Return a range between bounds that are text already; None is open."""
    if lower == upper and lower is not None:
        return lower
    if lower is not None and upper is None:
        return f"{'>=' if include_lower else '>'}{lower}"
    if upper is not None and lower is None:
        return f"{'<=' if include_upper else '<'}{upper}"
    opening = "[" if include_lower else "{"
    closing = "]" if include_upper else "}"
    return f"{opening}{lower or '*'} TO {upper or '*'}{closing}"

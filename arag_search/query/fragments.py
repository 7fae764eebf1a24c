"""Clauses as text of the language: what the reader makes of a query before the grammar reads it.

They are not checked: the reader has found a clause to be right.
"""

from __future__ import annotations

from typing import NamedTuple

from arag_search.corpus import nfc
from arag_search.query.operators import OperatorWord
from arag_search.query.printing import (
    field_text,
    keyword_text,
    operator_text,
    pattern_text,
    phrase_text,
    weight_text,
    word_text,
)
from arag_search.query.tree import Range, TextField


class Modified(NamedTuple):
    """A clause under a NOT, PREFER or DEMOTE."""

    operator: OperatorWord
    factor: float | None
    clause: str

    def __str__(self) -> str:
        return f"{operator_text(self.operator, self.factor)} {self.clause}"


def word(text: str, field: TextField = None, weight: float = 1.0, ending: str = "") -> str:
    """Return a word, with the ``ending`` of a prefix or a fuzzy word."""
    return f"{word_text(text, field)}{ending}{weight_text(weight)}"


def phrase(text: str, slop: int = 0, field: TextField = None, weight: float = 1.0) -> str:
    """Return a phrase."""
    return phrase_text(text, field, slop) + weight_text(weight)


def pattern(text: str, ignore_case: bool = False, field: TextField = None) -> str:
    """Return a regular expression."""
    return field_text(field) + pattern_text(nfc(text), ignore_case)


def keyword(field: str, value: str) -> str:
    """Return a value of a field that is compared whole."""
    return f"{field}:{keyword_text(value)}"


def between(node: Range) -> str:
    """Return a range, in brackets whatever its bounds."""
    opening, closing = "{["[node.include_lower], "}]"[node.include_upper]
    return f"{node.field}:{opening}{node.lower or '*'} TO {node.upper or '*'}{closing}"


def joined(operator: OperatorWord, *parts: str | Modified) -> str:
    """Return the group of clauses that an operator joins; a single one as it is."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return f"({f' {operator.word} '.join(map(str, parts))})"

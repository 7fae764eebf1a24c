"""Clauses as text: what the reader makes of a query before the grammar reads it.

A fragment is text of the language, which the grammar reads in any query, with what the reader must
know of it. It is not checked: the reader has found the clause to be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from arag_search.corpus import nfc
from arag_search.query.operators import AND, OR, PREFER, OperatorWord
from arag_search.query.printing import (
    field_text,
    keyword_text,
    operator_text,
    pattern_text,
    phrase_text,
    weight_text,
    word_text,
)
from arag_search.query.tree import Range, Span, TextField, are_weights

FragmentKind = Literal["word", "phrase", "prefix", "fuzzy", "pattern", "value", "group"]
_SCORED: Span = (1.0, 1.0)


class Fragment(NamedTuple):
    """A clause without its weight, and the weight.

    ``span`` is the least and greatest product of weights from the clause, without its own weight,
    to what is scored in it; None if nothing is. ``condition`` is the clause without the PREFERs and
    DEMOTEs in it; None if it has none.
    """

    core: str
    kind: FragmentKind
    span: Span = None
    weight: float = 1.0
    is_scored: bool = False
    condition: Fragment | None = None

    @property
    def text(self) -> str:
        """The text of the clause."""
        return self.core + weight_text(self.weight)

    def unweighted(self) -> Fragment:
        """Return the clause without its own weight."""
        return self if self.weight == 1 else self._replace(weight=1.0)

    def weighted(self, weight: float) -> Fragment | None:
        """Return the clause with its weight multiplied; None if a product is out of bounds."""
        weight *= self.weight
        low, high = self.span or (1.0, 1.0)
        if not (are_weights(weight, weight) and are_weights(low * weight, high * weight)):
            return None
        condition = self.condition
        if condition is not None and condition.is_scored:
            condition = condition._replace(weight=weight)
        return self._replace(weight=weight, condition=condition)


class Modified(NamedTuple):
    """A clause under a NOT, PREFER or DEMOTE."""

    operator: OperatorWord
    factor: float | None
    clause: Fragment

    @property
    def text(self) -> str:
        """The text of the operator and the clause."""
        return f"{operator_text(self.operator, self.factor)} {self.clause.text}"


def word(text: str, field: TextField = None, weight: float = 1.0) -> Fragment:
    """Return a word."""
    return Fragment(word_text(text, field), "word", _SCORED, weight, True)


def prefix(text: str, field: TextField = None, weight: float = 1.0) -> Fragment:
    """Return the words that begin so."""
    return Fragment(f"{word_text(text, field)}*", "prefix", _SCORED, weight, True)


def fuzzy(text: str, edits: int, field: TextField = None, weight: float = 1.0) -> Fragment:
    """Return the words that are so with a few edits."""
    return Fragment(f"{word_text(text, field)}~{edits}", "fuzzy", _SCORED, weight, True)


def phrase(text: str, slop: int = 0, field: TextField = None, weight: float = 1.0) -> Fragment:
    """Return a phrase."""
    return Fragment(phrase_text(text, field, slop), "phrase", _SCORED, weight, True)


def pattern(text: str, ignore_case: bool = False, field: TextField = None) -> Fragment:
    """Return a regular expression."""
    return Fragment(field_text(field) + pattern_text(nfc(text), ignore_case), "pattern")


def keyword(field: str, value: str) -> Fragment:
    """Return a value of a field that is compared whole."""
    return Fragment(f"{field}:{keyword_text(value)}", "value")


def between(node: Range) -> Fragment:
    """Return a range, in brackets whatever its bounds."""
    opening, closing = "{["[node.include_lower], "}]"[node.include_upper]
    inside = f"{node.lower or '*'} TO {node.upper or '*'}"
    return Fragment(f"{node.field}:{opening}{inside}{closing}", "value")


def all_of(*parts: Fragment | Modified) -> Fragment:
    """Return the group of clauses that are joined by AND; a single one as it is."""
    return _joined(AND, parts)


def any_of(*parts: Fragment) -> Fragment:
    """Return the group of clauses that are joined by OR; a single one as it is."""
    return _joined(OR, parts)


def _joined(operator: OperatorWord, parts: Sequence[Fragment | Modified]) -> Fragment:
    if len(parts) == 1 and isinstance(parts[0], Fragment):
        return parts[0]
    clauses = [part.clause if isinstance(part, Modified) else part for part in parts]
    spans = [(c.span[0] * c.weight, c.span[1] * c.weight) for c in clauses if c.span]
    span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
    text = f" {operator.word} ".join(part.text for part in parts)
    group = Fragment(f"({text})", "group", span, is_scored=any(map(_is_scored, parts)))
    plain = [
        part if isinstance(part, Modified) else part.condition or part
        for part in parts
        if not (isinstance(part, Modified) and part.operator.needs_ranking)
    ]
    return group if plain == list(parts) else group._replace(condition=_joined(operator, plain))


def _is_scored(part: Fragment | Modified) -> bool:
    return part.operator is PREFER if isinstance(part, Modified) else part.is_scored

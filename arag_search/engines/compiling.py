"""What the compilers of both engines share, independent of the form of an engine's queries.

The oracle, which tests compare them with, implements all of this on its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from arag_search.query.fields import FORMS, TEXT_FIELDS
from arag_search.query.tree import (
    And,
    DateRange,
    KeywordEquals,
    Modifier,
    Node,
    Or,
    Prefer,
    Regex,
    TextLeaf,
    render,
)

Q = TypeVar("Q")
"""A query of the engine."""

_LAST_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LeafQuery(Generic[Q]):
    """One positive text leaf in one field, with the product of the weights along its path.

    ``conditions`` are the groups around it; the leaf counts in documents that match all of them.
    """

    leaf: str
    field: str
    query: Q
    conditions: tuple[Q, ...]


Leaves = list[tuple[str, list[LeafQuery[Q]]]]
"""Text leaves: the text of a leaf, and a query per field."""


def leaf_queries(
    node: Node,
    compiled: Callable[[Node], tuple[Q, bool]],
    in_field: Callable[[TextLeaf, str, float], Q],
) -> Leaves[Q]:
    """Return the positive text leaves from left to right.

    ``compiled`` is the compiler; ``in_field`` returns the query of a leaf in one field with a
    weight that replaces its own.
    """
    leaves: Leaves[Q] = []

    def add(node: Node | Modifier, weight: float, conditions: tuple[Q, ...]) -> None:
        if isinstance(node, Prefer):
            node = node.child
        if not isinstance(node, TextLeaf | And | Or):
            return  # NOT, DEMOTE and metadata clauses add nothing to a score
        # Lucene multiplies in 32 bits at each step.
        weight = float32(weight * float32(node.weight))
        if isinstance(node, TextLeaf):
            text = render(node)
            names = searched_fields(node)
            queries = [
                LeafQuery(text, name, in_field(node, name, weight), conditions) for name in names
            ]
            leaves.append((text, queries))
            return
        conditions = (*conditions, compiled(node)[0])
        for child in node.children:
            add(child, weight, conditions)

    add(node, 1.0, ())
    return leaves


def searched_fields(leaf: TextLeaf) -> Sequence[str]:
    """Return the fields that a text leaf is searched in."""
    return TEXT_FIELDS if leaf.field is None else (leaf.field,)


def index_field(name: str, language: str) -> str:
    """Return the field of the index that has the words of a text field: their normal forms, or
    without a language the words as they are written."""
    return FORMS[name] if language else name


def known_matches(pattern: Regex) -> list[int]:
    """Return the ordinals of what a pattern matches, ascending. Raises ValueError if they are not
    known: a query with patterns is first given to ``search.patterns``."""
    if pattern.matches is None:
        raise ValueError(f"the matches of {pattern} are not known")
    return sorted(pattern.matches)


def shared_keyword_field(node: Or) -> str | None:
    """Return the keyword field that all alternatives share, if any: the list is then one query."""
    if not isinstance(node.children[0], KeywordEquals):
        return None
    fields = {child.field if isinstance(child, KeywordEquals) else None for child in node.children}
    return fields.pop() if len(fields) == 1 else None


def date_bounds(node: DateRange) -> tuple[int, int]:
    """Return the first and the last millisecond of a range."""
    first = -_LAST_MS if node.first_ms is None else node.first_ms
    return first, _LAST_MS if node.end_ms is None else node.end_ms - 1


def float32(number: float) -> float:
    """Round to the nearest 32-bit float, Lucene's type for scores and weights."""
    return struct.unpack("<f", struct.pack("<f", number))[0]

"""What the parts of a query mean: its options, its groups, and the values of its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Literal, NamedTuple, cast

from arag_search.query.fields import FieldRef, Schema
from arag_search.query.limits import MAX_DEPTH, MAX_DEPTH_WITHOUT_LIMITS
from arag_search.query.operators import OR, PUBLISHED
from arag_search.query.problems import NodeError, ProblemKind
from arag_search.query.tree import (
    KeywordEquals,
    MetadataLeaf,
    Modifier,
    Node,
    Range,
    all_of,
    any_of,
)

Operator = Literal["OR", "AND"]

WEIGHT = r"(?:\d+(?:\.\d+)?|\.\d+)"
COMPARISON = re.compile(r"(>=|<=|>|<)(.*)", re.DOTALL)
RANGE = re.compile(r"([\[{])\s*(\S+?)\s+TO\s+(\S+?)\s*([\]}])")
OTHER_CASE = {
    "".join(letters)
    for operator in PUBLISHED
    for letters in product(*zip(operator.lower(), operator, strict=True))
    if letters != tuple(operator)
}
COMMAS = (",", ";", "，", "；", "、")


class Options(NamedTuple):
    """The options of ``parse``: how a text is read."""

    schema: Schema
    default_operator: Operator = "OR"
    operators: bool = True
    limits: bool = True
    as_written: bool = False
    ranked: bool = True

    @property
    def spaces_mean(self) -> Operator:
        """What a space means."""
        return self.default_operator if self.operators else "OR"

    @property
    def has_additions(self) -> bool:
        """Whether PREFER and DEMOTE are operators, and words match their forms."""
        return self.operators and not self.as_written

    @property
    def max_depth(self) -> int:
        """How many parentheses may be open."""
        return MAX_DEPTH if self.limits else MAX_DEPTH_WITHOUT_LIMITS


def alternatives(connectors: Sequence[str], spaces_mean: str) -> Iterable[tuple[int, int]]:
    """Return where each run of clauses that are joined by AND begins and ends, by the connector
    before each clause."""
    means_or = [(connector or spaces_mean) == OR.word for connector in connectors]
    starts = [0, *(at for at in range(1, len(connectors)) if means_or[at])]
    return pairwise([*starts, len(connectors)])


def node_of(
    nodes: Sequence[Node | Modifier], connectors: Sequence[str], spaces_mean: str
) -> Node | tuple[Modifier, ...] | None:
    """Return the node of the clauses of a group, each with the connector before it; their modifiers
    if there is nothing else, joined by AND or spaces; None if a modifier is an alternative.

    Runs joined by AND (and by spaces if that is the default) are the alternatives. A run of nothing
    but modifiers applies to the whole group if a space is before it, or after it if it is the
    first.
    """
    modifiers = [node for node in nodes if isinstance(node, Modifier)]
    if modifiers and len(modifiers) == len(nodes) and OR.word not in connectors:
        return tuple(modifiers)
    positives: list[Node] = []
    of_all: list[Modifier] = []
    for start, end in alternatives(connectors, spaces_mean):
        run = nodes[start:end]
        positive = [node for node in run if not isinstance(node, Modifier)]
        own = [node for node in run if isinstance(node, Modifier)]
        if positive:
            positives.append(all_of(*positive, *own))
        elif connectors[start] if start else end == len(nodes) or connectors[end]:
            return None
        else:
            of_all += own
    return all_of(any_of(*positives), *of_all) if positives else None


def plain_node(nodes: Sequence[Node], connectors: Sequence[str], spaces_mean: str) -> Node:
    """Return the node of the clauses of a group without modifiers, as ``node_of`` does."""
    joined = set(connectors[1:])
    if len(joined) < 2:
        is_or = not joined or (joined.pop() or spaces_mean) == OR.word
        return any_of(*nodes) if is_or else all_of(*nodes)
    return cast("Node", node_of(nodes, connectors, spaces_mean))


# Values of metadata


def value_leaf(text: str, field: FieldRef) -> MetadataLeaf:
    """Return the leaf of a value, or of a comparison with one. Raises ArgumentError."""
    comparison = COMPARISON.fullmatch(text)
    if comparison is None:
        if field.type.is_ordered:
            return _between(field, text, text, True, True)
        if problem := field.type.problem(text, field.name):
            raise problem
        return KeywordEquals(field.name, text)
    sign, bound = comparison[1], comparison[2]
    low, high = (bound, None) if sign[0] == ">" else (None, bound)
    return _between(field, low, high, "=" in sign, "=" in sign)


def range_leaf(text: str, field: FieldRef) -> Range:
    """Return the leaf of a range in brackets. Raises ArgumentError."""
    match = RANGE.fullmatch(text)
    if match is None:
        raise NodeError(ProblemKind.RANGE_SYNTAX, name=field.name)
    lower, upper = (None if match[at] == "*" else match[at] for at in (2, 3))
    return _between(field, lower, upper, match[1] == "[", match[4] == "]")


def _between(
    field: FieldRef, lower: str | None, upper: str | None, include_lower: bool, include_upper: bool
) -> Range:
    kind = field.type_of_range(lower or upper).name
    return Range(field.name, kind, lower, upper, include_lower, include_upper)

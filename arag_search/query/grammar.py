"""The meaning of the parts of a query: its options, groups, limits, and values of metadata."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from operator import attrgetter
from typing import Literal, NamedTuple, cast

from arag_search.query.analysis import has_apostrophes, letters_of
from arag_search.query.fields import FieldRef, Schema
from arag_search.query.lexer import Lexeme
from arag_search.query.limits import (
    DEFAULT_FACTOR,
    MAX_DEPTH,
    MAX_DEPTH_WITHOUT_LIMITS,
    MAX_LEAVES,
    MAX_PREFIXES,
    MAX_WORDS,
    PREFIX_SHARES,
)
from arag_search.query.operators import OR, PUBLISHED, OperatorWord
from arag_search.query.problems import NodeError, ProblemKind
from arag_search.query.tree import (
    Fuzzy,
    KeywordEquals,
    MetadataLeaf,
    Modifier,
    Node,
    Prefix,
    Range,
    TextLeaf,
    all_of,
    any_of,
    leaves,
    spelled_words,
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
    """Return the node of the clauses of a group, each with the connector before it.

    If they are nothing but modifiers, joined by AND or spaces, these are returned. The result is
    None if a modifier is an alternative.

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


# Open groups


class TypedModifier(NamedTuple):
    """A NOT, PREFER or DEMOTE before a clause, with its offsets and the factor after it."""

    operator: OperatorWord
    start: int
    end: int
    factor: float = DEFAULT_FACTOR


Read = Node | Modifier | tuple[Modifier, ...] | None


@dataclass(slots=True)
class GroupItem:
    """A clause in its group, with the ``connector`` before it, empty for a space.

    ``node`` is None if it was rejected and has no replacement. A group of nothing but modifiers is
    these, and ``is_modifier``, too. Only of one with a modifier are the offsets known.
    """

    connector: str
    node: Read
    start: int = 0
    end: int = 0
    is_modifier: bool = False
    plus: bool = False

    @property
    def nodes(self) -> tuple[Node | Modifier, ...]:
        """The clause, or the modifiers of the group that it is."""
        node = self.node
        return node if isinstance(node, tuple) else () if node is None else (node,)


class OpenGroup:
    """An open parenthesis (or the whole query) with the clauses read so far.

    ``operator``, ``modifiers`` and ``plus`` belong to the clause that comes next. ``marked`` are
    the clauses that have a modifier or a plus, or are rejected, by their place. ``dropped`` are the
    offsets of pieces that hold nothing to search.
    """

    __slots__ = (
        "connectors", "dropped", "field", "marked", "modifiers", "nodes", "operator", "plus",
        "start",
    )  # fmt: skip

    def __init__(self, start: int, field: FieldRef | None = None) -> None:
        self.start = start
        self.field = field
        self.nodes: list[Read] = []
        self.connectors: list[str] = []
        self.marked: dict[int, GroupItem] = {}
        self.operator: Lexeme | None = None
        self.modifiers: list[TypedModifier] = []
        self.plus = False
        self.dropped: list[tuple[int, int]] = []


# Limits of the whole


_MOST_SHARES = max(PREFIX_SHARES.values())


def may_exceed(text: str) -> bool:
    """Return whether a text is so long, or has so many prefixes, that it may exceed a limit."""
    if not text.isascii() or len(text) >= 2 * MAX_LEAVES:
        return True
    is_long = 3 * len(text) > MAX_WORDS and has_apostrophes(text)
    return is_long or _MOST_SHARES * (text.count("*") + text.count("~")) > MAX_PREFIXES


def exceeded(tree: Node, text: str) -> Iterator[tuple[int, ProblemKind, int, int]]:
    """Yield the limits of the whole that the tree of a text exceeds. Each has the offset of the
    first leaf beyond it, the problem, how many there are and how many there may be."""
    spellings = 3 if has_apostrophes(text) else 1
    all_leaves = sorted(leaves(tree), key=attrgetter("start"))
    texts = [leaf for leaf in all_leaves if isinstance(leaf, TextLeaf)]
    spread = [leaf for leaf in texts if isinstance(leaf, Prefix | Fuzzy)]
    has_many = spellings * sum(len(leaf.text) for leaf in texts) > MAX_WORDS
    shares = [PREFIX_SHARES.get(letters_of(leaf.text), 1) for leaf in spread]
    words = list(map(spelled_words, texts)) if has_many else []
    for counted, counts, limit, kind in (
        (all_leaves, [1] * len(all_leaves), MAX_LEAVES, ProblemKind.TOO_MANY_LEAVES),
        (spread, shares, MAX_PREFIXES, ProblemKind.TOO_MANY_PREFIXES),
        (texts, words, MAX_WORDS, ProblemKind.TOO_MANY_WORDS),
    ):
        totals = list(accumulate(counts))
        if totals and totals[-1] > limit:
            yield counted[bisect_right(totals, limit)].start, kind, totals[-1], limit


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

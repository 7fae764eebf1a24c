"""What a group of clauses means: where its ANDs and ORs bind, and where its NOTs reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from arag_search.query import problems
from arag_search.query.clauses import FieldRef
from arag_search.query.lexer import Lexeme
from arag_search.query.problems import Findings
from arag_search.query.tree import Node, Not, all_of, any_of

Operator = Literal["AND", "OR"]
Connector = Literal["START", "SPACE", "AND", "OR"]


@dataclass(slots=True)
class Item:
    """A clause in its group: what stands before it, whether a NOT does, and its place.

    ``node`` None is a clause that was refused and has no replacement.
    """

    connector: Connector
    negated: bool
    node: Node | None
    start: int
    end: int
    plus: bool = False


# Calling list itself, not list[Item], which takes ten times as long.
_no_items = cast(Callable[[], list[Item]], list)
_no_places = cast(Callable[[], list[int]], list)
_no_spans = cast(Callable[[], list[tuple[int, int]]], list)


@dataclass(slots=True)
class Group:
    """An open parenthesis (or the whole query): what has been read of it."""

    start: int
    field: FieldRef | None = None
    connector: Connector = "START"
    negated: bool = False
    plus: bool = False
    items: list[Item] = dataclasses.field(default_factory=_no_items)
    operator: tuple[Operator, Lexeme] | None = None
    nots: list[int] = dataclasses.field(default_factory=_no_places)
    plus_pending: bool = False
    dropped: list[tuple[int, int]] = dataclasses.field(default_factory=_no_spans)


@dataclass(slots=True)
class Reading:
    """The result of reading a text. ``exclusions``: a text of nothing but NOTs (scopes only)."""

    findings: Findings
    tree: Node | None = None
    exclusions: tuple[Not, ...] = ()
    place: tuple[int, int] = (0, 0)


_ALL_OF: dict[Operator, set[Connector]] = {"AND": {"AND", "SPACE"}, "OR": {"AND"}}
_ANY_OF: dict[Operator, set[Connector]] = {"AND": {"OR"}, "OR": {"OR", "SPACE"}}
"""What may stand between the clauses of a group for it to mean all, or any, of them."""


def only_nots(items: list[Item]) -> bool:
    """A group of nothing but NOTs, joined by AND or spaces."""
    if not items[0].negated:
        return False
    return all(item.negated for item in items) and all(
        item.connector in ("AND", "SPACE") for item in items[1:]
    )


def build(items: list[Item], default: Operator, found: Findings) -> Node | None:
    """The node that the clauses of one group mean; None where nothing is left of it.

    Runs joined by AND (and by spaces where that is the default) are the alternatives. A run of
    nothing but NOTs excludes from the whole group where a space stands before it, or after it if it
    is the first; else it is refused, and mended by joining it to the alternative before it, or to
    the next if it is the first.
    """
    if len(items) == 1 and not items[0].negated and items[0].node is not None:
        return items[0].node
    if any(item.plus for item in items):
        _join_plus(items, found)
    kept = [item.node for item in items if item.node is not None and not item.negated]
    if len(kept) == len(items):
        connectors = {item.connector for item in items[1:]}
        if connectors <= _ALL_OF[default]:
            return all_of(*kept)
        if connectors <= _ANY_OF[default]:
            return any_of(*kept)
    alternatives: list[Node] = []
    excluded: list[Not] = []
    carried: list[Not] = []  # refused exclusions that wait for the next alternative
    runs = _runs(items, default)
    broken = False
    for index, run in enumerate(runs):
        positive = [item.node for item in run if not item.negated and item.node is not None]
        negative = [Not(item.node) for item in run if item.negated and item.node is not None]
        if any(not item.negated for item in run):
            if positive:
                alternatives.append(all_of(*positive, *negative, *carried))
                carried = []
            broken = broken or not positive
            continue
        after = runs[index + 1][0].connector if index + 1 < len(runs) else None
        if run[0].connector == "SPACE" or (run[0].connector == "START" and after == "SPACE"):
            excluded.extend(negative)
            continue
        found.refuse(run[0].start, run[-1].end, problems.NOT_ALTERNATIVE, mended=True)
        if alternatives:
            alternatives[-1] = all_of(alternatives[-1], *negative)
        else:
            carried.extend(negative)
    if not alternatives:
        if not broken and not carried:
            found.refuse(items[0].start, items[-1].end, problems.ONLY_NOTS, mended=False)
        found.mendable = found.mendable and not carried
        return None
    return all_of(any_of(*alternatives), *excluded)


def _runs(items: list[Item], default: Operator) -> list[list[Item]]:
    runs: list[list[Item]] = []
    for item in items:
        connector = default if item.connector == "SPACE" else item.connector
        if connector == "AND" and runs:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _join_plus(items: list[Item], found: Findings) -> None:
    """What ``+a +b`` was meant to say; not derivable where some have a plus and some not."""
    if all(item.plus or item.negated for item in items):
        for item in items[1:]:
            item.connector = "AND"
    else:
        found.mendable = False

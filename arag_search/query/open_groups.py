"""The groups that are open while a query is read: what stands before the next clause, and what
a group comes to when it ends."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

from arag_search.errors import ArgumentError
from arag_search.query import problems
from arag_search.query.clauses import ClauseReader, FieldRef
from arag_search.query.groups import Connector, Group, Item, Operator, build, only_nots
from arag_search.query.lexer import Lexeme
from arag_search.query.problems import EndOfReadingError, fill
from arag_search.query.tree import (
    And,
    Node,
    Or,
    TextLeaf,
    any_of,
    scores,
    spelled_words,
    weighted,
)

_WEIGHT = re.compile(r"\^[^\s()]+")


class OpenGroups:
    """A stack of them. ``root`` is the whole query, ``group`` the innermost one.

    ``pending_field`` is a field whose value comes next, and where it stands. ``operators`` says
    whether the query may have any.
    """

    def __init__(self, clauses: ClauseReader, default_operator: Operator, operators: bool) -> None:
        self.root = Group(0)
        self.group = self.root
        self.pending_field: tuple[FieldRef, int] | None = None
        self._groups = [self.root]
        self._clauses = clauses
        self._found = clauses.findings
        self._default: Operator = default_operator
        self._operators = operators
        self._spelled = 0

    @property
    def depth(self) -> int:
        """How many there are, the whole query being one."""
        return len(self._groups)

    # What comes before a clause

    def operator(self, operator: Operator | Literal["NOT"], lexeme: Lexeme) -> None:
        """AND, OR or NOT before the next clause."""
        group = self.group
        if not self._operators:
            message = problems.OPERATORS_OFF
            self._found.refuse(lexeme.start, lexeme.end, message, mended=True)
            if operator == "NOT":
                group.nots.append(lexeme.start)
            return
        if operator == "NOT":
            group.nots.append(lexeme.start)
            return
        self._refuse_dangling(group)
        if group.operator is not None:
            self._refuse_right(group.operator[1])
        elif not group.items:
            message = fill(problems.NOTHING_LEFT, operator=lexeme.raw)
            self._found.refuse(lexeme.start, lexeme.end, message, mended=True)
            return
        group.operator = operator, lexeme

    def signs(self, signs: str, start: int) -> None:
        """Minus, exclamation mark and plus directly before a clause."""
        for offset, sign in enumerate(signs):
            place = start + offset
            if sign == "+":
                self._found.refuse(place, place + 1, problems.PLUS, mended=True)
                self.group.plus_pending = True
                continue
            if not self._operators:
                self._found.refuse(place, place + 1, problems.OPERATORS_OFF, mended=True)
            self.group.nots.append(place)

    def take_field(self, start: int) -> tuple[FieldRef | None, int]:
        """The field of the clause whose value starts here, and where the clause starts."""
        if self.pending_field is not None:
            (field, start), self.pending_field = self.pending_field, None
            return field, start
        return self.group.field, start

    # Clauses and groups

    def add(self, node: Node | None, start: int, end: int) -> None:
        """Put a clause into the innermost group; None was refused."""
        group = self.group
        first = group.nots[0] if group.nots else start
        connector, negated, plus = self._before()
        self.pending_field = None
        node = self._without_weight(node, start, end) if negated else node
        if isinstance(node, TextLeaf) and len(node.spellings) > 1:
            self._count(node, start, end)
        if negated and not self._operators:
            node, negated = None, False  # what was to be excluded is not searched either
        group.items.append(Item(connector, negated, node, first, end, plus))

    def begin(self, start: int, field: FieldRef | None) -> None:
        """Put a group on the stack."""
        self.group = Group(start, field, *self._before())
        self._groups.append(self.group)

    def end(self, end: int, suffix: str) -> None:
        """Take the innermost group off the stack and put what it means into the one around it."""
        group = self._groups.pop()
        self._settle(group)
        weight = self._weight(suffix, end)
        self.group = self._groups[-1]
        if not group.items:
            self._refuse_empty(group, end)
        if not group.items or (group.negated and not self._operators):
            self._put(group, None, end)
        elif only_nots(group.items):
            if weight != 1:
                message = problems.WEIGHT_ON_NOT
                self._found.refuse(end - len(suffix), end, message, mended=True)
            self._end_nots(group, end)
        else:
            node = build(group.items, self._default, self._found)
            if weight != 1 and node is not None:
                node = self._weighted(node, weight, group.negated, end - len(suffix), end)
            self._put(group, node, end, negated=group.negated)

    def end_all(self) -> None:
        """Refuse what was left open at the end of the text, and end it, the whole query too."""
        end = len(self._found.text)
        while len(self._groups) > 1:
            start = self.group.start
            self._found.refuse(start, start + 1, problems.UNCLOSED_GROUP, mended=True)
            self.end(end, "")
        self._settle(self.root)

    def _put(self, group: Group, node: Node | None, end: int, *, negated: bool = False) -> None:
        """Make a group that has ended a clause of the one around it."""
        node = self._without_weight(node, group.start, end) if negated else node
        item = Item(group.connector, negated, node, group.start, end, group.plus)
        self.group.items.append(item)

    def _count(self, leaf: TextLeaf, start: int, end: int) -> None:
        """Raise EndOfReadingError where the leaves read so far have too many spellings, which costs
        much; the limits of a query are checked later."""
        self._spelled += spelled_words(leaf)
        if self._spelled > problems.MAX_WORDS_WITHOUT_LIMITS:
            limit = problems.MAX_WORDS_WITHOUT_LIMITS
            message = fill(problems.TOO_MANY_WORDS, count=self._spelled, limit=limit)
            self._found.refuse(start, end, message, mended=False)
            raise EndOfReadingError

    def _without_weight(self, node: Node | None, start: int, end: int) -> Node | None:
        """What a NOT excludes, which has no weight of its own; one is refused."""
        if not isinstance(node, TextLeaf | And | Or) or node.weight == 1:
            return node
        weights = list(_WEIGHT.finditer(self._found.text, start, end))
        if weights:
            start, end = weights[-1].span()
        self._found.refuse(start, end, problems.WEIGHT_ON_NOT, mended=True)
        return dataclasses.replace(node, weight=1.0)

    def _end_nots(self, group: Group, end: int) -> None:
        """A group of only NOTs is read as if its parentheses were not there."""
        if not group.negated:
            group.items[0].connector = group.connector
            self.group.items.extend(group.items)
            return
        self._found.refuse(group.start, end, problems.NOT_NOT, mended=True)
        kept = [item.node for item in group.items if item.node is not None]
        self._put(group, any_of(*kept) if kept else None, end)

    def _refuse_empty(self, group: Group, end: int) -> None:
        found = self._found
        if group.dropped:
            first, last = group.dropped[0]
            found.notes.pop(fill(problems.NOTE_DROPPED, piece=found.text[first:last]), None)
            found.refuse(first, last, problems.NO_TOKEN, mended=True)
        elif not found.problems or found.text[group.start + 1 : end - 1].strip() == "":
            found.refuse(group.start, end, problems.EMPTY_GROUP, mended=True)

    def _weight(self, suffix: str, end: int) -> float:
        suffix = suffix.rstrip("?")
        if not suffix:
            return 1.0
        start = end - len(suffix)
        if suffix[0] == "~":
            self._found.refuse(start, end, problems.SLOP_MISPLACED, mended=True)
            return 1.0
        return self._clauses.weight(suffix, start)

    def _weighted(self, node: Node, weight: float, negated: bool, start: int, end: int) -> Node:
        if negated or not scores(node):
            message = problems.WEIGHT_ON_NOT if negated else problems.WEIGHT_ON_FILTER
            self._found.refuse(start, end, message, mended=True)
            return node
        try:
            return weighted(node, weight)
        except ArgumentError:
            message = fill(problems.WEIGHT_RANGE, weight=weight)
            self._found.refuse(start, end, message, mended=True)
            return node

    # Operators that wait for a clause

    def _before(self) -> tuple[Connector, bool, bool]:
        """What stands before the clause that comes next: connector, NOT, plus."""
        group = self.group
        connector: Connector = "SPACE" if group.items else "START"
        if not (group.operator or group.nots or group.plus_pending):
            return connector, False, False
        if group.operator is not None:
            connector = group.operator[0]
            group.operator = None
        if len(group.nots) > 1 and self._operators:
            end = self._end_of_not(group.nots[-1])
            self._found.refuse(group.nots[0], end, problems.NOT_NOT, mended=True)
        negated = len(group.nots) % 2 == 1
        group.nots.clear()
        plus, group.plus_pending = group.plus_pending, False
        return connector, negated, plus

    def _settle(self, group: Group) -> None:
        """Refuse operators that wait for a clause at the end of a group."""
        if group.nots:
            self._refuse_dangling(group)
        if group.operator is None:
            return
        self._refuse_right(group.operator[1])
        group.operator = None

    def _refuse_dangling(self, group: Group) -> None:
        """NOTs with no clause after them."""
        for start in group.nots:
            end = self._end_of_not(start)
            message = fill(problems.NOTHING_RIGHT, operator=self._found.text[start:end])
            self._found.refuse(start, end, message, mended=True)
        group.nots.clear()

    def _refuse_right(self, lexeme: Lexeme) -> None:
        message = fill(problems.NOTHING_RIGHT, operator=lexeme.raw)
        self._found.refuse(lexeme.start, lexeme.end, message, mended=True)

    def _end_of_not(self, start: int) -> int:
        """A NOT is a word or a sign."""
        return start + (3 if self._found.text.startswith("NOT", start) else 1)

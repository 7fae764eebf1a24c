"""Walks over the lexemes of a query, clause by clause, with a stack of open groups.

The whole text is read whatever is wrong with it; each problem is recorded where it is met.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from arag_search.errors import ArgumentError
from arag_search.query import problems
from arag_search.query.clauses import ClauseReader, FieldRef, has_token
from arag_search.query.fields import Schema
from arag_search.query.groups import (
    Connector,
    Group,
    Item,
    Operator,
    Reading,
    build,
    only_nots,
)
from arag_search.query.lexer import Lexeme, find_special, lex, unescape
from arag_search.query.problems import Findings
from arag_search.query.tree import (
    And,
    Leaf,
    Node,
    Not,
    Or,
    Prefix,
    Term,
    TextLeaf,
    any_of,
    leaves,
    scores,
    weighted,
)

_OPERATORS: dict[str, Operator | Literal["NOT"]] = {
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "&&": "AND",
    "||": "OR",
}
_LOWER_CASE_OPERATORS = frozenset({"and", "or", "not"})
_MAX_DEPTH_WITHOUT_LIMITS = 100


def read(
    text: str, schema: Schema, default_operator: Operator, operators: bool, limits: bool
) -> Reading:
    found = Findings(text)
    reading = Reading(found)
    if limits and len(text) > problems.MAX_CHARACTERS:
        message = problems.TOO_LONG.format(count=len(text), limit=problems.MAX_CHARACTERS)
        found.refuse(0, 40, message, mended=False)
        return reading
    if not text.isascii():
        for index, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                found.refuse(index, index + 1, problems.LONE_SURROGATE, mended=False)
        if found.problems:
            return reading
    if not text.strip():
        found.refuse(0, len(text), problems.EMPTY_QUERY, mended=False)
        return reading
    reader = _Reader(text, schema, default_operator, operators, limits, reading)
    reader.read()
    if limits and reading.tree is not None:
        _check_limits(reading.tree, found)
    return reading


class _Reader:
    """Walks the lexemes with a stack of open groups."""

    def __init__(
        self,
        text: str,
        schema: Schema,
        default_operator: Operator,
        operators: bool,
        limits: bool,
        reading: Reading,
    ) -> None:
        self.default: Operator = default_operator
        self.operators = operators
        self.max_depth = problems.MAX_DEPTH if limits else _MAX_DEPTH_WITHOUT_LIMITS
        self.reading = reading
        self.found = reading.findings
        self.clauses = ClauseReader(schema, self.found)
        self.lexemes = lex(text)
        self.group = Group(0)  # the innermost one
        self.groups = [self.group]
        self.pending_field: tuple[FieldRef, int] | None = None
        self.ignored = 0  # parentheses that are open beyond the depth that is read

    def read(self) -> None:
        for index, lexeme in enumerate(self.lexemes):
            match lexeme.kind:
                case "word":
                    self._word(index, lexeme)
                case "phrase":
                    self._phrase(lexeme)
                case "open":
                    self._open(lexeme)
                case "close":
                    self._close(lexeme)
                case "range":
                    self._range(lexeme)
                case "backslash":
                    message = problems.TRAILING_BACKSLASH
                    self.found.refuse(lexeme.start, lexeme.end, message, mended=True)
        end = len(self.found.text)
        while len(self.groups) > 1:
            start = self.group.start
            self.found.refuse(start, start + 1, problems.UNCLOSED_GROUP, mended=True)
            self._end_group(end, "")
        root = self.groups[0]
        self._settle(root)
        if not root.items and not self.found.problems:
            start, stop = root.dropped[0]
            self.found.refuse(start, stop, problems.ONLY_DROPPED, mended=False)
        if not root.items:
            return
        if only_nots(root.items):
            kept = (Not(item.node) for item in root.items if item.node is not None)
            self.reading.exclusions = tuple(kept)
            self.reading.place = root.items[0].start, root.items[-1].end
            return
        self.reading.tree = build(root.items, self.default, self.found)

    # Clauses

    def _word(self, index: int, lexeme: Lexeme) -> None:
        raw, start = lexeme.raw, lexeme.start
        following = self._following(index)
        if raw.isalnum() and raw.isascii() and raw not in _OPERATORS:
            self._plain_word(raw, lexeme, following, is_token=True)
            return
        if raw in _OPERATORS and self.pending_field is None:
            self._operator(_OPERATORS[raw], lexeme)
            return
        joined = following.kind if following is not None and following.joined else None
        if not raw.strip("-!+") and joined in ("phrase", "open", "range"):
            self._signs(raw, start)
            return
        if self._is_dropped(raw, lexeme, following):
            return
        signs = len(raw) - len(raw.lstrip("-!")) if raw[0] in "-!" else 0
        if self.group.field is not None and self.group.field.kind == "number" and raw[0] == "-":
            signs = 0  # a negative number
        if signs:
            self._signs(raw[:signs], start)
            self._note_minus_number(raw, signs)
            raw, start = raw[signs:], start + signs
        elif raw[0] == "+" and len(raw) > 1:
            self._signs("+", start)
            raw, start = raw[1:], start + 1
        colon = -1 if ":" not in raw else find_special(raw, ":")
        if colon >= 0 and not self._takes_colon(raw[:colon]):
            self._fielded_word(index, lexeme, raw, start, colon)
            return
        self._plain_word(raw, lexeme, following)

    def _plain_word(
        self, raw: str, lexeme: Lexeme, following: Lexeme | None, *, is_token: bool = False
    ) -> None:
        """A word with nothing before it that means something, of which ``raw`` is the rest.

        ``is_token``: there are letters and digits of ASCII in it and nothing else.
        """
        start = lexeme.end - len(raw)
        if raw in _LOWER_CASE_OPERATORS:
            self._note_lower_case(raw, following)
        field, first = self._take_field(start)
        if is_token and field is None:
            self._add(Term(raw), first, lexeme.end)
            return
        self._add(self.clauses.word(raw, start, field), first, lexeme.end)

    def _takes_colon(self, name: str) -> bool:
        """Within ``published:( )`` a colon belongs to the value, unless a field is before it."""
        outer = self.group.field or (self.pending_field and self.pending_field[0])
        if not outer or outer.kind == "text":
            return False
        return self.clauses.schema.kind(name) is None

    def _fielded_word(self, index: int, lexeme: Lexeme, raw: str, start: int, colon: int) -> None:
        name, value = unescape(raw[:colon]), raw[colon + 1 :]
        end = lexeme.end
        refuse = self.found.refuse
        if raw == "*:*":
            refuse(start, end, problems.BARE_STAR, mended=True)
            self._add(None, start, end)
            return
        if not name:
            refuse(start, end, problems.COLON_WITHOUT_FIELD, mended=has_token(value))
            self._add(Term(unescape(value)) if has_token(value) else None, start, end)
            return
        ref = self._field_here(name, start)
        following = self._following(index)
        joined = following.kind if following is not None and following.joined else None
        if value == "" and joined in ("phrase", "open"):
            self.pending_field = ref, start
            return
        if value.strip("?") == "":
            self._field_without_value(ref, start, end, following)
            return
        if value[0] in "-!" and ref.kind == "text":
            message = problems.NOT_INSIDE_FIELD.format(name=name, value=value[1:])
            refuse(start, end, message, mended=True)
            self.group.nots.append(start)
            value = value.lstrip("-!")
        leaf = self.clauses.word(value, end - len(value), ref)
        self._add(leaf, start, end)
        self._note_field_covers(index, ref, value, leaf)

    def _field_here(self, name: str, start: int) -> FieldRef:
        """The field of a clause, refused within the group of another field."""
        outer = self.group.field
        if outer is not None:
            message = problems.FIELD_IN_FIELD.format(outer=outer.name)
            self.found.refuse(start, start + len(name) + 1, message, mended=True)
        return self.clauses.field(name)

    def _field_without_value(
        self, ref: FieldRef, start: int, end: int, following: Lexeme | None
    ) -> None:
        """``title:`` and nothing, or a blank before what it was meant for."""
        refuse = self.found.refuse
        takes_next = (
            following is not None
            and following.kind in ("word", "phrase", "open")
            and following.raw not in _OPERATORS
        )
        if ref.kind == "unknown":
            self.clauses.refuse_unknown(ref.name, start, mended=True)
            self._add(Term(ref.name) if has_token(ref.name) else None, start, end)
        elif takes_next and following is not None:
            value = following.raw if following.kind != "open" else "(...)"
            message = problems.BLANK_AFTER_FIELD.format(name=ref.name, value=value)
            refuse(start, end, message, mended=True)
            self.pending_field = ref, start
        else:
            refuse(start, end, problems.EMPTY_FIELD.format(name=ref.name), mended=True)
            self._add(None, start, end)

    def _phrase(self, lexeme: Lexeme) -> None:
        field, start = self._take_field(lexeme.start)
        node = self.clauses.phrase(lexeme.raw, lexeme.suffix, lexeme.start, lexeme.end, field)
        self._add(node, start, lexeme.end)

    def _range(self, lexeme: Lexeme) -> None:
        raw, start = lexeme.raw, lexeme.start
        signs = len(raw) - len(raw.lstrip("-!"))
        if signs:
            self._signs(raw[:signs], start)
        bracket = min(at for at in (raw.find("["), raw.find("{")) if at >= 0)
        name = raw[signs : bracket - 1] if bracket else ""
        field = self._field_here(name, start + signs) if name else self._take_field(start)[0]
        node = self.clauses.range(raw[bracket:], lexeme.suffix, start + bracket, lexeme.end, field)
        self._add(node, start + signs, lexeme.end)

    def _take_field(self, start: int) -> tuple[FieldRef | None, int]:
        """The field of the clause whose value starts here, and where the clause starts."""
        if self.pending_field is not None:
            (field, start), self.pending_field = self.pending_field, None
            return field, start
        return self.group.field, start

    # What is between clauses

    def _operator(self, operator: Operator | Literal["NOT"], lexeme: Lexeme) -> None:
        group = self.group
        if not self.operators:
            message = problems.OPERATORS_OFF
            self.found.refuse(lexeme.start, lexeme.end, message, mended=True)
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
            message = problems.NOTHING_LEFT.format(operator=lexeme.raw)
            self.found.refuse(lexeme.start, lexeme.end, message, mended=True)
            return
        group.operator = operator, lexeme

    def _signs(self, signs: str, start: int) -> None:
        """Minus, exclamation mark and plus directly before a clause."""
        for offset, sign in enumerate(signs):
            place = start + offset
            if sign == "+":
                self.found.refuse(place, place + 1, problems.PLUS, mended=True)
                self.group.plus_pending = True
                continue
            if not self.operators:
                self.found.refuse(place, place + 1, problems.OPERATORS_OFF, mended=True)
            self.group.nots.append(place)

    def _refuse_right(self, lexeme: Lexeme) -> None:
        message = problems.NOTHING_RIGHT.format(operator=lexeme.raw)
        self.found.refuse(lexeme.start, lexeme.end, message, mended=True)

    def _refuse_dangling(self, group: Group) -> None:
        """NOTs with no clause after them."""
        for start in group.nots:
            length = 3 if self.found.text.startswith("NOT", start) else 1
            message = problems.NOTHING_RIGHT.format(
                operator=self.found.text[start : start + length]
            )
            self.found.refuse(start, start + length, message, mended=True)
        group.nots.clear()

    def _is_dropped(self, raw: str, lexeme: Lexeme, following: Lexeme | None) -> bool:
        """Whether a piece that holds nothing to search is left out, with a note."""
        group = self.group
        if self.pending_field or has_token(raw) or find_special(raw, ":^~*") >= 0:
            return False
        if raw[0] == "\\" and unescape(raw) in _OPERATORS:
            return False
        before = lexeme.start == 0 or not lexeme.joined
        after = following is None or not following.joined
        beside_operator = (
            group.operator is not None
            or bool(group.nots)
            or (following is not None and following.raw in _OPERATORS)
        )
        if (before or after) and not beside_operator:
            group.dropped.append((lexeme.start, lexeme.end))
            self.found.note(problems.NOTE_DROPPED.format(piece=raw))
            return True
        self.found.refuse(lexeme.start, lexeme.end, problems.NO_TOKEN, mended=True)
        self._add(None, lexeme.start, lexeme.end)
        return True

    def _following(self, index: int) -> Lexeme | None:
        return self.lexemes[index + 1] if index + 1 < len(self.lexemes) else None

    # Notes

    def _note_minus_number(self, raw: str, signs: int) -> None:
        word = raw[signs:]
        if raw[0] == "-" and word[:1].isdigit():
            self.found.note(problems.NOTE_MINUS_NUMBER.format(piece=raw, word=word))

    def _note_lower_case(self, raw: str, following: Lexeme | None) -> None:
        if not self.operators or following is None:
            return
        if following.kind != "close" and following.raw not in _OPERATORS:
            self.found.note(problems.NOTE_LOWER_CASE.format(word=raw))

    def _note_field_covers(self, index: int, ref: FieldRef, value: str, leaf: Leaf | None) -> None:
        following = self._following(index)
        if (
            ref.kind == "text"
            and isinstance(leaf, Term | Prefix)
            and following is not None
            and following.kind == "word"
            and not following.joined
            and following.raw not in _OPERATORS
            and following.raw[0] not in "-!+"
            and find_special(following.raw, ":") < 0
            and has_token(unescape(following.raw))
        ):
            note = problems.NOTE_FIELD_COVERS.format(name=ref.name, word=unescape(value))
            self.found.note(note)

    # Groups

    def _open(self, lexeme: Lexeme) -> None:
        if len(self.groups) > self.max_depth:
            self.ignored += 1
            if self.ignored == 1:
                message = problems.TOO_DEEP.format(count=self._typed_depth(), limit=self.max_depth)
                self.found.refuse(lexeme.start, lexeme.end, message, mended=False)
            return  # read on as if this parenthesis were not there
        field, start = self._take_field(lexeme.start)
        if field is not None and field.kind == "unknown":
            self.clauses.refuse_unknown(field.name, start, mended=False)
            field = None
        self.group = Group(lexeme.start, field, *self._before(start))
        self.groups.append(self.group)

    def _typed_depth(self) -> int:
        deepest = depth = 0
        for lexeme in self.lexemes:
            depth += (lexeme.kind == "open") - (lexeme.kind == "close")
            deepest = max(deepest, depth)
        return deepest

    def _close(self, lexeme: Lexeme) -> None:
        if self.ignored:
            self.ignored -= 1
            return
        if len(self.groups) == 1:
            message = problems.UNOPENED_GROUP
            self.found.refuse(lexeme.start, lexeme.start + 1, message, mended=True)
            return
        self._end_group(lexeme.end, lexeme.suffix)

    def _end_group(self, end: int, suffix: str) -> None:
        """Take the innermost group off the stack and put what it means into the one around it."""
        group = self.groups.pop()
        self._settle(group)
        start = group.start
        weight = self._group_weight(suffix, end)
        outer = self.group = self.groups[-1]
        items = group.items
        if not items:
            if group.dropped:
                first, last = group.dropped[0]
                self.found.notes.pop(
                    problems.NOTE_DROPPED.format(piece=self.found.text[first:last]), None
                )
                self.found.refuse(first, last, problems.NO_TOKEN, mended=True)
            elif not self.found.problems or self.found.text[start + 1 : end - 1].strip() == "":
                self.found.refuse(start, end, problems.EMPTY_GROUP, mended=True)
            outer.items.append(Item(group.connector, False, None, start, end, group.plus))
            return
        if not self.operators and group.negated:
            outer.items.append(Item(group.connector, False, None, start, end, group.plus))
            return
        if only_nots(items):
            if weight != 1:
                message = problems.WEIGHT_ON_NOT
                self.found.refuse(end - len(suffix), end, message, mended=True)
            if group.negated:
                self.found.refuse(start, end, problems.NOT_NOT, mended=True)
                kept = [item.node for item in items if item.node is not None]
                node = any_of(*kept) if kept else None
                outer.items.append(Item(group.connector, False, node, start, end, group.plus))
                return
            items[0].connector = group.connector
            outer.items.extend(items)
            return
        node = build(items, self.default, self.found)
        if weight != 1 and node is not None:
            node = self._weighted(node, weight, group.negated, end - len(suffix), end)
        outer.items.append(Item(group.connector, group.negated, node, start, end, group.plus))

    def _group_weight(self, suffix: str, end: int) -> float:
        suffix = suffix.rstrip("?")
        if not suffix:
            return 1.0
        start = end - len(suffix)
        if suffix[0] == "~":
            self.found.refuse(start, end, problems.SLOP_MISPLACED, mended=True)
            return 1.0
        return self.clauses.weight(suffix, start)

    def _weighted(self, node: Node, weight: float, negated: bool, start: int, end: int) -> Node:
        if negated or not scores(node):
            message = problems.WEIGHT_ON_NOT if negated else problems.WEIGHT_ON_FILTER
            self.found.refuse(start, end, message, mended=True)
            return node
        try:
            return weighted(node, weight)
        except ArgumentError:
            message = problems.WEIGHT_RANGE.format(weight=weight)
            self.found.refuse(start, end, message, mended=True)
            return node

    def _settle(self, group: Group) -> None:
        """Refuse operators that wait for a clause at the end of a group."""
        if group.nots:
            self._refuse_dangling(group)
        if group.operator is None:
            return
        operator, lexeme = group.operator
        self._refuse_right(lexeme)
        group.operator = None
        if operator == "OR" and lexeme.raw == "OR":
            group.items.append(Item("SPACE", False, Term("OR"), lexeme.start, lexeme.end))

    def _before(self, start: int) -> tuple[Connector, bool, bool]:
        """What stands before the clause that starts here: connector, NOT, plus."""
        group = self.group
        connector: Connector = "SPACE" if group.items else "START"
        if not (group.operator or group.nots or group.plus_pending):
            return connector, False, False
        if group.operator is not None:
            connector = group.operator[0]
            group.operator = None
        if len(group.nots) > 1 and self.operators:
            last = group.nots[-1]
            end = last + (3 if self.found.text.startswith("NOT", last) else 1)
            self.found.refuse(group.nots[0], end, problems.NOT_NOT, mended=True)
        negated = len(group.nots) % 2 == 1
        group.nots.clear()
        plus, group.plus_pending = group.plus_pending, False
        return connector, negated, plus

    def _add(self, node: Node | None, start: int, end: int) -> None:
        group = self.group
        first = group.nots[0] if group.nots else start
        connector, negated, plus = self._before(start)
        self.pending_field = None
        if negated and isinstance(node, TextLeaf | And | Or) and node.weight != 1:
            caret = self.found.text.rfind("^", start, end)
            self.found.refuse(caret, end, problems.WEIGHT_ON_NOT, mended=True)
            node = dataclasses.replace(node, weight=1.0)
        if negated and not self.operators:
            node, negated = None, False  # what was to be excluded is not searched either
        group.items.append(Item(connector, negated, node, first, end, plus))


def _check_limits(tree: Node, found: Findings) -> None:
    """Refuse a query of too many clauses."""
    # A leaf takes a character and what parts it from the next, a prefix a star as well.
    if len(found.text) < 2 * problems.MAX_LEAVES and "*" not in found.text:
        return
    all_leaves = list(leaves(tree))
    prefixes = sum(isinstance(leaf, Prefix) for leaf in all_leaves)
    for count, limit, message in (
        (len(all_leaves), problems.MAX_LEAVES, problems.TOO_MANY_LEAVES),
        (prefixes, problems.MAX_PREFIXES, problems.TOO_MANY_PREFIXES),
    ):
        if count > limit:
            text = message.format(count=count, limit=limit)
            found.refuse(0, len(found.text), text, mended=False)

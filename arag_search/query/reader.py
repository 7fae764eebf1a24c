"""Walks over the lexemes of a query, clause by clause.

The whole text is read whatever is wrong with it; each problem is recorded where it is met.
"""

from __future__ import annotations

from typing import Literal

from arag_search.query import problems
from arag_search.query.clauses import ClauseReader, FieldRef, has_token, is_searchable
from arag_search.query.fields import Schema
from arag_search.query.groups import Operator, Reading, build, only_nots
from arag_search.query.lexer import Lexeme, find_special, lex, unescape
from arag_search.query.open_groups import OpenGroups
from arag_search.query.problems import EndOfReadingError, Findings, fill
from arag_search.query.tree import (
    APOSTROPHES,
    Leaf,
    Node,
    Not,
    Prefix,
    Term,
    TextLeaf,
    leaves,
    spelled_words,
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
        message = fill(problems.TOO_LONG, count=len(text), limit=problems.MAX_CHARACTERS)
        found.refuse(0, 40, message, mended=False)
        return reading
    if not text.strip():
        found.refuse(0, len(text), problems.EMPTY_QUERY, mended=False)
        return reading
    try:
        if not text.isascii():
            _check_unicode(text, found)
        if not found.problems:
            _Reader(text, schema, default_operator, operators, limits, reading).read()
        if limits and reading.tree is not None:
            _check_limits(reading.tree, found)
    except EndOfReadingError:
        reading.tree, reading.exclusions = None, ()
    return reading


def _check_unicode(text: str, found: Findings) -> None:
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            found.refuse(index, index + 1, problems.LONE_SURROGATE, mended=False)


class _Reader:
    """Walks the lexemes; the groups that are open hold what has been read."""

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
        self.groups = OpenGroups(self.clauses, default_operator, operators)
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
        self.groups.end_all()
        root = self.groups.root
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
        if raw in _OPERATORS and self.groups.pending_field is None:
            self.groups.operator(_OPERATORS[raw], lexeme)
            return
        joined = following.kind if following is not None and following.joined else None
        if not raw.strip("-!+") and joined in ("phrase", "open", "range"):
            self.groups.signs(raw, start)
            return
        if self._is_dropped(raw, lexeme, following):
            return
        signs = len(raw) - len(raw.lstrip("-!")) if raw[0] in "-!" else 0
        outer = self.groups.group.field
        if outer is not None and outer.kind == "number" and raw[0] == "-":
            signs = 0  # a negative number
        if signs:
            self.groups.signs(raw[:signs], start)
            self._note_minus_number(raw, signs)
            raw, start = raw[signs:], start + signs
        elif raw[0] == "+" and len(raw) > 1:
            self.groups.signs("+", start)
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
        field, first = self.groups.take_field(start)
        if is_token and field is None:
            self.groups.add(Term(raw), first, lexeme.end)
            return
        self.groups.add(self.clauses.word(raw, start, field), first, lexeme.end)

    def _takes_colon(self, name: str) -> bool:
        """Within ``published:( )`` a colon belongs to the value, unless a field is before it."""
        pending = self.groups.pending_field
        outer = self.groups.group.field or (pending and pending[0])
        if not outer or outer.kind == "text":
            return False
        return self.clauses.schema.kind(name) is None

    def _fielded_word(self, index: int, lexeme: Lexeme, raw: str, start: int, colon: int) -> None:
        name, value = unescape(raw[:colon]), raw[colon + 1 :]
        end = lexeme.end
        refuse = self.found.refuse
        if raw == "*:*":
            refuse(start, end, problems.BARE_STAR, mended=True)
            self.groups.add(None, start, end)
            return
        if not name:
            refuse(start, end, problems.COLON_WITHOUT_FIELD, mended=is_searchable(value))
            self.groups.add(Term(unescape(value)) if is_searchable(value) else None, start, end)
            return
        ref = self._field_here(name, start)
        following = self._following(index)
        joined = following.kind if following is not None and following.joined else None
        if value == "" and joined in ("phrase", "open"):
            self.groups.pending_field = ref, start
            return
        if value.strip("?") == "":
            self._field_without_value(ref, start, end, following)
            return
        if value[0] in "-!" and ref.kind == "text":
            message = fill(problems.NOT_INSIDE_FIELD, name=name, value=value[1:])
            refuse(start, end, message, mended=True)
            self.groups.group.nots.append(start)
            value = value.lstrip("-!")
        leaf = self.clauses.word(value, end - len(value), ref)
        self.groups.add(leaf, start, end)
        self._note_field_covers(index, ref, value, leaf)

    def _field_here(self, name: str, start: int) -> FieldRef:
        """The field of a clause, refused within the group of another field."""
        outer = self.groups.group.field
        if outer is not None:
            message = fill(problems.FIELD_IN_FIELD, outer=outer.name)
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
            self.groups.add(Term(ref.name) if is_searchable(ref.name) else None, start, end)
        elif takes_next and following is not None:
            value = following.raw if following.kind != "open" else "(...)"
            message = fill(problems.BLANK_AFTER_FIELD, name=ref.name, value=value)
            refuse(start, end, message, mended=True)
            self.groups.pending_field = ref, start
        else:
            refuse(start, end, fill(problems.EMPTY_FIELD, name=ref.name), mended=True)
            self.groups.add(None, start, end)

    def _phrase(self, lexeme: Lexeme) -> None:
        field, start = self.groups.take_field(lexeme.start)
        node = self.clauses.phrase(lexeme.raw, lexeme.suffix, lexeme.start, lexeme.end, field)
        self.groups.add(node, start, lexeme.end)

    def _range(self, lexeme: Lexeme) -> None:
        raw, start = lexeme.raw, lexeme.start
        signs = len(raw) - len(raw.lstrip("-!"))
        if signs:
            self.groups.signs(raw[:signs], start)
        bracket = min(at for at in (raw.find("["), raw.find("{")) if at >= 0)
        name = raw[signs : bracket - 1] if bracket else ""
        field = self._field_here(name, start + signs) if name else self.groups.take_field(start)[0]
        node = self.clauses.range(raw[bracket:], lexeme.suffix, start + bracket, lexeme.end, field)
        self.groups.add(node, start + signs, lexeme.end)

    def _is_dropped(self, raw: str, lexeme: Lexeme, following: Lexeme | None) -> bool:
        """Whether a piece that holds nothing to search is left out, with a note."""
        group = self.groups.group
        if self.groups.pending_field or has_token(raw) or find_special(raw, ":^~*") >= 0:
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
            self.found.note(fill(problems.NOTE_DROPPED, piece=raw))
            return True
        self.found.refuse(lexeme.start, lexeme.end, problems.NO_TOKEN, mended=True)
        self.groups.add(None, lexeme.start, lexeme.end)
        return True

    def _following(self, index: int) -> Lexeme | None:
        return self.lexemes[index + 1] if index + 1 < len(self.lexemes) else None

    # Notes

    def _note_minus_number(self, raw: str, signs: int) -> None:
        word = raw[signs:]
        if raw[0] == "-" and word[:1].isdigit():
            self.found.note(fill(problems.NOTE_MINUS_NUMBER, piece=raw, word=word))

    def _note_lower_case(self, raw: str, following: Lexeme | None) -> None:
        if not self.operators or following is None:
            return
        if following.kind != "close" and following.raw not in _OPERATORS:
            self.found.note(fill(problems.NOTE_LOWER_CASE, word=raw))

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
            note = fill(problems.NOTE_FIELD_COVERS, name=ref.name, word=unescape(value))
            self.found.note(note)

    # Groups

    def _open(self, lexeme: Lexeme) -> None:
        if self.groups.depth > self.max_depth:
            self.ignored += 1
            if self.ignored == 1:
                message = fill(problems.TOO_DEEP, count=self._typed_depth(), limit=self.max_depth)
                self.found.refuse(lexeme.start, lexeme.end, message, mended=False)
                if self.max_depth > problems.MAX_DEPTH:
                    raise EndOfReadingError
            return  # read on as if this parenthesis were not there
        field, start = self.groups.take_field(lexeme.start)
        if field is not None and field.kind == "unknown":
            self.clauses.refuse_unknown(field.name, start, mended=False)
            field = None
        self.groups.begin(lexeme.start, field)

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
        if self.groups.depth == 1:
            message = problems.UNOPENED_GROUP
            self.found.refuse(lexeme.start, lexeme.start + 1, message, mended=True)
            return
        self.groups.end(lexeme.end, lexeme.suffix)


def _check_limits(tree: Node, found: Findings) -> None:
    """Refuse a query of too many clauses or words."""
    # A clause takes a character and what parts it from the next, a prefix a star as well; a word
    # of a phrase takes as much, and an apostrophe stands for two spellings.
    text = found.text
    signs = ("*", *APOSTROPHES)
    if len(text) < 2 * problems.MAX_LEAVES and not any(sign in text for sign in signs):
        return
    all_leaves = list(leaves(tree))
    prefixes = sum(isinstance(leaf, Prefix) for leaf in all_leaves)
    words = sum(spelled_words(leaf) for leaf in all_leaves if isinstance(leaf, TextLeaf))
    for count, limit, message in (
        (len(all_leaves), problems.MAX_LEAVES, problems.TOO_MANY_LEAVES),
        (prefixes, problems.MAX_PREFIXES, problems.TOO_MANY_PREFIXES),
        (words, problems.MAX_WORDS, problems.TOO_MANY_WORDS),
    ):
        if count > limit:
            found.refuse(0, len(text), message.format(count=count, limit=limit), mended=False)

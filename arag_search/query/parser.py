"""Query text -> tree, or all its problems at once, with a corrected query.

The parser reads lexemes one after another into a stack of groups: a lexeme that is a clause becomes
a leaf (``clauses``), and a group that ends becomes a clause of the group around it. The whole text
is read whatever problems it has; each problem is recorded at its place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from arag_search.errors import ArgumentError
from arag_search.query import problems
from arag_search.query.clauses import ClauseReader, FieldRef, has_token, is_searchable
from arag_search.query.fields import ANY_SCHEMA, Schema
from arag_search.query.lexer import Lexeme, find_special, lex, unescape
from arag_search.query.limits import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DEPTH_WITHOUT_LIMITS,
    MAX_LEAVES,
    MAX_MENDED,
    MAX_PREFIXES,
    MAX_WORDS,
    MAX_WORDS_WITHOUT_LIMITS,
)
from arag_search.query.problems import EndOfReadingError, Findings, Problem, QueryError, fill
from arag_search.query.tree import (
    APOSTROPHES,
    And,
    Leaf,
    Node,
    Not,
    Or,
    Prefix,
    Scope,
    Term,
    TextLeaf,
    all_of,
    any_of,
    leaves,
    render,
    scores,
    spelled_words,
    weighted,
)
from arag_search.system.arguments import checked

Operator = Literal["AND", "OR"]
Connector = Literal["START", "SPACE", "AND", "OR"]

_OPERATORS: dict[str, Operator | Literal["NOT"]] = {
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "&&": "AND",
    "||": "OR",
}
_LOWER_CASE_OPERATORS = frozenset({"and", "or", "not"})
_WEIGHT = re.compile(r"\^[^\s()]+")
_UNCLOSED_CURLY_QUOTE = re.compile("(?:^|:)[-!+]*[“„«][^“”»]*$")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was understood. ``understood`` is its canonical text."""

    tree: Node
    understood: str
    notes: tuple[str, ...]


@checked
def parse(
    text: str,
    schema: Schema = ANY_SCHEMA,
    *,
    default_operator: Operator = "OR",
    operators: bool = True,
    limits: bool = True,
) -> ParsedQuery:
    """Parse a query.

    ``default_operator`` is what a space means. ``operators`` False rejects AND, OR, NOT, - and !
    (a space is then OR). ``limits`` False lifts all limits but a depth of 100 parentheses and
    100,000 words in all spellings. Raises QueryError with every problem (the first 2,000), never
    anything else, whatever the text; one of more than 4,000 characters gets no corrected query.
    """
    options = _Options(schema, default_operator if operators else "OR", operators, limits)
    reading = _read(text, options)
    findings, tree = reading.findings, reading.tree
    if reading.exclusions:
        with suppress(EndOfReadingError):
            findings.reject(*reading.place, problems.ONLY_NOTS, mended=False)
    if findings.problems or tree is None:
        mended = None
        if tree is not None and findings.mendable and len(text) <= MAX_MENDED:
            corrected = render(tree, operators)
            again = _read(corrected, options)
            if not again.findings.problems and again.tree is not None:
                mended = corrected
        raise findings.error(mended)
    if not scores(tree):
        findings.note(problems.NOTE_UNRANKED)
    return ParsedQuery(tree, render(tree, operators), findings.all_notes())


def parse_scope(text: str, schema: Schema) -> Scope:
    """Parse a filter: metadata clauses only, NOTs alone allowed, no limits but depth.

    Raises QueryError.
    """
    schema = replace(schema, metadata_only=True)
    reading = _read(text, _Options(schema, "AND", operators=True, limits=False))
    if reading.findings.problems:
        raise reading.findings.error(None)
    include = () if reading.tree is None else (reading.tree,)
    for node in (*reading.exclusions, *include):
        for leaf in leaves(node):
            if isinstance(leaf, TextLeaf):
                message = problems.TEXT_IN_SCOPE.format(fields=schema.describe())
                problem = Problem(1, problems.shortened(str(leaf)), message)
                raise QueryError(text, (problem,), None)
    return Scope(include, tuple(node.child for node in reading.exclusions))


def parse_filter(text: str, schema: Schema) -> Scope:
    """Parse a filter as ``parse_scope`` does; its QueryError says that the filter is at fault."""
    try:
        return parse_scope(text, schema)
    except QueryError as error:
        error.where = "the filter"
        raise


def parse_where(text: str, schema: Schema) -> ParsedQuery:
    """Parse the condition of a search by vectors: a logical query that only decides which passages
    are ranked. Raises QueryError, which says that the condition is at fault."""
    try:
        parsed = parse(text, schema)
    except QueryError as error:
        raise condition_error(error) from None
    notes = tuple(note for note in parsed.notes if note != problems.NOTE_UNRANKED)
    return replace(parsed, notes=notes)


def condition_error(error: QueryError) -> QueryError:
    """Return an error that says that the condition of a search by vectors is at fault."""
    error.where = "the condition where"
    return error


class _Options(NamedTuple):
    """The options of ``parse``."""

    schema: Schema
    default_operator: Operator
    operators: bool
    limits: bool


@dataclass(slots=True)
class _Reading:
    """The result of reading a text.

    A text of nothing but NOTs has ``exclusions``, at ``place``, instead of a tree; only a filter
    may be one.
    """

    findings: Findings
    tree: Node | None = None
    exclusions: tuple[Not, ...] = ()
    place: tuple[int, int] = (0, 0)


def _read(text: str, options: _Options) -> _Reading:
    findings = Findings(text)
    reading = _Reading(findings)
    if options.limits and len(text) > MAX_CHARACTERS:
        message = fill(problems.TOO_LONG, count=len(text), limit=MAX_CHARACTERS)
        findings.reject(0, 40, message, mended=False)
        return reading
    if not text.strip():
        findings.reject(0, len(text), problems.EMPTY_QUERY, mended=False)
        return reading
    try:
        if not text.isascii():
            _check_unicode(text, findings)
        if not findings.problems:
            _Reader(text, options, reading).read()
        if options.limits and reading.tree is not None:
            _check_limits(reading.tree, findings)
    except EndOfReadingError:
        reading.tree, reading.exclusions = None, ()
    return reading


def _check_unicode(text: str, findings: Findings) -> None:
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            findings.reject(index, index + 1, problems.LONE_SURROGATE, mended=False)


def _check_limits(tree: Node, findings: Findings) -> None:
    """Reject a query of too many clauses or words."""
    # A clause takes a character and a separator, a prefix also a star; a word of a phrase takes as
    # much, and an apostrophe stands for two spellings. Most texts are too short to count.
    text = findings.text
    signs = ("*", *APOSTROPHES)
    if len(text) < 2 * MAX_LEAVES and not any(sign in text for sign in signs):
        return
    all_leaves = list(leaves(tree))
    prefixes = sum(isinstance(leaf, Prefix) for leaf in all_leaves)
    words = sum(spelled_words(leaf) for leaf in all_leaves if isinstance(leaf, TextLeaf))
    for count, limit, message in (
        (len(all_leaves), MAX_LEAVES, problems.TOO_MANY_LEAVES),
        (prefixes, MAX_PREFIXES, problems.TOO_MANY_PREFIXES),
        (words, MAX_WORDS, problems.TOO_MANY_WORDS),
    ):
        if count > limit:
            findings.reject(0, len(text), message.format(count=count, limit=limit), mended=False)


class _Reader:
    """A pass over the lexemes of a text, which adds clauses to the open groups."""

    def __init__(self, text: str, options: _Options, reading: _Reading) -> None:
        self.options = options
        self.max_depth = MAX_DEPTH if options.limits else MAX_DEPTH_WITHOUT_LIMITS
        self.reading = reading
        self.findings = reading.findings
        self.clauses = ClauseReader(options.schema, self.findings)
        self.lexemes = lex(text)
        self.groups = _OpenGroups(self.clauses, options)
        self.ignored = 0  # open parentheses beyond the deepest level that is read

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
                    self.findings.reject(lexeme.start, lexeme.end, message, mended=True)
        self.groups.end_all()
        root = self.groups.root
        if not root.items and not self.findings.problems:
            start, stop = root.dropped[0]
            self.findings.reject(start, stop, problems.ONLY_DROPPED, mended=False)
        if not root.items:
            return
        if _only_nots(root.items):
            kept = (Not(item.node) for item in root.items if item.node is not None)
            self.reading.exclusions = tuple(kept)
            self.reading.place = root.items[0].start, root.items[-1].end
            return
        self.reading.tree = _node_of(root.items, self.options.default_operator, self.findings)

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
        if not raw.isascii() and following and _UNCLOSED_CURLY_QUOTE.search(raw):
            self.findings.note(problems.NOTE_CURLY_QUOTES)
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
        """Add a word without its signs, ``raw``, as a clause.

        ``is_token`` says that it consists of ASCII letters and digits only.
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
        """Return whether a colon after ``name`` belongs to the value.

        Within ``published:( )`` it does, unless ``name`` is a field.
        """
        pending = self.groups.pending_field
        outer = self.groups.group.field or (pending and pending[0])
        if not outer or outer.kind == "text":
            return False
        return self.clauses.schema.kind(name) is None

    def _fielded_word(self, index: int, lexeme: Lexeme, raw: str, start: int, colon: int) -> None:
        name, value = unescape(raw[:colon]), raw[colon + 1 :]
        end = lexeme.end
        reject = self.findings.reject
        if raw == "*:*":
            reject(start, end, problems.BARE_STAR, mended=True)
            self.groups.add(None, start, end)
            return
        if not name:
            reject(start, end, problems.COLON_WITHOUT_FIELD, mended=is_searchable(value))
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
            reject(start, end, message, mended=True)
            self.groups.group.nots.append(start)
            value = value.lstrip("-!")
        leaf = self.clauses.word(value, end - len(value), ref)
        self.groups.add(leaf, start, end)
        self._note_field_covers(index, ref, value, leaf)

    def _field_here(self, name: str, start: int) -> FieldRef:
        """Return the field of a clause; reject it within the group of another field."""
        outer = self.groups.group.field
        if outer is not None:
            message = fill(problems.FIELD_IN_FIELD, outer=outer.name)
            self.findings.reject(start, start + len(name) + 1, message, mended=True)
        return self.clauses.field(name)

    def _field_without_value(
        self, ref: FieldRef, start: int, end: int, following: Lexeme | None
    ) -> None:
        """Reject a field with nothing or a blank after its colon."""
        reject = self.findings.reject
        takes_next = (
            following is not None
            and following.kind in ("word", "phrase", "open")
            and following.raw not in _OPERATORS
        )
        if ref.kind == "unknown":
            self.clauses.reject_unknown(ref.name, start, mended=True)
            self.groups.add(Term(ref.name) if is_searchable(ref.name) else None, start, end)
        elif takes_next and following is not None:
            value = following.raw if following.kind != "open" else "(...)"
            message = fill(problems.BLANK_AFTER_FIELD, name=ref.name, value=value)
            reject(start, end, message, mended=True)
            self.groups.pending_field = ref, start
        else:
            reject(start, end, fill(problems.EMPTY_FIELD, name=ref.name), mended=True)
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
        """Drop a piece that holds nothing to search, or reject it; return whether that was done.

        A piece next to a blank and no operator is dropped with a note.
        """
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
            self.findings.note(fill(problems.NOTE_DROPPED, piece=raw))
            return True
        self.findings.reject(lexeme.start, lexeme.end, problems.NO_TOKEN, mended=True)
        self.groups.add(None, lexeme.start, lexeme.end)
        return True

    def _following(self, index: int) -> Lexeme | None:
        return self.lexemes[index + 1] if index + 1 < len(self.lexemes) else None

    # Notes

    def _note_minus_number(self, raw: str, signs: int) -> None:
        word = raw[signs:]
        if raw[0] == "-" and word[:1].isdigit():
            self.findings.note(fill(problems.NOTE_MINUS_NUMBER, piece=raw, word=word))

    def _note_lower_case(self, raw: str, following: Lexeme | None) -> None:
        if not self.options.operators or following is None:
            return
        if following.kind != "close" and following.raw not in _OPERATORS:
            self.findings.note(fill(problems.NOTE_LOWER_CASE, word=raw))

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
            self.findings.note(note)

    # Groups

    def _open(self, lexeme: Lexeme) -> None:
        if self.groups.depth > self.max_depth:
            self.ignored += 1
            if self.ignored == 1:
                message = fill(problems.TOO_DEEP, count=self._typed_depth(), limit=self.max_depth)
                self.findings.reject(lexeme.start, lexeme.end, message, mended=False)
                if self.max_depth > MAX_DEPTH:
                    raise EndOfReadingError
            return  # continue as if this parenthesis were not there
        field, start = self.groups.take_field(lexeme.start)
        if field is not None and field.kind == "unknown":
            self.clauses.reject_unknown(field.name, start, mended=False)
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
            self.findings.reject(lexeme.start, lexeme.start + 1, message, mended=True)
            return
        self.groups.end(lexeme.end, lexeme.suffix)


# Groups


@dataclass(slots=True)
class _Item:
    """A clause in its group: the connector before it, whether it is negated, and its offsets.

    ``node`` is None for a clause that was rejected and has no replacement.
    """

    connector: Connector
    negated: bool
    node: Node | None
    start: int
    end: int
    plus: bool = False


# These call list itself: calling list[_Item] takes ten times as long.
_no_items = cast(Callable[[], list[_Item]], list)
_no_places = cast(Callable[[], list[int]], list)
_no_spans = cast(Callable[[], list[tuple[int, int]]], list)


@dataclass(slots=True)
class _Group:
    """An open parenthesis (or the whole query) with the clauses read so far.

    ``operator``, ``nots`` (their offsets) and ``plus_pending`` belong to the clause that comes
    next. ``dropped`` are the offsets of pieces that hold nothing to search.
    """

    start: int
    field: FieldRef | None = None
    connector: Connector = "START"
    negated: bool = False
    plus: bool = False
    items: list[_Item] = dataclasses.field(default_factory=_no_items)
    operator: tuple[Operator, Lexeme] | None = None
    nots: list[int] = dataclasses.field(default_factory=_no_places)
    plus_pending: bool = False
    dropped: list[tuple[int, int]] = dataclasses.field(default_factory=_no_spans)


class _OpenGroups:
    """The stack of open groups. ``root`` is the whole query, ``group`` the innermost one.

    ``pending_field`` is a field whose value comes next, with its offset.
    """

    def __init__(self, clauses: ClauseReader, options: _Options) -> None:
        self.root = _Group(0)
        self.group = self.root
        self.pending_field: tuple[FieldRef, int] | None = None
        self._groups = [self.root]
        self._clauses = clauses
        self._findings = clauses.findings
        self._options = options
        self._spelled = 0

    @property
    def depth(self) -> int:
        """The number of open groups; the whole query is one."""
        return len(self._groups)

    # Before a clause

    def operator(self, operator: Operator | Literal["NOT"], lexeme: Lexeme) -> None:
        """Record an AND, OR or NOT before the next clause."""
        group = self.group
        if not self._options.operators:
            message = problems.OPERATORS_OFF
            self._findings.reject(lexeme.start, lexeme.end, message, mended=True)
            if operator == "NOT":
                group.nots.append(lexeme.start)
            return
        if operator == "NOT":
            group.nots.append(lexeme.start)
            return
        self._reject_dangling(group)
        if group.operator is not None:
            self._reject_operator(group.operator[1])
        elif not group.items:
            message = fill(problems.NOTHING_LEFT, operator=lexeme.raw)
            self._findings.reject(lexeme.start, lexeme.end, message, mended=True)
            return
        group.operator = operator, lexeme

    def signs(self, signs: str, start: int) -> None:
        """Record minus, exclamation mark and plus directly before a clause."""
        for offset, sign in enumerate(signs):
            place = start + offset
            if sign == "+":
                self._findings.reject(place, place + 1, problems.PLUS, mended=True)
                self.group.plus_pending = True
                continue
            if not self._options.operators:
                self._findings.reject(place, place + 1, problems.OPERATORS_OFF, mended=True)
            self.group.nots.append(place)

    def take_field(self, start: int) -> tuple[FieldRef | None, int]:
        """Return the field of the clause whose value starts here, and where the clause starts."""
        if self.pending_field is not None:
            (field, start), self.pending_field = self.pending_field, None
            return field, start
        return self.group.field, start

    # Clauses and groups

    def add(self, node: Node | None, start: int, end: int) -> None:
        """Put a clause into the innermost group; None is a rejected clause."""
        group = self.group
        first = group.nots[0] if group.nots else start
        connector, negated, plus = self._take_modifiers()
        self.pending_field = None
        node = self._without_weight(node, start, end) if negated else node
        if isinstance(node, TextLeaf) and len(node.spellings) > 1:
            self._check_spellings(node, start, end)
        if negated and not self._options.operators:
            node, negated = None, False  # a clause after a rejected NOT is not searched either
        group.items.append(_Item(connector, negated, node, first, end, plus))

    def begin(self, start: int, field: FieldRef | None) -> None:
        """Put a group on the stack."""
        self.group = _Group(start, field, *self._take_modifiers())
        self._groups.append(self.group)

    def end(self, end: int, suffix: str) -> None:
        """Take the innermost group off the stack and add it as a clause to the group around it."""
        group = self._groups.pop()
        self._reject_pending(group)
        weight = self._weight(suffix, end)
        self.group = self._groups[-1]
        if not group.items:
            self._reject_empty(group, end)
        if not group.items or (group.negated and not self._options.operators):
            self._add_ended(group, None, end)
        elif _only_nots(_with_nodes(group.items)):
            if weight != 1:
                message = problems.WEIGHT_ON_NOT
                self._findings.reject(end - len(suffix), end, message, mended=True)
            self._add_nots(group, end)
        else:
            node = _node_of(group.items, self._options.default_operator, self._findings)
            if weight != 1 and node is not None:
                node = self._weighted(node, weight, group.negated, end - len(suffix), end)
            self._add_ended(group, node, end, negated=group.negated)

    def end_all(self) -> None:
        """Reject and end the groups that are open at the end of the text; end the query too."""
        end = len(self._findings.text)
        while len(self._groups) > 1:
            start = self.group.start
            self._findings.reject(start, start + 1, problems.UNCLOSED_GROUP, mended=True)
            self.end(end, "")
        self._reject_pending(self.root)

    def _add_ended(
        self, group: _Group, node: Node | None, end: int, *, negated: bool = False
    ) -> None:
        """Make a group that has ended a clause of the one around it."""
        node = self._without_weight(node, group.start, end) if negated else node
        item = _Item(group.connector, negated, node, group.start, end, group.plus)
        self.group.items.append(item)

    def _check_spellings(self, leaf: TextLeaf, start: int, end: int) -> None:
        """Raise EndOfReadingError if the leaves read so far have too many words.

        Spellings cost time even without limits; the limits of a query are checked later.
        """
        self._spelled += spelled_words(leaf)
        if self._spelled > MAX_WORDS_WITHOUT_LIMITS:
            limit = MAX_WORDS_WITHOUT_LIMITS
            message = fill(problems.TOO_MANY_WORDS, count=self._spelled, limit=limit)
            self._findings.reject(start, end, message, mended=False)
            raise EndOfReadingError

    def _without_weight(self, node: Node | None, start: int, end: int) -> Node | None:
        """Return a negated node without its weight, which is rejected."""
        if not isinstance(node, TextLeaf | And | Or) or node.weight == 1:
            return node
        weights = list(_WEIGHT.finditer(self._findings.text, start, end))
        if weights:
            start, end = weights[-1].span()
        self._findings.reject(start, end, problems.WEIGHT_ON_NOT, mended=True)
        return dataclasses.replace(node, weight=1.0)

    def _add_nots(self, group: _Group, end: int) -> None:
        """Read a group of only NOTs as if its parentheses were not there."""
        if not group.negated:
            group.items[0].connector = group.connector
            self.group.items.extend(group.items)
            return
        self._findings.reject(group.start, end, problems.NOT_NOT, mended=True)
        kept = [item.node for item in group.items if item.node is not None]
        self._add_ended(group, any_of(*kept) if kept else None, end)

    def _reject_empty(self, group: _Group, end: int) -> None:
        findings = self._findings
        if group.dropped:
            first, last = group.dropped[0]
            findings.notes.pop(fill(problems.NOTE_DROPPED, piece=findings.text[first:last]), None)
            findings.reject(first, last, problems.NO_TOKEN, mended=True)
        elif not findings.problems or findings.text[group.start + 1 : end - 1].strip() == "":
            findings.reject(group.start, end, problems.EMPTY_GROUP, mended=True)

    def _weight(self, suffix: str, end: int) -> float:
        suffix = suffix.rstrip("?")
        if not suffix:
            return 1.0
        start = end - len(suffix)
        if suffix[0] == "~":
            self._findings.reject(start, end, problems.SLOP_MISPLACED, mended=True)
            return 1.0
        return self._clauses.weight(suffix, start)

    def _weighted(self, node: Node, weight: float, negated: bool, start: int, end: int) -> Node:
        if negated or not scores(node):
            message = problems.WEIGHT_ON_NOT if negated else problems.WEIGHT_ON_FILTER
            self._findings.reject(start, end, message, mended=True)
            return node
        try:
            return weighted(node, weight)
        except ArgumentError:
            message = fill(problems.WEIGHT_RANGE, weight=weight)
            self._findings.reject(start, end, message, mended=True)
            return node

    # Operators that wait for a clause

    def _take_modifiers(self) -> tuple[Connector, bool, bool]:
        """Return and clear what precedes the next clause: its connector, a NOT, a plus."""
        group = self.group
        connector: Connector = "SPACE" if group.items else "START"
        if not (group.operator or group.nots or group.plus_pending):
            return connector, False, False
        if group.operator is not None:
            connector = group.operator[0]
            group.operator = None
        if len(group.nots) > 1 and self._options.operators:
            end = self._end_of_not(group.nots[-1])
            self._findings.reject(group.nots[0], end, problems.NOT_NOT, mended=True)
        negated = len(group.nots) % 2 == 1
        group.nots.clear()
        plus, group.plus_pending = group.plus_pending, False
        return connector, negated, plus

    def _reject_pending(self, group: _Group) -> None:
        """Reject operators that wait for a clause at the end of a group."""
        if group.nots:
            self._reject_dangling(group)
        if group.operator is None:
            return
        self._reject_operator(group.operator[1])
        group.operator = None

    def _reject_dangling(self, group: _Group) -> None:
        """Reject NOTs with no clause after them."""
        for start in group.nots:
            end = self._end_of_not(start)
            message = fill(problems.NOTHING_RIGHT, operator=self._findings.text[start:end])
            self._findings.reject(start, end, message, mended=True)
        group.nots.clear()

    def _reject_operator(self, lexeme: Lexeme) -> None:
        message = fill(problems.NOTHING_RIGHT, operator=lexeme.raw)
        self._findings.reject(lexeme.start, lexeme.end, message, mended=True)

    def _end_of_not(self, start: int) -> int:
        """Return the end of a NOT, which is a word or a sign."""
        return start + (3 if self._findings.text.startswith("NOT", start) else 1)


_ALL_OF: dict[Operator, set[Connector]] = {"AND": {"AND", "SPACE"}, "OR": {"AND"}}
_ANY_OF: dict[Operator, set[Connector]] = {"AND": {"OR"}, "OR": {"OR", "SPACE"}}
"""By default operator, the connectors between clauses that mean all, or any, of them."""


def _with_nodes(items: list[_Item]) -> list[_Item]:
    """Return the clauses without those that were rejected, unless all were."""
    return [item for item in items if item.node is not None] or items


def _only_nots(items: list[_Item]) -> bool:
    """Return whether a group is nothing but NOTs, joined by AND or spaces."""
    if not items[0].negated:
        return False
    return all(item.negated for item in items) and all(
        item.connector in ("AND", "SPACE") for item in items[1:]
    )


def _node_of(items: list[_Item], default: Operator, findings: Findings) -> Node | None:
    """Return the node of the clauses of one group; None if nothing is left of it.

    Runs joined by AND (and by spaces if that is the default) are the alternatives. A run of nothing
    but NOTs excludes from the whole group if a space is before it, or after it if it is the first;
    otherwise it is rejected, and mended by joining it to the alternative before it, or to the next
    if it is the first.
    """
    broken = any(item.node is None for item in items)
    items = _with_nodes(items)
    items[0].connector = "START"
    if len(items) == 1 and not items[0].negated and items[0].node is not None:
        return items[0].node
    if any(item.plus for item in items):
        _join_plus(items, findings)
    kept = [item.node for item in items if item.node is not None and not item.negated]
    if len(kept) == len(items):
        connectors = {item.connector for item in items[1:]}
        if connectors <= _ALL_OF[default]:
            return all_of(*kept)
        if connectors <= _ANY_OF[default]:
            return any_of(*kept)
    alternatives: list[Node] = []
    excluded: list[Not] = []
    carried: list[Not] = []  # rejected exclusions that wait for the next alternative
    runs = _runs(items, default)
    for index, run in enumerate(runs):
        positive = [item.node for item in run if not item.negated and item.node is not None]
        negative = [Not(item.node) for item in run if item.negated and item.node is not None]
        if any(not item.negated for item in run):
            if positive:
                alternatives.append(all_of(*positive, *negative, *carried))
                carried = []
            continue
        after = runs[index + 1][0].connector if index + 1 < len(runs) else None
        if run[0].connector == "SPACE" or (run[0].connector == "START" and after == "SPACE"):
            excluded.extend(negative)
            continue
        findings.reject(run[0].start, run[-1].end, problems.NOT_ALTERNATIVE, mended=True)
        if alternatives:
            alternatives[-1] = all_of(alternatives[-1], *negative)
        else:
            carried.extend(negative)
    if not alternatives:
        if not broken and not carried:
            findings.reject(items[0].start, items[-1].end, problems.ONLY_NOTS, mended=False)
        findings.mendable = findings.mendable and not carried
        return None
    return all_of(any_of(*alternatives), *excluded)


def _runs(items: list[_Item], default: Operator) -> list[list[_Item]]:
    runs: list[list[_Item]] = []
    for item in items:
        connector = default if item.connector == "SPACE" else item.connector
        if connector == "AND" and runs:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _join_plus(items: list[_Item], findings: Findings) -> None:
    """Join clauses such as ``+a +b`` by AND; unmendable if only some of them have a plus."""
    if all(item.plus or item.negated for item in items):
        for item in items[1:]:
            item.connector = "AND"
    else:
        findings.mendable = False

"""The grammar of the query language: text -> tree, or None for any other text.

It is strict: it knows no offsets, and corrects nothing. It may refuse a text
that ``reading`` reads as it is, but never reads one otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Literal, NamedTuple, cast

from arag_search.errors import ArgumentError
from arag_search.query.analysis import has_token
from arag_search.query.fields import CONTENT, TITLE, FieldRef, Schema
from arag_search.query.lexer import PATTERN, REGEX, find_special, unescape
from arag_search.query.limits import (
    DEFAULT_FACTOR,
    MAX_DEPTH,
    MAX_DEPTH_WITHOUT_LIMITS,
)
from arag_search.query.operators import (
    NOT,
    NOT_SIGNS,
    OR,
    PUBLISHED,
    SPELLED,
    OperatorWord,
    factored,
)
from arag_search.query.problems import (
    NOTE_FIELD_COVERS,
    NOTE_LOWER_CASE,
    NOTE_UNCHECKED_FIELD,
    RANGE_SYNTAX,
    fill,
)
from arag_search.query.tree import (
    Fuzzy,
    KeywordEquals,
    MetadataLeaf,
    Modifier,
    Node,
    Phrase,
    Prefix,
    Range,
    Regex,
    Term,
    TextField,
    all_of,
    any_of,
    scores,
    weighted,
)

Operator = Literal["OR", "AND"]

NAME = r"[^\W\d][\w.-]*+"
WEIGHT = r"(?:\d+(?:\.\d+)?|\.\d+)"
BLANK_OR_END = r"(?=[\s)]|$)"
_SCANNED = rf"""[^\W_]++{BLANK_OR_END}
    | [-!]?(?:{NAME}:)?\(
    | \)(?:\^{WEIGHT})?{BLANK_OR_END}
    | [-!]?(?:{NAME}:)?"[^"\\*]*+(?:\\.[^"\\*]*+)*+"(?:~\d{{1,9}})?(?:\^{WEIGHT})?{BLANK_OR_END}
    | [-!]?(?:{NAME}:)?[\[{{][^\[\]{{}}()"\\]*[\]}}]{BLANK_OR_END}
    | (?:[^\s()"\\^~*?]|\\.)++(?:\*|~[12])?(?:\^{WEIGHT})?{BLANK_OR_END}"""


def _scanner(scanned: str) -> re.Pattern[str]:
    """Return a pattern that cuts text into pieces; what is none is one with all behind it."""
    return re.compile(rf"{scanned}|\S.*", re.VERBOSE | re.DOTALL)


_PIECE = re.compile(_SCANNED, re.VERBOSE | re.DOTALL)
_PIECES = _scanner(_SCANNED)
_PIECE_OR_PATTERN = re.compile(rf"{PATTERN}|{_SCANNED}", re.VERBOSE | re.DOTALL)
_PIECES_AND_PATTERNS = _scanner(rf"{PATTERN}|{_SCANNED}")

_CLAUSE = re.compile(
    rf"""(?P<sign>[-!])?(?:(?P<name>{NAME}):)?(?:
        "(?P<inside>(?:[^"\\]|\\.)*)"(?:~(?P<slop>\d+))?
      | (?P<range>[\[{{][^\\]*[\]}}])(?=$)
      | (?P<word>(?:[^\\^~*?]|\\.)+)(?P<ending>\*|~[12])?
    )(?:\^(?P<weight>{WEIGHT}))?""",
    re.VERBOSE | re.DOTALL,
)
COMPARISON = re.compile(r"(>=|<=|>|<)(.*)", re.DOTALL)
RANGE = re.compile(r"([\[{])\s*(\S+?)\s+TO\s+(\S+?)\s*([\]}])")

_OTHER_CASE = {
    "".join(letters)
    for operator in PUBLISHED
    for letters in product(*zip(operator.lower(), operator, strict=True))
    if letters != tuple(operator)
}
COMMAS = (",", ";", "，", "；", "、")
_TEXT_FIELDS: Mapping[str, TextField] = {TITLE: TITLE, CONTENT: CONTENT}
_BEGINS_OTHER = re.compile(r"[-!+].*|/.+/|[\[{](?:.*[^\]}])?", re.DOTALL)
"""A word that begins like something else: signs, a pattern, or an open range."""


class Options(NamedTuple):
    """How a text is read: the options of ``parse``."""

    schema: Schema
    default_operator: Operator = "OR"
    operators: bool = True
    limits: bool = True
    published: bool = False
    ranked: bool = True

    @property
    def spaces_mean(self) -> Operator:
        """What a space means."""
        return self.default_operator if self.operators else "OR"

    @property
    def has_additions(self) -> bool:
        """Whether PREFER and DEMOTE are operators, and words match their forms."""
        return self.operators and not self.published

    @property
    def max_depth(self) -> int:
        """How many parentheses may be open."""
        return MAX_DEPTH if self.limits else MAX_DEPTH_WITHOUT_LIMITS


class _Group:
    """The clauses read so far of the query or of open parentheses, each with the connector before
    it, which is empty for a space; ``connector`` and ``modifier`` belong to the next one."""

    __slots__ = ("connector", "connectors", "factor", "field", "has_modifiers", "modifier", "nodes")

    def __init__(self, field: FieldRef | None) -> None:
        self.field = field
        self.nodes: list[Node | Modifier] = []
        self.connectors: list[str] = []
        self.connector = ""
        self.modifier: OperatorWord | None = None
        self.factor = DEFAULT_FACTOR
        self.has_modifiers = False

    def add(self, node: Node) -> None:
        if self.modifier is not None:
            self.nodes.append(Modifier(self.modifier, node, self.factor))
            self.modifier, self.factor = None, DEFAULT_FACTOR
            self.has_modifiers = True
        else:
            self.nodes.append(node)
        self.connectors.append(self.connector)
        self.connector = ""

    @property
    def is_waiting(self) -> bool:
        return bool(self.connector) or self.modifier is not None or not self.nodes

    def modifiers(self) -> list[Modifier]:
        """Return the modifiers of a group of nothing else that are joined by AND or spaces."""
        if not self.has_modifiers or OR.word in self.connectors:
            return []
        modifiers = [node for node in self.nodes if isinstance(node, Modifier)]
        return modifiers if len(modifiers) == len(self.nodes) else []

    def node(self, spaces_mean: str) -> Node | None:
        """Return the node of all clauses; None if a modifier is an alternative.

        Runs joined by AND (and by spaces if that is the default) are the alternatives. A run of
        nothing but modifiers applies to the whole group if a space is before it, or after it if it
        is the first.
        """
        nodes, connectors = self.nodes, self.connectors
        if not self.has_modifiers:
            plain = cast("list[Node]", nodes)
            if len(plain) == 1:
                return plain[0]
            joined = set(connectors[1:])
            if len(joined) == 1:
                is_or = (joined.pop() or spaces_mean) == OR.word
                return any_of(*plain) if is_or else all_of(*plain)
        positives: list[Node] = []
        of_all: list[Modifier] = []
        for start, end in alternatives(connectors, spaces_mean):
            run = nodes[start:end]
            positive = [node for node in run if not isinstance(node, Modifier)]
            modifiers = [node for node in run if isinstance(node, Modifier)]
            if positive:
                positives.append(all_of(*positive, *modifiers))
            elif connectors[start] if start else end == len(nodes) or connectors[end]:
                return None
            else:
                of_all += modifiers
        return all_of(any_of(*positives), *of_all) if positives else None


def alternatives(connectors: Sequence[str], spaces_mean: str) -> Iterable[tuple[int, int]]:
    """Return where each run of clauses that are joined by AND begins and ends, by the connector
    before each clause."""
    means_or = [(connector or spaces_mean) == OR.word for connector in connectors]
    starts = [0, *(at for at in range(1, len(connectors)) if means_or[at])]
    return pairwise([*starts, len(connectors)])


def read(
    text: str, options: Options, notes: dict[str, None] | None = None
) -> Node | tuple[Modifier, ...] | None:
    """Return the tree of a text of the language, or None. A text of nothing but modifiers, which
    only a filter may be, is these.

    What may have been meant otherwise is noted in ``notes``: an operator in another case, or a word
    in a field, which may be meant for the next one too. The limits of the whole are not checked.
    """
    reader = _Reader(options)
    try:
        tree = reader.read(text)
    except ArgumentError:  # from constructors of nodes: the tree cannot be
        return None
    if reader.notes and tree is not None and notes is not None:
        notes |= reader.notes
    return tree


class _Reader:
    """A pass over the pieces of a text, with a stack of groups."""

    __slots__ = ("doubt", "has_additions", "notes", "options", "schema")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.schema = options.schema
        self.has_additions = options.has_additions
        self.notes: dict[str, None] = {}
        self.doubt: tuple[str, str, str] | None = None  # a note if a word follows: word and field

    def read(self, text: str) -> Node | tuple[Modifier, ...] | None:
        searches = self.has_additions and "/" in text
        pieces = (_PIECES_AND_PATTERNS if searches else _PIECES).findall(text)
        last = _PIECE_OR_PATTERN if searches else _PIECE
        if not pieces or last.fullmatch(pieces[-1]) is None:
            return None
        has_doubts = not _OTHER_CASE.isdisjoint(pieces)
        operators = SPELLED if self.has_additions else PUBLISHED
        group = _Group(None)
        outer: list[_Group] = []
        for piece in pieces:
            if self.doubt is not None:
                (note, word, on_field), self.doubt = self.doubt, None
                is_operator = piece in operators or (self.has_additions and factored(piece))
                is_clause = not is_operator and piece[0] != ")"
                if is_clause and not (on_field and (piece[0] in '"(-!/' or ":" in piece)):
                    self.notes[fill(note, word=word, name=on_field)] = None
            if operator := operators.get(piece):
                if not self._takes(operator, group):
                    return None
            elif piece.isalnum() and group.field is None:
                if has_doubts:
                    self._doubt_case(piece)
                group.add(Term(piece))
            elif piece[0] == ")":
                if not outer or group.is_waiting:
                    return None
                ended, group = group, outer.pop()
                if not self._end(ended, piece, group):
                    return None
            elif piece[-1] == "(" and piece[-2:-1] != "\\":
                inner = self._open(piece, group)
                if inner is None:
                    return None
                outer.append(group)
                group = inner
            elif searches and (match := REGEX.fullmatch(piece)):
                node = self._pattern(match, group)
                if node is None:
                    return None
                group.add(node)
            elif self.has_additions and (operator := factored(piece)):
                factor = float(piece[len(operator.word) + 1 :])
                if operator.factor is None or not self._takes(operator, group):
                    return None
                group.factor = factor
            else:
                node = (group.field is None and self._plain(piece)) or self._clause(piece, group)
                if node is None:
                    return None
                group.add(node)
        if outer or group.is_waiting:
            return None
        if modifiers := group.modifiers():
            return tuple(modifiers)
        return group.node(self.options.spaces_mean)

    def _takes(self, operator: OperatorWord, group: _Group) -> bool:
        """Put an operator before the next clause; return whether it may stand there."""
        options = self.options
        if group.modifier is not None:
            return False
        if operator.joins:
            if group.connector or not group.nodes:
                return False
            group.connector = operator.word
        else:
            group.modifier = operator
        return options.ranked or not operator.needs_ranking

    def _open(self, piece: str, group: _Group) -> _Group | None:
        if piece[0] in NOT_SIGNS:
            if not self._takes(NOT, group):
                return None
            piece = piece[1:]
        if piece == "(":
            return _Group(group.field)
        field = self._named(piece[:-2])
        return _Group(field) if field is not None and group.field is None else None

    def _end(self, group: _Group, piece: str, outer: _Group) -> bool:
        """Add a group that has ended to the one around it; return whether it may stand there. One
        of nothing but modifiers is read as if its parentheses were not there."""
        weight = float(piece[2:] or 1)
        if modifiers := group.modifiers():
            outer.nodes += modifiers
            outer.has_modifiers = True
            outer.connectors += [outer.connector, *group.connectors[1:]]
            outer.connector = ""
            return weight == 1 and outer.modifier is None
        node = group.node(self.options.spaces_mean)
        if node is None:
            return False
        if weight != 1:
            if not scores(node):
                return False
            node = weighted(node, weight)
        outer.add(node)
        return True

    # Clauses

    def _plain(self, piece: str) -> Term | Phrase | Prefix | None:
        """Return the leaf of a phrase, a prefix or a word in a field, if it is as most are."""
        name, colon, word = piece.rpartition(":")
        field = _TEXT_FIELDS.get(name)
        if not word or (colon and field is None):
            return None
        if word[0] == word[-1] == '"' and "\\" not in word:
            return Phrase(word[1:-1], 0, field)
        stem = word.removesuffix("*")
        if not stem.isalnum():
            return None
        if field is not None:
            self.doubt = NOTE_FIELD_COVERS, word, field
        return Term(stem, field) if stem == word else Prefix(stem, field)

    def _named(self, name: str) -> FieldRef | None:
        """Return the field of a name, which is noted if it cannot be checked."""
        field = self.schema.field(name)
        if field.kind == "guess":
            self.notes[fill(NOTE_UNCHECKED_FIELD, name=field.name)] = None
        return field if field.kind != "unknown" else None

    def _pattern(self, match: re.Match[str], group: _Group) -> Regex | None:
        signs, name, pattern, flag, end = match.groups()
        is_not = signs and len(signs) == 1 and signs in NOT_SIGNS and self._takes(NOT, group)
        if end or (signs and not is_not):
            return None
        field = group.field
        if field is not None and (name or field.kind != "text"):
            return None
        if name:
            field = self.schema.field(name)
        text_field = field.text_field if field else None
        return Regex(pattern, bool(flag), text_field)

    def _clause(self, piece: str, group: _Group) -> Node | None:
        match = _CLAUSE.fullmatch(piece)
        if match is None:
            return None
        sign, name, inside, slop, between, word, ending, factor = match.groups()
        field = group.field
        if sign and field is not None and field.type.is_signed and sign == "-" and word:
            sign, word = "", sign + word
        if sign and not self._takes(NOT, group):
            return None
        if name is not None:
            if field is None:
                field = self._named(name)
                if field is None:
                    return None
            elif field.kind == "text" or word is None or self.schema.named(name) is not None:
                return None
            else:
                name, word = None, f"{name}:{word}"
        if between is not None:
            if field is not None:
                return range_leaf(between, field)
            if len(between.split()) == 1 and find_special(between, "^~*?") < 0:
                word = between
            else:
                return None
        raw = inside if word is None else word
        text = unescape(raw)
        if field is not None and field.kind != "text":
            if slop or ending or factor:
                return None
            if inside is not None:
                is_term = not field.type.is_ordered and field.type.holds(text)
                return KeywordEquals(field.name, text) if is_term else value_leaf(text, field)
            begins_other = raw[0] in "=≥≤" or (sign and raw[0] in NOT_SIGNS)
            if text is not raw or raw[-1] in COMMAS or begins_other:
                return None
            if not name and not has_token(raw):
                return None
            self._doubt_case(raw)
            return value_leaf(text, field)
        weight = float(factor) if factor else 1.0
        text_field = field.text_field if field else None
        if inside is not None:
            return Phrase(text, int(slop or 0), text_field, weight)
        if name is not None and field is not None and (ending or "*") == "*":
            self.doubt = NOTE_FIELD_COVERS, f"{text}{ending or ''}", field.name
        return self._word(raw, text, match, text_field, weight)

    def _word(
        self, raw: str, text: str, match: re.Match[str], field: TextField, weight: float
    ) -> Term | Prefix | Fuzzy | None:
        is_bare, ending = match["name"] is None, match["ending"]
        begins_range = raw[0] in "[{" and not (is_bare and field is None)
        if begins_range or (not raw[0].isalnum() and _BEGINS_OTHER.fullmatch(raw)):
            return None
        if find_special(raw, ":") >= 0:
            return None
        if is_bare:
            self._doubt_case(raw)
        if ending == "*":
            return Prefix(text, field, weight)
        if ending is not None:
            return Fuzzy(text, int(ending[1]), field, weight) if self.has_additions else None
        return Term(text, field, weight)

    def _doubt_case(self, word: str) -> None:
        if word in _OTHER_CASE and self.options.operators:
            self.doubt = NOTE_LOWER_CASE, word, ""


# Values of metadata


def value_leaf(text: str, field: FieldRef) -> MetadataLeaf:
    """Return the leaf of a value, or of a comparison with one. Raises ArgumentError."""
    comparison = COMPARISON.fullmatch(text)
    if comparison is None:
        if field.type.is_ordered:
            return _between(field, text, text, True, True)
        if problem := field.type.problem(text, field.name):
            raise ArgumentError(problem)
        return KeywordEquals(field.name, text)
    sign, bound = comparison[1], comparison[2]
    low, high = (bound, None) if sign[0] == ">" else (None, bound)
    return _between(field, low, high, "=" in sign, "=" in sign)


def range_leaf(text: str, field: FieldRef) -> Range:
    """Return the leaf of a range in brackets. Raises ArgumentError."""
    match = RANGE.fullmatch(text)
    if match is None:
        raise ArgumentError(fill(RANGE_SYNTAX, name=field.name))
    lower, upper = (None if match[at] == "*" else match[at] for at in (2, 3))
    return _between(field, lower, upper, match[1] == "[", match[4] == "]")


def _between(
    field: FieldRef, lower: str | None, upper: str | None, include_lower: bool, include_upper: bool
) -> Range:
    kind = field.type_of_range(lower or upper).name
    return Range(field.name, kind, lower, upper, include_lower, include_upper)

"""Query text -> tree, or all its problems at once, with a corrected query.

Its lexemes become clauses (``clauses``) with the connectors and modifiers before them, in groups as
typed. The whole text is read whatever problems it has; each is recorded at its place. What comes of
it is the query that runs, or the corrected one.
"""

from __future__ import annotations

import re
from functools import partial
from operator import attrgetter
from typing import cast

from arag_search.query import problems
from arag_search.query.analysis import has_token
from arag_search.query.clauses import ClauseReader, is_no_field, is_plain_phrase, with_colon
from arag_search.query.fields import ANY_SCHEMA, FieldRef, Schema
from arag_search.query.grammar import (
    OTHER_CASE,
    GroupItem,
    OpenGroup,
    Operator,
    Options,
    TypedModifier,
    alternatives,
    exceeded,
    may_exceed,
    node_of,
    plain_node,
)
from arag_search.query.lexer import REGEX, Lexeme, find_special, lex, unescape
from arag_search.query.limits import (
    DEFAULT_FACTOR,
    MAX_CHARACTERS,
    MAX_MENDED,
)
from arag_search.query.operators import (
    NOT,
    NOT_SIGNS,
    PREFER,
    PUBLISHED,
    SPELLED,
    OperatorWord,
    factored,
)
from arag_search.query.problems import (
    MAX_PIECE,
    EndOfReadingError,
    Findings,
    ProblemKind,
    QueryError,
    shortened,
)
from arag_search.query.signs import plain_signs
from arag_search.query.tree import (
    Modifier,
    Node,
    Phrase,
    Prefix,
    Term,
    condition_of,
    leaves,
    placed,
    render,
    scores,
    unweighted,
    weighted,
)
from arag_search.system.arguments import checked
from arag_search.system.value_class import value

_FACTOR = re.compile(r"\^(\d*\.\d+|\d+)")
_OPTION = re.compile(
    r"""(?P<option>--[^\W\d_](?:[^\s"()^~*:?]{0,60}[^\s"()^~*:?!.,;])?)
        (?P<suffix>(?:[~^][\d.]{0,9}\d)?)[?!.,;]{0,9}""",
    re.VERBOSE,
)
_SPACED_CLAUSE = re.compile(
    r"""(?P<name>[^\W\d][\w.-]*)(?:
        :\s*(?P<low>[^\s()":\[{<>]+)\s+TO\s+(?P<high>[^\s()":]+)
      | \s*:?\s*(?P<sign>==|=>|=<|>=|<=|[=≥≤<>])\s*
        (?P<value>"[^"\\]*"|[^\s()"<>=:]+)
      | \s+:\s*(?P<after>"[^"\\]*"|[^\s()":]+))(?=[\s)]|$)""",
    re.VERBOSE,
)
_COMPARING = re.compile(r"[=≥≤<>]|\sTO\s|\s:")
"""A sign that every text with a _SPACED_CLAUSE has."""
_COMPARISONS = {"==": "=", "=>": ">=", "=<": "<=", "≥": ">=", "≤": "<="}
_MAX_NOTES = 20


@value
class Query:
    """A query as it was understood: with or without ``operators``. Its words match in their normal
    forms in ``language`` or, if that is empty, as they are written."""

    tree: Node
    notes: tuple[str, ...]
    language: str
    operators: bool = True

    @property
    def text(self) -> str:
        """The canonical text."""
        return render(self.tree, self.operators)


@checked
def parse(
    text: str,
    schema: Schema = ANY_SCHEMA,
    *,
    default_operator: Operator = "OR",
    operators: bool = True,
    limits: bool = True,
    as_written: bool = False,
    ranked: bool = True,
) -> Query:
    """Parse a query.

    ``default_operator`` is what a space means. ``operators`` False rejects AND, OR, NOT, - and !
    (a space is then OR). ``as_written``: words match as they are written and not in their normal
    forms. PREFER, DEMOTE, patterns and fuzzy words are then off. The same applies without
    operators. ``ranked`` False is for a condition, which has no scores: it rejects PREFER and
    DEMOTE. ``limits`` False lifts all limits but a depth of 100 parentheses. Raises QueryError with
    every problem (the first 2,000), never anything else, whatever the text; one of more than 4,000
    characters gets no corrected query.
    """
    return parse_checked(
        text, Options(schema, default_operator, operators, limits, as_written, ranked)
    )


def parse_checked(text: str, options: Options) -> Query:
    """Parse a query with options that were checked before; see ``parse``."""
    findings, tree = findings_of(text, options)
    if isinstance(tree, tuple):
        tree = None
        if not findings.problems:
            findings.reject(0, len(text), ProblemKind.ONLY_MODIFIERS, mended=False)
    if tree is None or findings.problems:
        raise error_of(findings, tree and render(tree, options.operators), options)
    if options.ranked and not scores(tree):
        findings.note(problems.NOTE_UNRANKED)
    language = options.schema.language if options.has_additions else ""
    return Query(tree, tuple(findings.notes)[:_MAX_NOTES], language, options.operators)


def error_of(findings: Findings, corrected: str | None, options: Options) -> QueryError:
    """Return the error with all problems, and the corrected text if that mends them all and has
    none itself."""
    is_mended = corrected and findings.mendable and len(findings.text) <= MAX_MENDED
    if corrected and is_mended:
        again, tree = findings_of(corrected, options)
        is_mended = isinstance(tree, Node) and not again.problems
    ordered = sorted(findings.problems, key=lambda problem: problem.column)
    return QueryError(findings.text, tuple(ordered), corrected if is_mended else None)


def findings_of(text: str, options: Options) -> tuple[Findings, Node | tuple[Modifier, ...] | None]:
    """Return the findings of any text, with its tree or, if it has problems, the tree of a
    corrected one. A text of nothing but modifiers, which only a filter may be, has these
    instead."""
    findings = Findings(text)
    if options.limits and len(text) > MAX_CHARACTERS:
        size = {"count": len(text), "limit": MAX_CHARACTERS}
        findings.reject(0, 40, ProblemKind.TOO_LONG, mended=False, **size)
        return findings, None
    plain, notes = plain_signs(text, options.schema)
    if notes:
        findings.notes = dict.fromkeys(notes)
    tree = None
    try:
        tree = _Reader(plain, options, findings).read()
        if tree is None and not findings.problems:
            findings.reject(0, len(text), ProblemKind.EMPTY_QUERY, mended=False)
        # isinstance(tree, Node) of a Union would be slow
        has_limits = options.limits and may_exceed(plain)
        if has_limits and tree is not None and not isinstance(tree, tuple):
            for start, kind, count, limit in exceeded(tree, plain):
                size = {"count": count, "limit": limit}
                findings.reject(start, len(text), kind, mended=False, **size)
    except EndOfReadingError:
        return findings, None
    return findings, tree


class _Reader:
    """A pass over the lexemes of a text, which adds clauses to the open groups."""

    def __init__(self, plain: str, options: Options, findings: Findings) -> None:
        self.options = options
        self.findings = findings
        self.reject, self.note = findings.reject, findings.note
        self.clauses = ClauseReader(options, findings)
        self.plain = plain
        self.has_additions = options.has_additions
        self.lexemes = lex(self.plain, patterns=self.has_additions)
        self.may_compare = _COMPARING.search(plain) is not None
        self.read_until = 0  # what is before this offset was read with an earlier lexeme
        self.operators = SPELLED if self.has_additions else PUBLISHED
        self.group = OpenGroup(0)
        self.outer: list[OpenGroup] = []
        self.pending_field: tuple[FieldRef, int] | None = None  # whose value comes next
        self.doubt: tuple[str, str, str] | None = None  # a note if a word follows: word and field

    def read(self) -> Node | tuple[Modifier, ...] | None:
        """Return what the text is read as; None if nothing is left."""
        if not self.plain.isascii():
            for half in re.finditer("[\ud800-\udfff]", self.plain):
                self.reject(*half.span(), ProblemKind.LONE_SURROGATE, mended=False)
            if self.findings.problems:
                return None
        for lexeme, following in zip(self.lexemes, [*self.lexemes[1:], None], strict=False):
            if lexeme.start < self.read_until:
                continue
            if self.doubt is None:
                self._BY_KIND[lexeme.kind](self, lexeme, following)
                continue
            doubt, self.doubt, dropped = self.doubt, None, len(self.group.dropped)
            self._BY_KIND[lexeme.kind](self, lexeme, following)
            if dropped == len(self.group.dropped):
                self._note_doubt(*doubt, lexeme)
            else:
                self.doubt = doubt
        end = len(self.findings.text)
        while self.outer:
            self.reject(self.group.start, self.group.start + 1, ProblemKind.UNCLOSED_GROUP)
            self._end(end, "")
        self._reject_pending()
        if not self.group.nodes and not self.findings.problems:
            start, end = self.group.dropped[0] if self.group.dropped else (0, end)
            self.reject(start, end, ProblemKind.EMPTY_QUERY, mended=False)
        return self._joined(self.group)

    def _note_doubt(self, note: str, word: str, field: str, lexeme: Lexeme) -> None:
        """Note what may have been meant for this clause, too: a field, or an operator."""
        is_clause = lexeme.kind != "close" and self._operator(lexeme.raw) is None
        is_other = lexeme.kind == "regex" or lexeme.raw[0] in '"(-!' or ":" in lexeme.raw
        if is_clause and not (field and is_other):
            self.note(note, word=word, name=field)

    # Lexemes

    def _backslash(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        self.reject(lexeme.start, lexeme.end, ProblemKind.TRAILING_BACKSLASH)

    def _plain(self, lexeme: Lexeme, following: Lexeme | None) -> None:
        """Read a word of letters and digits of ASCII."""
        _, start, end, raw, _, _ = lexeme
        operator = self.operators.get(raw)
        in_field = self.pending_field or (operator is None and self.group.field)
        if in_field or self.may_compare:
            self._word(lexeme, following)
        elif operator is not None:
            self._before_clause(operator, lexeme)
        else:
            self._add(Term(raw, start=start), start, end)
            if raw in OTHER_CASE:
                self._doubt_case(raw)

    def _word(self, lexeme: Lexeme, following: Lexeme | None) -> None:
        raw, start = lexeme.raw, lexeme.start
        if self.may_compare and self._is_spaced_clause(lexeme):
            return
        operator = self._operator(raw)
        if operator is not None and self.pending_field is None:
            self._before_clause(operator, lexeme)
            return
        joined = following.kind if following is not None and following.joined else None
        if not raw.strip("-!+") and joined in ("phrase", "open", "range"):
            self._signs(raw, start)
            return
        if not has_token(raw) and self._is_dropped(raw, lexeme, following):
            return
        outer = self.group.field
        is_text = outer is None or outer.kind == "text"
        is_option = raw[:2] == "--" and is_text and self.has_additions
        if is_option and (option := _OPTION.fullmatch(raw)):
            self._option(option, lexeme)
            return
        signs = len(raw) - len(raw.lstrip(NOT_SIGNS))
        if outer is not None and outer.type.is_signed and raw[0] == "-":
            signs = 0  # a negative number
        if raw[0] == "+" and len(raw) > 1:
            signs = 1
        if signs:
            self._signs(raw[:signs], start)
            if raw[0] == "-" and raw[signs : signs + 1].isdigit():
                self.note(problems.NOTE_MINUS_NUMBER, piece=raw, word=raw[signs:])
            raw, start = raw[signs:], start + signs
        colon = find_special(raw, ":")
        if colon >= 0 and not self._takes_colon(raw[:colon]):
            self._fielded_word(lexeme, following, raw, start, colon)
        else:
            self._plain_word(raw, lexeme)

    def _doubt_case(self, word: str) -> None:
        if word in OTHER_CASE and self.options.operators:
            self.doubt = problems.NOTE_LOWER_CASE, word, ""

    def _option(self, option: re.Match[str], lexeme: Lexeme) -> None:
        """Add the option of a command, such as ``--jobs``, as a phrase."""
        field, start = self._take_field(lexeme.start)
        name = unescape(option["option"])
        self.note(problems.NOTE_OPTION, option=name, word=name.lstrip("-"))
        end = lexeme.start + option.end("suffix")
        quoted = f'"{option["option"]}"'
        leaf = self.clauses.phrase(quoted, option["suffix"], start, end, field)
        self._add_clause(leaf, start, lexeme.end)

    def _plain_word(self, raw: str, lexeme: Lexeme) -> None:
        """Add a word without its signs, ``raw``, as a clause."""
        start = lexeme.end - len(raw)
        field, first = self._take_field(start)
        self._add_clause(self.clauses.word(raw, start, field), first, lexeme.end)
        self._doubt_case(raw)

    def _operator(self, raw: str) -> OperatorWord | None:
        """Return the operator that a word is, with its factor if it is PREFER or DEMOTE."""
        operator = self.operators.get(raw)
        if operator is None and "^" in raw:
            operator = factored(raw)
        return operator if operator is not None and operator.word in self.operators else None

    def _takes_colon(self, name: str) -> bool:
        """Return whether a colon after ``name`` belongs to the value.

        Within ``published:( )`` it does, unless ``name`` is a field.
        """
        outer = self.group.field or (self.pending_field and self.pending_field[0])
        is_value = outer is not None and outer.kind != "text"
        return is_value and self.options.schema.named(name) is None

    def _is_spaced_clause(self, lexeme: Lexeme) -> bool:
        """Return whether the comparison, colon or range of a declared field is in a wrong form
        (``price > 5``, ``price : 5``, ``price:1 TO 5``). Such a clause is rejected, and read as it
        is meant."""
        match = _SPACED_CLAUSE.match(self.plain, lexeme.start)
        name = None if match is None else self.options.schema.named(match["name"])
        if match is None or name is None or self.pending_field or self.group.field:
            return False
        ref = self.options.schema.field(name)
        sign = _COMPARISONS.get(match["sign"] or "", match["sign"] or "")
        if match["low"] is not None:
            value = f"[{match['low']} TO {match['high']}]"
        else:
            value = match["after"] or f"{sign.removeprefix('=')}{match['value']}"
        is_spaced = match["after"] or self.plain[lexeme.start + len(match["name"])].isspace()
        if (
            match[0] == f"{match['name']}:{value}"
            or (not ref.type.is_ordered and (match["low"] is not None or value[0] in "<>"))
            or (ref.kind == "text" and not is_spaced)
        ):
            return False
        end = match.end()
        self.reject(lexeme.start, end, ProblemKind.SPACED_CLAUSE, clause=f"{name}:{value}")
        start = end - len(value)
        readers = {"[": self.clauses.range, '"': self.clauses.phrase}
        take = readers.get(value[0])
        leaf = take(value, "", start, end, ref) if take else self.clauses.word(value, start, ref)
        self._add_clause(leaf, lexeme.start, end)
        self.read_until = end
        return True

    def _fielded_word(
        self, lexeme: Lexeme, following: Lexeme | None, raw: str, start: int, colon: int
    ) -> None:
        name, value, end = unescape(raw[:colon]), raw[colon + 1 :], lexeme.end
        if raw == "*:*":
            self.reject(start, end, ProblemKind.BARE_STAR)
            self._add_clause(None, start, end)
            return
        if not name:
            if not has_token(value):
                self.group.dropped.append((lexeme.start, end))
                self.note(problems.NOTE_DROPPED, piece=raw)
                return
            self._note_colon(raw)
            self._plain_word(value, lexeme)
            return
        ref = self._field_here(name, start)
        is_guess = ref.kind in ("unknown", "guess")
        joined = following.kind if following is not None and following.joined else None
        if value == "" and joined in ("phrase", "open"):
            self.pending_field = ref, start
            return
        if value == "":
            self._field_without_value(ref, start, end, following)
            return
        if value[0] in "-!" and ref.kind == "text":
            self.reject(start, end, ProblemKind.NOT_INSIDE_FIELD, name=name, value=value[1:])
            self.group.modifiers.append(TypedModifier(NOT, start, start + 1))
            value = value.lstrip("-!")
        if is_guess and is_no_field(ref.name, value):
            self._note_colon(raw)
            self._add_clause(self.clauses.literal(with_colon(raw)), start, end)
            return
        leaf = self.clauses.word(value, end - len(value), ref)
        self._add_clause(leaf, start, end)
        if isinstance(leaf, Term | Prefix) and ref.kind == "text":
            word = leaf.text + "*" * isinstance(leaf, Prefix)
            self.doubt = problems.NOTE_FIELD_COVERS, word, ref.name

    def _field_here(self, name: str, start: int) -> FieldRef:
        """Return the field of a clause; reject it within the group of another field."""
        outer = self.group.field
        if outer is not None:
            self.reject(start, start + len(name) + 1, ProblemKind.FIELD_IN_FIELD, outer=outer.name)
        return self.options.schema.field(name)

    def _field_without_value(
        self, ref: FieldRef, start: int, end: int, following: Lexeme | None
    ) -> None:
        takes_next = (
            following is not None
            and following.kind in ("plain", "word", "phrase", "regex", "open")
            and self._operator(following.raw) is None
        )
        if ref.kind in ("unknown", "guess") and has_token(ref.name):
            self._note_colon(f"{ref.name}:")
            self._add_clause(self.clauses.literal(ref.name, kind=Term), start, end)
        elif takes_next and following is not None:
            value = following.raw if following.kind != "open" else "(...)"
            self.reject(start, end, ProblemKind.BLANK_AFTER_FIELD, name=ref.name, value=value)
            self.pending_field = ref, start
        else:
            self.reject(start, end, ProblemKind.EMPTY_FIELD, name=ref.name)
            self._add_clause(None, start, end)

    def _note_colon(self, piece: str) -> None:
        self.note(problems.NOTE_COLON, piece=shortened(piece))

    def _phrase(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        raw, suffix, at, end = lexeme.raw, lexeme.suffix, lexeme.start, lexeme.end
        field, start = self._take_field(at)
        if not suffix and (field is None or field.kind == "text") and is_plain_phrase(raw):
            self._add(Phrase(raw[1:-1], 0, field and field.text_field, start=start), start, end)
        else:
            self._add_clause(self.clauses.phrase(raw, suffix, at, end, field), start, end)

    def _regex(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        """Add a pattern; in the parentheses of a metadata field it is a value."""
        end = lexeme.start + len(lexeme.raw)
        match = REGEX.fullmatch(self.plain, lexeme.start, end)
        assert match is not None
        self._signs(match["signs"], lexeme.start)
        start = match.end("signs")
        if match["name"]:
            field = self._field_here(match["name"], start)
        else:
            field, start = self._take_field(start)
        if field is not None and field.kind != "text":
            leaf = self.clauses.word(self.plain[match.end("signs") : end], start, field)
        else:
            leaf = self.clauses.regex(match, lexeme.suffix, lexeme.end, field)
        self._add_clause(leaf, start, lexeme.end)

    def _range(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        raw, start = lexeme.raw, lexeme.start
        signs = len(raw) - len(raw.lstrip("-!"))
        self._signs(raw[:signs], start)
        bracket = min(at for at in (raw.find("["), raw.find("{")) if at >= 0)
        name = raw[signs : bracket - 1] if bracket else ""
        field = self._field_here(name, start + signs) if name else self._take_field(start)[0]
        leaf = self.clauses.range(raw[bracket:], lexeme.suffix, start + bracket, lexeme.end, field)
        self._add_clause(leaf, start + signs, lexeme.end)

    def _is_dropped(self, raw: str, lexeme: Lexeme, following: Lexeme | None) -> bool:
        """Drop or reject a piece without words, and return whether that was necessary.

        A piece beside no operator is dropped with a note. Pieces with signs of the language stay.
        """
        group = self.group
        if self.pending_field or find_special(raw, ":^~*") >= 0:
            return False
        if raw[0] == "\\" and unescape(raw) in self.operators:
            return False
        beside_operator = (
            group.operator is not None
            or bool(group.modifiers)
            or (following is not None and self._operator(following.raw) is not None)
        )
        if not beside_operator:
            group.dropped.append((lexeme.start, lexeme.end))
            self.note(problems.NOTE_DROPPED, piece=raw)
            return True
        leaf = self.clauses.signs(unescape(raw), lexeme.start, lexeme.end, None)
        self._add_clause(leaf, lexeme.start, lexeme.end)
        return True

    # What is before a clause

    def _before_clause(self, operator: OperatorWord, lexeme: Lexeme) -> None:
        group, start, end = self.group, lexeme.start, lexeme.end
        if not self._is_allowed(operator):
            self.reject(start, end, operator.unranked)
        if operator.joins and self.options.operators:
            if group.modifiers or group.operator:
                self._reject_pending()
            if group.nodes:
                group.operator = lexeme
            else:
                self.reject(start, end, ProblemKind.NOTHING_LEFT, operator=lexeme.raw)
        if operator.joins:
            return
        suffix = lexeme.raw[len(operator.word) :]
        match = _FACTOR.fullmatch(suffix)
        factor = float(match[1]) if operator.factor is not None and match else 0.0
        if suffix and not 0 < factor < 1:
            self.reject(start, end, operator.on_factor)
        in_range = factor if 0 < factor < 1 else DEFAULT_FACTOR
        group.modifiers.append(TypedModifier(operator, start, end, in_range))

    def _is_allowed(self, operator: OperatorWord) -> bool:
        return self.options.ranked if operator.needs_ranking else self.options.operators

    def _signs(self, signs: str, start: int) -> None:
        """Record minus, exclamation mark and plus directly before a clause."""
        for at, sign in enumerate(signs, start):
            if sign == "+":
                self.reject(at, at + 1, ProblemKind.PLUS)
                self.group.plus = True
                continue
            if not self.options.operators:
                self.reject(at, at + 1, ProblemKind.OPERATORS_OFF)
            self.group.modifiers.append(TypedModifier(NOT, at, at + 1))

    def _take_field(self, start: int) -> tuple[FieldRef | None, int]:
        """Return the field of the clause whose value starts here, and where the clause starts."""
        pending, self.pending_field = self.pending_field, None
        return pending or (self.group.field, start)

    def _reject_pending(self) -> None:
        """Reject operators that wait for a clause where none follows."""
        group = self.group
        if not group.modifiers and group.operator is None:
            return
        for operator in (*group.modifiers, *([group.operator] if group.operator else [])):
            start, end = operator.start, operator.end
            typed = self.findings.text[start:end]
            self.reject(start, end, ProblemKind.NOTHING_RIGHT, operator=typed)
        group.modifiers, group.operator = [], None

    # Clauses and groups

    def _add_clause(self, node: Node | None, start: int, end: int) -> None:
        """Put a clause that is no group into the innermost group; None is a rejected one."""
        self._add(node and placed(node, start), start, end)

    def _add(self, node: Node | tuple[Modifier, ...] | None, start: int, end: int) -> None:
        """Put a clause into the innermost group, with the operator and modifiers before it.
        ``node`` is a tuple for a group of nothing but modifiers."""
        group, self.pending_field = self.group, None
        connector = "" if group.operator is None else self.operators[group.operator.raw].word
        group.operator = None
        group.connectors.append(connector)
        group.nodes.append(node)
        of_modifiers, modifiers = isinstance(node, tuple), group.modifiers
        if not (modifiers or group.plus or node is None or of_modifiers):  # most
            return
        item = GroupItem(connector, node, start, end, of_modifiers, group.plus)
        group.marked[len(group.nodes) - 1] = item
        group.modifiers, group.plus = [], False
        if not modifiers:
            return
        item.start = modifiers[0].start
        are_nots = all(modifier.operator is NOT for modifier in modifiers)
        if len(modifiers) > 1 and self.options.operators:
            end_of_all = modifiers[-1].end
            self.reject(item.start, end_of_all, ProblemKind.SEVERAL_MODIFIERS, mended=are_nots)
            if are_nots and len(modifiers) % 2 == 0:
                return
        if of_modifiers:
            self.reject(start, end, ProblemKind.ONLY_MODIFIERS, mended=False)
        is_allowed = all(self._is_allowed(modifier.operator) for modifier in modifiers)
        item.is_modifier, item.node = True, None
        if node is not None and not isinstance(node, tuple) and is_allowed:
            item.node = self._modified(modifiers[-1], node, start, end)

    def _modified(
        self, modifier: TypedModifier, node: Node, start: int, end: int
    ) -> Modifier | None:
        """Return a clause with its modifier; None if it is rejected. Parts without effect there are
        rejected and left out. If a problem does not show lost leaves whole, no query is
        corrected."""
        modified = partial(Modifier, modifier.operator, factor=modifier.factor)
        others = [lambda: None]
        if modifier.operator is not PREFER:
            others = [lambda: modified(child=unweighted(condition_of(node)))]
        made = self.clauses.first(start, end, lambda: modified(child=node), *others)
        if made is None or made.child is not node:
            is_whole = made is not None and len(leaves(made)) == len(leaves(node))
            self.findings.mendable &= is_whole or end - start <= MAX_PIECE
        return made

    def _open(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        if len(self.outer) == self.options.max_depth:
            limit = self.options.max_depth
            self.reject(lexeme.start, lexeme.end, ProblemKind.TOO_DEEP, mended=False, limit=limit)
            raise EndOfReadingError
        field, start = self._take_field(lexeme.start)
        if field is not None and field.kind == "unknown":
            field = self.clauses.reject_unknown(field.name, start, mended=False)
        self.outer.append(self.group)
        self.group = OpenGroup(lexeme.start, field)

    def _close(self, lexeme: Lexeme, _: Lexeme | None) -> None:
        if self.outer:
            self._end(lexeme.end, lexeme.suffix)
        else:
            self.reject(lexeme.start, lexeme.end, ProblemKind.UNOPENED_GROUP)
            self.findings.mendable &= lexeme.end - lexeme.start <= MAX_PIECE

    def _end(self, end: int, suffix: str) -> None:
        """Take the innermost group off the stack and add it as a clause to the group around it."""
        self._reject_pending()
        ended, self.group = self.group, self.outer.pop()
        at = end - len(suffix)
        weight = self.clauses.numbers(suffix, at, 0, 0)[1] if suffix else 1.0
        if not ended.nodes:
            is_blank = not self.findings.text[ended.start + 1 : end - 1].strip()
            if ended.dropped:
                self.reject(*ended.dropped[0], ProblemKind.NO_TOKEN)
            elif is_blank or not self.findings.problems:
                self.reject(ended.start, end, ProblemKind.EMPTY_GROUP)
        node = self._joined(ended)
        if isinstance(node, tuple):
            if weight != 1:
                self.reject(at, end, ProblemKind.NO_SCORE)
        elif node is not None and weight != 1:
            whole = node
            node = self.clauses.first(at, end, lambda: weighted(whole, weight), lambda: whole)
        self._add(node, ended.start, end)

    def _joined(self, group: OpenGroup) -> Node | tuple[Modifier, ...] | None:
        """Return the node of the clauses of a group (see ``node_of``); None if nothing is left.

        An alternative of nothing but modifiers (see ``grammar``) is rejected. In the corrected
        query, it joins the alternative before it, or the next one if it is the first.
        """
        if group.nodes and not group.marked:  # most
            plain = cast("list[Node]", group.nodes)
            return plain_node(plain, group.connectors, self.options.spaces_mean)
        clauses = enumerate(zip(group.connectors, group.nodes, strict=True))
        items = [group.marked.get(at) or GroupItem(*clause) for at, clause in clauses]
        kept = [item for item in items if item.node is not None]
        if not kept:
            return None
        if any(map(attrgetter("plus"), kept)):  # clauses such as +a +b are joined by AND
            self.findings.mendable &= all(item.plus or item.is_modifier for item in kept)
            for item in kept:
                item.connector = "AND"
        kept[0].connector = ""
        if not all(item.is_modifier and item.connector != "OR" for item in kept):
            connectors = [item.connector for item in kept]
            for start, end in alternatives(connectors, self.options.spaces_mean):
                run = kept[start:end]
                after = kept[end] if end < len(kept) else None
                beside = run[0] if start else after
                if not all(item.is_modifier for item in run) or (beside and not beside.connector):
                    continue
                of_run = [node for item in run for node in item.nodes]
                is_not = all(isinstance(n, Modifier) and n.operator is NOT for n in of_run)
                message = (
                    ProblemKind.NOT_ALTERNATIVE if is_not else ProblemKind.MODIFIER_ALTERNATIVE
                )
                self.reject(run[0].start, run[-1].end, message)
                if beside is not None:
                    beside.connector = "AND"
        nodes: list[Node | Modifier] = []
        connectors: list[str] = []
        for item in kept:
            nodes += item.nodes
            connectors += [item.connector, *[""] * (len(item.nodes) - 1)]
        return node_of(nodes, connectors, self.options.spaces_mean)

    _BY_KIND = {  # noqa: RUF012
        "plain": _plain, "word": _word, "phrase": _phrase, "regex": _regex, "range": _range,
        "open": _open, "close": _close, "backslash": _backslash,
    }  # fmt: skip

"""Query text -> tree, or all its problems at once, with a corrected query.

Most texts are read by the grammar as they are. Any other is rewritten: the reader puts its lexemes
into a stack of groups, where a lexeme that is a clause becomes text of the language (``clauses``),
and a group that ends becomes a clause of the group around it. The whole text is read whatever
problems it has; each is recorded at its place. The grammar reads what comes of it, be it the query
that runs or the corrected one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from arag_search.errors import ArgumentError
from arag_search.query import problems
from arag_search.query.analysis import APOSTROPHES, has_apostrophes, has_token, letters_of
from arag_search.query.clauses import ClauseReader, is_no_field, is_searchable, literal_text
from arag_search.query.fields import ANY_SCHEMA, TEXT_FIELDS, FieldRef, Schema
from arag_search.query.fragments import Modified, joined, phrase, word
from arag_search.query.grammar import Doubt, Operator, Options, read
from arag_search.query.lexer import REGEX, Lexeme, find_special, lex, unescape
from arag_search.query.limits import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_MENDED,
    MAX_PREFIXES,
    MAX_PUBLISHED_PREFIXES,
    MAX_WORDS,
    MAX_WORDS_WITHOUT_LIMITS,
    PREFIX_SHARES,
)
from arag_search.query.operators import (
    AND,
    DEMOTE,
    NOT,
    NOT_SIGNS,
    OR,
    PREFER,
    PUBLISHED,
    SPELLED,
    OperatorWord,
    factored,
)
from arag_search.query.problems import EndOfReadingError, Findings, Problem, QueryError, fill
from arag_search.query.signs import plain_signs
from arag_search.query.tree import (
    Compound,
    Fuzzy,
    Leaf,
    MetadataLeaf,
    Modifier,
    Node,
    Prefix,
    Scope,
    Term,
    TextLeaf,
    condition_of,
    leaves,
    render,
    scores,
    spelled_words,
    unweighted,
    weighted,
)
from arag_search.system.arguments import checked
from arag_search.system.values import value

Connector = Literal["START", "SPACE", "AND", "OR"]

_FACTOR = re.compile(r"\^(\d*\.\d+|\d+)")
_LOWER_CASE_OPERATORS = frozenset({"and", "or", "not"})
_OPTION = re.compile(
    r"""(?P<option>--[^\W\d_](?:[^\s"()^~*:?]{0,60}[^\s"()^~*:?!.,;])?)
        (?P<suffix>(?:[~^][\d.]{0,9}\d)?)[?!.,;]{0,9}""",
    re.VERBOSE,
)
_WEIGHT = re.compile(r"\^[^\s()]+")
_SPACED_CLAUSE = re.compile(
    r"""(?P<name>[^\W\d][\w.-]*)(?:
        :\s*(?P<low>[^\s()":\[{<>]+)\s+TO\s+(?P<high>[^\s()":]+)
      | \s*:?\s*(?P<sign>==|=>|=<|>=|<=|[=≥≤<>])\s*
        (?P<value>"[^"\\]*"|[^\s()"<>=:]+)
      | \s+:\s*(?P<after>"[^"\\]*"|[^\s()":]+))(?=[\s)]|$)""",
    re.VERBOSE,
)
_COMPARING = re.compile(r"[=<>≥≤]|\s:|\sTO\s")
_COMPARISONS = {"==": "=", "=>": ">=", "=<": "<=", "≥": ">=", "≤": "<="}
_QUESTION = re.compile(
    r"[?？؟][\"'”’»)\s]*$|^\W*(?:who|whose|what|which|when|where|why|how)\b", re.IGNORECASE
)
_LAST_WORD_ASKED = re.compile(r"(?:^|(?<!\\)\s)([^\W_]++)\?$")
_EMPTY_WORDS = frozenset(
    """
    a about am an and any are as at be been by can could did do does for from had has have how i if
    in into is it its me my of on or our should some that the their there these they this those to
    was we were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905
)
"""English words that say nothing of what a question asks for. They are searched all the same."""


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
    published: bool = False,
    ranked: bool = True,
) -> Query:
    """Parse a query.

    ``default_operator`` is what a space means. ``operators`` False rejects AND, OR, NOT, - and !
    (a space is then OR). ``published`` reads the language without its later additions: PREFER and
    DEMOTE are words, and words match as they are written; so it is without operators.
    ``ranked`` False is for a condition, which has no scores: it rejects PREFER and DEMOTE.
    ``limits`` False lifts all limits but a depth of 100 parentheses and 100,000 words in all
    spellings. Raises QueryError with every problem (the first 2,000), never anything else, whatever
    the text; one of more than 4,000 characters gets no corrected query.
    """
    return parse_checked(
        text, Options(schema, default_operator, operators, limits, published, ranked)
    )


def parse_checked(text: str, options: Options) -> Query:
    """Parse a query with options that were checked before; see ``parse``."""
    findings = Findings(text)
    tree = _read_as_it_is(findings, options)
    if tree is None:
        findings, tree = _read_corrected(text, options)
    if options.has_additions:
        _note_question(tree, findings)
    if not scores(tree):
        findings.note(problems.NOTE_UNRANKED)
    language = options.schema.language if options.has_additions else ""
    return Query(tree, tuple(findings.notes), language, options.operators)


def _read_as_it_is(findings: Findings, options: Options) -> Node | None:
    """Return the tree of a text that needs no correction, and no note but those on a question mark
    at its end and on words that may be meant otherwise; None for any other."""
    text = findings.text
    if options.limits and len(text) > MAX_CHARACTERS:
        return None
    asked = _LAST_WORD_ASKED.search(text) if text[-1:] == "?" else None
    doubts: list[Doubt] = []
    tree = read(text[:-1] if asked else text, options, typed=True, doubts=doubts)
    if tree is None or isinstance(tree, tuple) or _exceeded(tree, text, options):
        return None
    for doubt in doubts:
        if doubt.field is not None:
            findings.note(problems.NOTE_FIELD_COVERS, name=doubt.field, word=doubt.word)
        elif options.operators:
            findings.note(problems.NOTE_LOWER_CASE, word=doubt.word)
    if asked:
        findings.note(problems.NOTE_QUESTION_MARK, word=asked[1])
    return tree


def _read_corrected(text: str, options: Options) -> tuple[Findings, Node]:
    reading = _read(text, options)
    findings, tree = reading.findings, reading.tree
    if reading.modifiers:
        tree = _reject_only_modifiers(reading, options)
    if findings.problems or tree is None:
        corrected = None if tree is None else render(tree, options.operators)
        raise findings.error(_mended(reading, corrected, options))
    return findings, tree


def _note_question(tree: Node, findings: Findings) -> None:
    """Note which words of a question in plain words say nothing of what it asks for."""
    children = tree.children if isinstance(tree, Compound) else ()
    words = [leaf.text for leaf in children if isinstance(leaf, Term) and leaf.field is None]
    if len(words) < len(children) or not _QUESTION.search(findings.text):
        return
    empty = [word for word in words if word.lower() in _EMPTY_WORDS]
    telling = [word for word in words if word.lower() not in _EMPTY_WORDS]
    if empty and telling:
        for word in words:
            if f"{word}?" in findings.text:  # that it is a question says as much
                findings.notes.pop(fill(problems.NOTE_QUESTION_MARK, word=word), None)
        named = ", ".join(dict.fromkeys(f'"{word}"' for word in empty))
        findings.note(problems.NOTE_QUESTION, empty=named, telling=" ".join(telling))


def parse_scope(text: str, schema: Schema) -> Scope:
    """Parse a filter: metadata clauses only, NOTs alone allowed, no limits but depth.

    Raises QueryError.
    """
    options = Options(replace(schema, metadata_only=True), "AND", limits=False, ranked=False)
    tree = read(text, options, typed=True)
    if tree is None:
        reading = _read(text, options)
        if reading.findings.problems:
            is_filter = reading.tree is not None and _text_leaf([reading.tree]) is None
            corrected = str(reading.tree) if is_filter else None
            raise reading.findings.error(_mended(reading, corrected, options))
        tree = read(reading.text, options, typed=False)
    nodes = tree if isinstance(tree, tuple) else (tree,) if tree else ()
    if leaf := _text_leaf(nodes):
        message = problems.TEXT_IN_SCOPE.format(fields=options.schema.describe())
        raise QueryError(text, (Problem(1, problems.shortened(str(leaf)), message),), None)
    include = tuple(node for node in nodes if isinstance(node, Node))
    return Scope(include, tuple(node.child for node in nodes if isinstance(node, Modifier)))


def _text_leaf(nodes: Iterable[Node | Modifier]) -> Leaf | None:
    clauses = (leaf for node in nodes for leaf in leaves(node))
    return next((leaf for leaf in clauses if not isinstance(leaf, MetadataLeaf)), None)


def _mended(reading: _Reading, corrected: str | None, options: Options) -> str | None:
    """Return the corrected text if all problems can be mended and it has none itself."""
    findings = reading.findings
    if not corrected or not findings.mendable or len(findings.text) > MAX_MENDED:
        return None
    again = _read(corrected, options)
    return corrected if again.tree is not None and not again.findings.problems else None


def _reject_only_modifiers(reading: _Reading, options: Options) -> Node | None:
    """Reject a query of nothing but NOTs, PREFERs and DEMOTEs; return what mends it: what is
    preferred becomes what is to be found."""
    wanted = [part.clause for part in reading.modifiers if part.operator is PREFER]
    others = [part for part in reading.modifiers if part.operator is not PREFER]
    is_plain = all(part.operator is NOT for part in reading.modifiers)
    message = problems.ONLY_NOTS if is_plain else problems.ONLY_MODIFIERS
    with suppress(EndOfReadingError):
        reading.findings.reject(*reading.span, message, mended=bool(wanted))
    return _tree(joined(AND, joined(OR, *wanted), *others), options) if wanted else None


def parse_filter(text: str, schema: Schema) -> Scope:
    """Parse a filter as ``parse_scope`` does; its QueryError says that the filter is at fault."""
    try:
        return parse_scope(text, schema)
    except QueryError as error:
        error.where = "the filter"
        raise


def parse_where(text: str, schema: Schema) -> Query:
    """Parse the condition of a search by vectors: a logical query that only decides which passages
    are ranked. Raises QueryError, which says that the condition is at fault."""
    try:
        parsed = parse(text, schema, ranked=False)
    except QueryError as error:
        raise condition_error(error) from None
    notes = tuple(note for note in parsed.notes if note != problems.NOTE_UNRANKED)
    return replace(parsed, notes=notes)


def condition_error(error: QueryError) -> QueryError:
    """Return an error that says that the condition of a search by vectors is at fault."""
    error.where = "the condition where"
    return error


@dataclass(slots=True)
class _Reading:
    """The result of reading a text: the ``text`` that the grammar reads, and its ``tree``.

    A text of nothing but NOTs, PREFERs and DEMOTEs has ``modifiers``, at ``span``, and no tree;
    only a filter may be one.
    """

    findings: Findings
    text: str = ""
    tree: Node | None = None
    modifiers: Sequence[Modified] = ()
    span: tuple[int, int] = (0, 0)


def _read(text: str, options: Options) -> _Reading:
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
            if not reading.text and not findings.problems:
                findings.reject(0, len(text), problems.ONLY_DROPPED, mended=False)
        if reading.text:
            reading.tree = _tree(reading.text, options)
        if reading.tree is not None:
            for message in _exceeded(reading.tree, reading.text, options):
                findings.reject(0, len(text), message, mended=False)
    except EndOfReadingError:
        reading.tree, reading.modifiers = None, ()
    return reading


def _tree(text: str, options: Options) -> Node | None:
    tree = read(text, options, typed=False)
    return None if isinstance(tree, tuple) else tree


def _check_unicode(text: str, findings: Findings) -> None:
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            findings.reject(index, index + 1, problems.LONE_SURROGATE, mended=False)


def _exceeded(tree: Node, text: str, options: Options) -> list[str]:
    """Return messages on the limits of the whole that the tree of a text exceeds."""
    is_counted = "*" in text or "~" in text or has_apostrophes(text)
    if not is_counted and text.isascii() and len(text) < 2 * MAX_LEAVES:
        return []
    all_leaves = leaves(tree)
    texts = [leaf for leaf in all_leaves if isinstance(leaf, TextLeaf)]
    prefixes = [leaf.text for leaf in texts if isinstance(leaf, Prefix)]
    of_prefixes = (len(prefixes), MAX_PUBLISHED_PREFIXES, problems.TOO_MANY_PUBLISHED_PREFIXES)
    if options.has_additions:
        prefixes += [leaf.text for leaf in texts if isinstance(leaf, Fuzzy)]
        shares = sum(PREFIX_SHARES.get(letters_of(prefix), 1) for prefix in prefixes)
        of_prefixes = (shares, MAX_PREFIXES, problems.TOO_MANY_PREFIXES)
    words = 0
    most_words = MAX_WORDS if options.limits else MAX_WORDS_WITHOUT_LIMITS
    if sum(len(leaf.text) << sum(map(leaf.text.count, APOSTROPHES)) for leaf in texts) > most_words:
        for leaf in texts:
            words += spelled_words(leaf)
            if words > MAX_WORDS_WITHOUT_LIMITS:  # to count all would take long
                break
    counts = (
        (len(all_leaves), MAX_LEAVES, problems.TOO_MANY_LEAVES),
        of_prefixes,
        (words, most_words, problems.TOO_MANY_WORDS),
    )
    binding = counts if options.limits else counts[-1:]
    return [m.format(count=count, limit=limit) for count, limit, m in binding if count > limit]


class _Reader:
    """A pass over the lexemes of a text, which adds clauses to the open groups."""

    def __init__(self, text: str, options: Options, reading: _Reading) -> None:
        self.options = options
        self.max_depth = options.max_depth
        self.reading = reading
        self.findings = reading.findings
        self.reject, self.note = self.findings.reject, self.findings.note
        has_additions = options.has_additions
        self.clauses = ClauseReader(options.schema, self.findings, has_additions=has_additions)
        plain, notes = plain_signs(text, options.schema)
        for note in notes:
            self.note(note)
        self.lexemes = lex(plain, patterns=has_additions)
        self.plain = plain
        self.may_compare = _COMPARING.search(plain) is not None
        self.read_until = 0  # what is before this offset was read with an earlier lexeme
        self.operators = SPELLED if has_additions else PUBLISHED
        self.groups = _OpenGroups(self.clauses, options)
        self.ignored = 0  # open parentheses beyond the deepest level that is read

    def read(self) -> None:
        for index, lexeme in enumerate(self.lexemes):
            if lexeme.start < self.read_until:
                continue
            match lexeme.kind:
                case "word":
                    self._word(index, lexeme)
                case "phrase":
                    self._phrase(lexeme)
                case "regex":
                    self._regex(lexeme)
                case "open":
                    self._open(lexeme)
                case "close":
                    self._close(lexeme)
                case "range":
                    self._range(lexeme)
                case "backslash":
                    self.reject(lexeme.start, lexeme.end, problems.TRAILING_BACKSLASH)
        self.groups.end_all()
        root = self.groups.root
        if not root.items and not self.findings.problems:
            start, stop = root.dropped[0] if root.dropped else (0, len(self.plain))
            self.reject(start, stop, problems.ONLY_DROPPED, mended=False)
        if not root.items:
            return
        if _only_modifiers(_with_clauses(root.items)):
            kept = (item.modified for item in root.items)
            self.reading.modifiers = [part for part in kept if isinstance(part, Modified)]
            self.reading.text = " ".join(map(str, self.reading.modifiers))
            self.reading.span = root.items[0].start, root.items[-1].end
            return
        clause = _joined(root.items, self.options.spaces_mean, self.findings)
        self.reading.text = clause or ""

    # Clauses

    def _word(self, index: int, lexeme: Lexeme) -> None:
        if self.may_compare and self._is_spaced_clause(lexeme):
            return
        raw, start = lexeme.raw, lexeme.start
        operator = self._operator(raw)
        if operator is not None and self.groups.pending_field is None:
            self.groups.operator(operator, lexeme)
            return
        following = self._following(index)
        joined = following.kind if following is not None and following.joined else None
        if raw[-1] == ":" and raw[:-1] in TEXT_FIELDS and joined in ("phrase", "open"):
            self.groups.pending_field = self._field_here(raw[:-1], start), start
            return
        if not raw.strip("-!+") and joined in ("phrase", "open", "range"):
            self.groups.signs(raw, start)
            return
        if not has_token(raw) and self._is_dropped(raw, lexeme, following):
            return
        outer = self.groups.group.field
        is_text = outer is None or outer.kind == "text"
        if is_text and self.options.has_additions and (option := _OPTION.fullmatch(raw)):
            self._option(option, lexeme)
            return
        signs = len(raw) - len(raw.lstrip(NOT_SIGNS)) if raw[0] in NOT_SIGNS else 0
        if outer is not None and outer.type.is_signed and raw[0] == "-":
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

    def _option(self, option: re.Match[str], lexeme: Lexeme) -> None:
        """Add the option of a command, such as ``--jobs``, as a phrase."""
        field, start = self.groups.take_field(lexeme.start)
        name, suffix = unescape(option["option"]), option["suffix"]
        self.note(problems.NOTE_OPTION, option=name, word=name.lstrip("-"))
        end = lexeme.start + option.end("suffix")
        leaf = self.clauses.phrase(f'"{option["option"]}"', suffix, start, end, field)
        self.groups.add(leaf, start, lexeme.end)

    def _plain_word(self, raw: str, lexeme: Lexeme, following: Lexeme | None) -> None:
        """Add a word without its signs, ``raw``, as a clause."""
        start = lexeme.end - len(raw)
        if raw.casefold() in _LOWER_CASE_OPERATORS:
            self._note_lower_case(raw, following)
        field, first = self.groups.take_field(start)
        self.groups.add(self.clauses.word(raw, start, field), first, lexeme.end)

    def _operator(self, raw: str) -> OperatorWord | None:
        """Return the operator that a word is, with its factor if it is PREFER or DEMOTE."""
        operator = self.operators.get(raw) or factored(raw)
        return operator if operator is not None and operator.word in self.operators else None

    def _takes_colon(self, name: str) -> bool:
        """Return whether a colon after ``name`` belongs to the value.

        Within ``published:( )`` it does, unless ``name`` is a field.
        """
        pending = self.groups.pending_field
        outer = self.groups.group.field or (pending and pending[0])
        if not outer or outer.kind == "text":
            return False
        return self.clauses.schema.named(name) is None

    def _is_spaced_clause(self, lexeme: Lexeme) -> bool:
        """Reject a clause of a declared field whose comparison, colon or range is not as it must be
        (``price > 5``, ``price : 5``, ``price:1 TO 5``); return whether it is one."""
        match = _SPACED_CLAUSE.match(self.plain, lexeme.start)
        name = None if match is None else self.clauses.schema.named(match["name"])
        if match is None or name is None or self.groups.pending_field or self.groups.group.field:
            return False
        ref = FieldRef(name, self.clauses.schema.kind(name) or "unknown")
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
        self.reject(lexeme.start, end, problems.SPACED_CLAUSE, clause=f"{name}:{value}")
        start = end - len(value)
        if value[:1] == "[":
            leaf = self.clauses.range(value, "", start, end, ref)
        elif value[:1] == '"':
            leaf = self.clauses.phrase(value, "", start, end, ref)
        else:
            leaf = self.clauses.word(value, start, ref)
        self.groups.add(leaf, lexeme.start, end)
        self.read_until = end
        return True

    def _fielded_word(self, index: int, lexeme: Lexeme, raw: str, start: int, colon: int) -> None:
        name, value = unescape(raw[:colon]), raw[colon + 1 :]
        end = lexeme.end
        if raw == "*:*":
            self.reject(start, end, problems.BARE_STAR)
            self.groups.add(None, start, end)
            return
        if not name:
            if not has_token(value):
                self.groups.group.dropped.append((lexeme.start, end))
                self.note(problems.NOTE_DROPPED, piece=raw)
                return
            self._note_colon(raw)
            self._plain_word(value, lexeme, self._following(index))
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
            self.reject(start, end, problems.NOT_INSIDE_FIELD, name=name, value=value[1:])
            self.groups.group.modifiers.append(_Modifier(NOT, start, start + 1))
            value = value.lstrip("-!")
        if ref.kind in ("unknown", "guess") and is_no_field(ref.name, value):
            self._note_colon(raw, ref.name)
            text = literal_text(raw.rstrip("?"))
            self.groups.add(phrase(text) if is_searchable(text) else None, start, end)
            return
        leaf = self.clauses.word(value, end - len(value), ref)
        self.groups.add(leaf, start, end)
        self._note_field_covers(index, ref, value, leaf)

    def _field_here(self, name: str, start: int) -> FieldRef:
        """Return the field of a clause; reject it within the group of another field."""
        outer = self.groups.group.field
        if outer is not None:
            self.reject(start, start + len(name) + 1, problems.FIELD_IN_FIELD, outer=outer.name)
        return self.clauses.field(name)

    def _field_without_value(
        self, ref: FieldRef, start: int, end: int, following: Lexeme | None
    ) -> None:
        """Reject a field with nothing or a blank after its colon."""
        takes_next = (
            following is not None
            and following.kind in ("word", "phrase", "regex", "open")
            and self._operator(following.raw) is None
        )
        if ref.kind in ("unknown", "guess") and is_searchable(ref.name):
            self._note_colon(f"{ref.name}:", ref.name)
            self.groups.add(word(ref.name), start, end)
        elif takes_next and following is not None:
            value = following.raw if following.kind != "open" else "(...)"
            self.reject(start, end, problems.BLANK_AFTER_FIELD, name=ref.name, value=value)
            self.groups.pending_field = ref, start
        else:
            self.reject(start, end, problems.EMPTY_FIELD, name=ref.name)
            self.groups.add(None, start, end)

    def _phrase(self, lexeme: Lexeme) -> None:
        field, start = self.groups.take_field(lexeme.start)
        raw = lexeme.raw
        if self.findings.text[lexeme.start] != '"':  # other quotes, which may be longer
            raw = f'"{raw.strip(chr(34)).strip()}"'
        node = self.clauses.phrase(raw, lexeme.suffix, lexeme.start, lexeme.end, field)
        self.groups.add(node, start, lexeme.end)

    def _regex(self, lexeme: Lexeme) -> None:
        """Add a pattern; in the parentheses of a metadata field it is a value."""
        end = lexeme.start + len(lexeme.raw)
        match = REGEX.fullmatch(self.findings.text, lexeme.start, end) or REGEX.fullmatch(
            self.plain, lexeme.start, end
        )
        assert match is not None
        self.groups.signs(match["signs"], lexeme.start)
        start = match.end("signs")
        if match["name"]:
            field = self._field_here(match["name"], start)
        else:
            field, start = self.groups.take_field(start)
        if field is not None and field.kind != "text":
            leaf = self.clauses.word(self.plain[match.end("signs") : end], start, field)
        else:
            leaf = self.clauses.regex(match, lexeme.suffix, lexeme.end, field)
        self.groups.add(leaf, start, lexeme.end)

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
        """Drop or reject a piece without words, and return whether that was necessary.

        A piece next to a blank and no operator is dropped with a note. One with signs of the
        language is kept.
        """
        group = self.groups.group
        if self.groups.pending_field or find_special(raw, ":^~*") >= 0:
            return False
        if raw[0] == "\\" and unescape(raw) in self.operators:
            return False
        before = lexeme.start == 0 or not lexeme.joined
        after = following is None or not following.joined
        beside_operator = (
            group.operator is not None
            or bool(group.modifiers)
            or (following is not None and self._operator(following.raw) is not None)
        )
        if (before or after) and not beside_operator:
            group.dropped.append((lexeme.start, lexeme.end))
            self.note(problems.NOTE_DROPPED, piece=raw)
            return True
        node = self.clauses.reject_signs(unescape(raw), lexeme.start, lexeme.end, None)
        self.groups.add(node, lexeme.start, lexeme.end)
        return True

    def _following(self, index: int) -> Lexeme | None:
        return self.lexemes[index + 1] if index + 1 < len(self.lexemes) else None

    # Notes

    def _note_minus_number(self, raw: str, signs: int) -> None:
        word = raw[signs:]
        if raw[0] == "-" and word[:1].isdigit():
            self.note(problems.NOTE_MINUS_NUMBER, piece=raw, word=word)

    def _note_lower_case(self, raw: str, following: Lexeme | None) -> None:
        if not self.options.operators or following is None:
            return
        if following.kind != "close" and self._operator(following.raw) is None:
            self.note(problems.NOTE_LOWER_CASE, word=raw)

    def _note_colon(self, piece: str, name: str = "") -> None:
        """Note that a colon is punctuation, and not that ``name`` before it may be a field."""
        self.findings.notes.pop(fill(problems.NOTE_UNCHECKED_FIELD, name=name), None)
        self.note(problems.NOTE_COLON, piece=problems.shortened(piece))

    def _note_field_covers(self, index: int, ref: FieldRef, value: str, clause: str | None) -> None:
        following = self._following(index)
        if (
            ref.kind == "text"
            and clause is not None
            and isinstance(_tree(clause, self.options), Term | Prefix)
            and following is not None
            and following.kind == "word"
            and not following.joined
            and self._operator(following.raw) is None
            and following.raw[0] not in "-!+"
            and find_special(following.raw, ":") < 0
            and has_token(unescape(following.raw))
        ):
            self.note(problems.NOTE_FIELD_COVERS, name=ref.name, word=unescape(value))

    # Groups

    def _open(self, lexeme: Lexeme) -> None:
        if self.groups.depth > self.max_depth:
            self.ignored += 1
            if self.ignored == 1:
                message = fill(problems.TOO_DEEP, count=self._typed_depth(), limit=self.max_depth)
                self.reject(lexeme.start, lexeme.end, message, mended=False)
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
            self.reject(lexeme.start, lexeme.start + 1, problems.UNOPENED_GROUP)
            return
        self.groups.end(lexeme.end, lexeme.suffix)


# Groups


class _Modifier(NamedTuple):
    """A NOT, PREFER or DEMOTE before a clause, with its offsets and the factor after it."""

    operator: OperatorWord
    start: int
    end: int
    factor: float | None = None


@dataclass(slots=True)
class _Item:
    """A clause in its group: the connector and the modifier before it, and its offsets.

    ``clause`` is None for one that was rejected and has no replacement.
    """

    connector: Connector
    modifier: _Modifier | None
    clause: str | None
    start: int
    end: int
    plus: bool = False

    @property
    def modified(self) -> str | Modified | None:
        """The clause under its modifier, if it has one."""
        if self.clause is None or self.modifier is None:
            return self.clause
        operator = self.modifier.operator
        factor = self.modifier.factor if operator.factor else None
        return Modified(operator, factor, self.clause)


@dataclass(slots=True)
class _Group:
    """An open parenthesis (or the whole query) with the clauses read so far.

    ``operator``, ``modifiers`` and ``plus_pending`` belong to the clause that comes next.
    ``dropped`` are the offsets of pieces that hold nothing to search.
    """

    start: int
    field: FieldRef | None = None
    connector: Connector = "START"
    modifier: _Modifier | None = None
    plus: bool = False
    items: list[_Item] = dataclasses.field(default_factory=list[_Item])
    operator: tuple[Operator, Lexeme] | None = None
    modifiers: list[_Modifier] = dataclasses.field(default_factory=list[_Modifier])
    plus_pending: bool = False
    dropped: list[tuple[int, int]] = dataclasses.field(default_factory=list[tuple[int, int]])


class _OpenGroups:
    """The stack of open groups. ``root`` is the whole query, ``group`` the innermost one.

    ``pending_field`` is a field whose value comes next, with its offset.
    """

    def __init__(self, clauses: ClauseReader, options: Options) -> None:
        self.root = _Group(0)
        self.group = self.root
        self.pending_field: tuple[FieldRef, int] | None = None
        self._groups = [self.root]
        self._clauses = clauses
        self._findings = clauses.findings
        self._reject = clauses.reject
        self._options = options

    @property
    def depth(self) -> int:
        """The number of open groups; the whole query is one."""
        return len(self._groups)

    # Before a clause

    def operator(self, operator: OperatorWord, lexeme: Lexeme) -> None:
        """Record an operator before the next clause."""
        group = self.group
        message = problems.OPERATORS_OFF if not self._options.operators else ""
        if operator.needs_ranking and not self._options.ranked:
            message = operator.unranked
        if message:
            self._reject(lexeme.start, lexeme.end, message)
        if not operator.joins:
            group.modifiers.append(self._modifier(operator, lexeme))
            return
        if message:
            return
        self._reject_dangling(group)
        if group.operator is not None:
            self._reject_operator(group.operator[1])
        elif not group.items:
            self._reject(lexeme.start, lexeme.end, problems.NOTHING_LEFT, operator=lexeme.raw)
            return
        group.operator = ("AND" if operator is AND else "OR"), lexeme

    def _modifier(self, operator: OperatorWord, lexeme: Lexeme) -> _Modifier:
        """Return a modifier with the factor after it, which only DEMOTE takes."""
        start, end, suffix = lexeme.start, lexeme.end, lexeme.raw[len(operator.word) :]
        modifier = _Modifier(operator, start, end)
        if not suffix:
            return modifier
        match = _FACTOR.fullmatch(suffix)
        if operator.factor is not None and match and 0 < float(match[1]) < 1:
            return modifier._replace(factor=float(match[1]))
        self._reject(start, end, operator.on_factor)
        return modifier

    def signs(self, signs: str, start: int) -> None:
        """Record minus, exclamation mark and plus directly before a clause."""
        for offset, sign in enumerate(signs):
            at = start + offset
            if sign == "+":
                self._reject(at, at + 1, problems.PLUS)
                self.group.plus_pending = True
                continue
            if not self._options.operators:
                self._reject(at, at + 1, problems.OPERATORS_OFF)
            self.group.modifiers.append(_Modifier(NOT, at, at + 1))

    def take_field(self, start: int) -> tuple[FieldRef | None, int]:
        """Return the field of the clause whose value starts here, and where the clause starts."""
        if self.pending_field is not None:
            (field, start), self.pending_field = self.pending_field, None
            return field, start
        return self.group.field, start

    # Clauses and groups

    def add(self, clause: str | None, start: int, end: int) -> None:
        """Put a clause into the innermost group; None is a rejected clause."""
        group = self.group
        first = group.modifiers[0].start if group.modifiers else start
        connector, modifier, plus = self._take_modifiers()
        self.pending_field = None
        if modifier is not None:
            clause = self._modifiable(modifier, clause, start, end)
            modifier = modifier if self._is_allowed(modifier) else None
        group.items.append(_Item(connector, modifier, clause, first, end, plus))

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
        if not group.items:
            self._add_ended(group, None, end)
        elif _only_modifiers(_with_clauses(group.items)):
            if weight != 1:
                self._reject(end - len(suffix), end, NOT.on_weight)
            self._add_modifiers(group, end)
        else:
            clause = _joined(group.items, self._options.spaces_mean, self._findings)
            if weight != 1 and clause is not None:
                clause = self._weighted(clause, weight, group.modifier, end - len(suffix), end)
            self._add_ended(group, clause, end)

    def end_all(self) -> None:
        """Reject and end the groups that are open at the end of the text; end the query too."""
        end = len(self._findings.text)
        while len(self._groups) > 1:
            start = self.group.start
            self._reject(start, start + 1, problems.UNCLOSED_GROUP)
            self.end(end, "")
        self._reject_pending(self.root)

    def _add_ended(self, group: _Group, clause: str | None, end: int) -> None:
        """Make a group that has ended a clause of the one around it."""
        modifier = group.modifier
        if modifier is not None:
            clause = self._modifiable(modifier, clause, group.start, end)
            modifier = modifier if self._is_allowed(modifier) else None
        item = _Item(group.connector, modifier, clause, group.start, end, group.plus)
        self.group.items.append(item)

    def _is_allowed(self, modifier: _Modifier) -> bool:
        """Return whether a modifier was not rejected as such: its clause is not searched either."""
        is_ranking = modifier.operator.needs_ranking
        return self._options.ranked if is_ranking else self._options.operators

    def _modifiable(
        self, modifier: _Modifier, clause: str | None, start: int, end: int
    ) -> str | None:
        """Return what a modifier may stand before: without what has no effect there, which is
        rejected, and None instead of a clause whose modifier or which itself is rejected."""
        node = None if clause is None else _tree(clause, self._options)
        if node is None or not self._is_allowed(modifier):
            return None
        name = modifier.operator.word
        if modifier.operator is PREFER:
            if scores(node):
                return clause
            self._reject(start, end, problems.PREFER_WITHOUT_SCORE)
            return None
        condition = condition_of(node)
        if condition is not node:
            self._reject(start, end, problems.SCORING_IN_CONDITION, operator=name)
        plain = unweighted(condition)
        if plain is not condition:
            weights = list(_WEIGHT.finditer(self._findings.text, start, end))
            if weights:
                start, end = weights[-1].span()
            self._reject(start, end, modifier.operator.on_weight)
        return clause if plain is node else str(plain)

    def _add_modifiers(self, group: _Group, end: int) -> None:
        """Read a group of only modifiers as if its parentheses were not there."""
        outer = group.modifier
        if outer is None:
            group.items[0].connector = group.connector
            self.group.items.extend(group.items)
            return
        inner = [item.modifier for item in group.items if item.modifier is not None]
        operator = self._reject_repeated([outer, *inner], group.start, end)
        kept = [item.clause for item in group.items if item.clause is not None]
        group.modifier = None if operator is None else outer._replace(operator=operator)
        self._add_ended(group, joined(OR, *kept) if kept else None, end)

    def _reject_repeated(
        self, modifiers: Sequence[_Modifier], start: int, end: int
    ) -> OperatorWord | None:
        """Reject several modifiers of one clause; return one that may be meant instead of them, or
        None: a NOT turns DEMOTE into PREFER, PREFER into DEMOTE, and is turned by NOT."""
        operators = [modifier.operator for modifier in modifiers]
        is_odd = operators.count(NOT) % 2 == 1
        if set(operators) == {NOT}:
            is_option = self._findings.text.startswith("--", start)
            message = problems.NOT_NOT_OPTION if is_option else problems.NOT_NOT
            self._reject(start, end, message)
            return NOT if is_odd else None
        self._reject(start, end, problems.SEVERAL_MODIFIERS)
        return DEMOTE if (DEMOTE in operators) != is_odd else PREFER

    def _reject_empty(self, group: _Group, end: int) -> None:
        findings = self._findings
        if group.dropped:
            first, last = group.dropped[0]
            note = fill(problems.NOTE_DROPPED, piece=findings.text[first:last])
            findings.notes.pop(note, None)
            findings.reject(first, last, problems.NO_TOKEN)
        elif not findings.problems or findings.text[group.start + 1 : end - 1].strip() == "":
            findings.reject(group.start, end, problems.EMPTY_GROUP)

    def _weight(self, suffix: str, end: int) -> float:
        suffix = suffix and suffix.rstrip("?")
        if not suffix:
            return 1.0
        start = end - len(suffix)
        if suffix[0] == "~":
            self._reject(start, end, problems.SLOP_MISPLACED)
            return 1.0
        return self._clauses.weight(suffix, start)

    def _weighted(
        self, clause: str, weight: float, modifier: _Modifier | None, start: int, end: int
    ) -> str:
        operator = modifier.operator if modifier else PREFER
        node = _tree(clause, self._options)
        if node is not None and operator is PREFER and scores(node):
            try:
                return str(weighted(node, weight))
            except ArgumentError:
                message = fill(problems.WEIGHT_RANGE, weight=weight)
        else:
            message = operator.on_weight or problems.WEIGHT_ON_FILTER
        self._reject(start, end, message)
        return clause

    # Operators that wait for a clause

    def _take_modifiers(self) -> tuple[Connector, _Modifier | None, bool]:
        """Return and clear what precedes the next clause: its connector, a modifier, a plus."""
        group = self.group
        connector: Connector = "SPACE" if group.items else "START"
        if group.operator is not None:
            connector = group.operator[0]
            group.operator = None
        if not (group.modifiers or group.plus_pending):
            return connector, None, False
        modifier = group.modifiers[-1] if group.modifiers else None
        if len(group.modifiers) > 1 and self._options.operators and modifier is not None:
            start = group.modifiers[0].start
            operator = self._reject_repeated(group.modifiers, start, modifier.end)
            modifier = None if operator is None else modifier._replace(operator=operator)
        group.modifiers.clear()
        plus, group.plus_pending = group.plus_pending, False
        return connector, modifier, plus

    def _reject_pending(self, group: _Group) -> None:
        """Reject operators that wait for a clause at the end of a group."""
        if group.modifiers:
            self._reject_dangling(group)
        if group.operator is None:
            return
        self._reject_operator(group.operator[1])
        group.operator = None

    def _reject_dangling(self, group: _Group) -> None:
        """Reject modifiers with no clause after them."""
        for _, start, end, _ in group.modifiers:
            typed = self._findings.text[start:end]
            self._reject(start, end, problems.NOTHING_RIGHT, operator=typed)
        group.modifiers.clear()

    def _reject_operator(self, lexeme: Lexeme) -> None:
        self._reject(lexeme.start, lexeme.end, problems.NOTHING_RIGHT, operator=lexeme.raw)


def _with_clauses(items: list[_Item]) -> list[_Item]:
    """Return the items without those that were rejected, unless all were."""
    return [item for item in items if item.clause is not None] or items


def _only_modifiers(items: list[_Item]) -> bool:
    """Return whether a group is nothing but NOTs, PREFERs and DEMOTEs, joined by AND or spaces."""
    return all(item.modifier for item in items) and all(
        item.connector in ("AND", "SPACE") for item in items[1:]
    )


def _joined(items: list[_Item], default: Operator, findings: Findings) -> str | None:
    """Return the clauses of one group as one; None if nothing is left of it.

    A run of nothing but modifiers that would be an alternative (see ``grammar``) is rejected, and
    mended by joining it to the alternative before it, or to the next if it is the first.
    """
    items[0].connector = "START"
    kept = _with_clauses(items)
    broken = len(kept) < len(items) or kept[0].clause is None
    kept[0].connector = "START"
    if True in [item.plus for item in kept]:
        _join_plus(kept, findings)
    alternatives: list[str] = []
    of_all: list[Modified] = []
    carried: list[Modified] = []  # rejected modifiers that wait for the next alternative
    runs = _runs(kept, default)
    for index, run in enumerate(runs):
        parts = [item.modified for item in run]
        positive = [part for part in parts if isinstance(part, str)]
        modifiers = [part for part in parts if isinstance(part, Modified)]
        if any(not item.modifier for item in run):
            if positive:
                alternatives.append(joined(AND, *positive, *modifiers, *carried))
                carried = []
            continue
        after = runs[index + 1][0].connector if index + 1 < len(runs) else None
        if run[0].connector == "SPACE" or (run[0].connector == "START" and after == "SPACE"):
            of_all.extend(modifiers)
            continue
        is_not = all(item.modifier and item.modifier.operator is NOT for item in run)
        message = problems.NOT_ALTERNATIVE if is_not else problems.MODIFIER_ALTERNATIVE
        findings.reject(run[0].start, run[-1].end, message)
        if alternatives:
            alternatives[-1] = joined(AND, alternatives[-1], *modifiers)
        else:
            carried.extend(modifiers)
    if not alternatives:
        if not broken and not carried:
            findings.reject(kept[0].start, kept[-1].end, problems.ONLY_NOTS, mended=False)
        findings.mendable = findings.mendable and not carried
        return None
    return joined(AND, joined(OR, *alternatives), *of_all)


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
    if all(item.plus or item.modifier for item in items):
        for item in items[1:]:
            item.connector = "AND"
    else:
        findings.mendable = False

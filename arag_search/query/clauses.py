"""One clause of a query, as typed -> its node, or its problems.

Every method returns the node of a clause. For a rejected clause it returns the node that the
corrected query has in its place, or None. Constructors of nodes alone know what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from arag_search.corpus import nfc
from arag_search.errors import ArgumentError
from arag_search.query import analysis, problems
from arag_search.query.analysis import has_token, is_prefix, letters_of
from arag_search.query.fields import FieldRef
from arag_search.query.grammar import (
    COMMAS,
    COMPARISON,
    RANGE,
    WEIGHT,
    Options,
    range_leaf,
    value_leaf,
)
from arag_search.query.lexer import find_special, unescape
from arag_search.query.limits import (
    MAX_MENDED,
    MAX_SLOP,
    MAX_WEIGHT,
    MIN_FUZZY_CHARACTERS,
    MIN_PREFIX_CHARACTERS,
    MIN_WEIGHT,
)
from arag_search.query.operators import SPELLED
from arag_search.query.problems import Findings, NodeError, ProblemKind, shortened
from arag_search.query.regexes import literal
from arag_search.query.tree import (
    EXACT_MARK,
    Fuzzy,
    KeywordEquals,
    Leaf,
    Node,
    Phrase,
    Prefix,
    Range,
    Regex,
    Term,
    TextField,
    all_of,
    any_of,
)

is_plain_phrase = re.compile('"[A-Za-z0-9][A-Za-z0-9 ]*"').fullmatch
"""Most phrases: quotes around letters and digits of ASCII."""
_LITERAL_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\[^\W_]")
_PATH = re.compile(r"[\w./-]+|.*\b(?:AND|OR|NOT)\b.*", re.DOTALL)
"""A pattern that may be meant as text: a path, or words between slashes that belong to others."""
_PROGRAM = re.compile(r"(?=\S*[<>@=|&#$%:~])\S{2,60}")
_WILDCARDS = re.compile(r"(?<!\\)([*?])")
_WILDCARD_PATTERNS = {"*": r"\w*", "?": r"\w"}
_PART_BEHIND_STAR = re.compile(r"\*[._]([^\W\d_]{2,})")
_SUFFIX = re.compile(rf"(?:~(\d{{1,9}}))?(?:\^({WEIGHT}))?")
_NUMBERS = re.compile(rf"(?=.*?(?:~(\d{{1,9}})|$))(?=.*?(?:\^({WEIGHT})|$))")
_LOOSE_RANGE = re.compile(
    r"([\[{]?)\s*([+-]?[^\s,]*?)\s*(?:\bTO\b|,|-|–|—|\.\.|:|\s)\s*([+-]?[^\s,]*?)\s*([\]}]?)",
    re.IGNORECASE,
)
_VALUE = re.compile("()(.*)", re.DOTALL)
_TURNED = str.maketrans("[{]}", "]}[{")
_T = TypeVar("_T")


class ClauseReader:
    """A reader of clauses, which records problems and notes in ``findings``."""

    def __init__(self, options: Options, findings: Findings) -> None:
        self.schema = options.schema
        self.has_additions = options.has_additions
        self.findings = findings
        self.reject, self.refuse, self.note = findings.reject, findings.refuse, findings.note

    def reject_unknown(self, name: str, start: int, *, mended: bool = True) -> FieldRef | None:
        """Record that there is no such field. Return the field that a corrected query names, if
        exactly one is near. ``mended``: if none is near, a corrected query has the text."""
        near = self.schema.nearest(name) if len(self.findings.text) <= MAX_MENDED else []
        listed, end = f"; nearest: {', '.join(near)}" if near else "", start + len(name) + 1
        values = {"name": name, "near": listed, "fields": self.schema.describe()}
        mended = len(near) == 1 or (mended and not near)
        self.reject(start, end, ProblemKind.UNKNOWN_FIELD, mended=mended, **values)
        return self.schema.field(near[0]) if len(near) == 1 else None

    def first(self, start: int, end: int, *clauses: Callable[[], _T | None]) -> _T | None:
        """Try the candidates in order and return the first valid one. If the first one fails, its
        error is recorded; if all do, return None."""
        refused: list[ArgumentError] = []
        for make in clauses:
            try:
                clause = make()
            except ArgumentError as error:
                refused.append(error)
                continue
            if refused:
                self.refuse(start, end, refused[0])
            return clause
        self.refuse(start, end, refused[0], mended=False)
        return None

    # Words

    def word(self, raw: str, start: int, field: FieldRef | None) -> Node | None:
        """Return the leaf of a bare word after its field, with its prefix star and weight."""
        is_text = field is None or field.kind == "text"
        if is_text and raw.isalnum() and raw.isascii():  # as most words are
            return Term(raw, field.text_field if field else None)
        end, cut = start + len(raw), find_special(raw, "^~")
        stem, suffix = (raw, "") if cut < 0 else (raw[:cut], raw[cut:])
        if field is not None and field.kind == "unknown":
            name, field = field.name, self.reject_unknown(field.name, start - len(field.name) - 1)
            if field is None:
                text = raw if any(map(str.isalpha, suffix)) else stem.rstrip("*")
                return self.literal(f"{name} {unescape(text)}")
        if field is not None and field.kind != "text":
            return self._value(stem, suffix, start, end, field)
        text_field = field.text_field if field else None
        if find_special(raw, ":") >= 0:
            self.reject(start, end, ProblemKind.SECOND_COLON)
            return self.literal(with_colon(raw), text_field)
        if suffix and (not stem or any(map(str.isalpha, suffix))):
            self.reject(start + cut, end, ProblemKind.SUFFIX)
            text = unescape(raw)
            return self.literal(text, text_field, Term) if any(map(str.isalpha, text)) else None
        edits, weight = self.numbers(suffix, start + cut, 1, max(MIN_FUZZY_CHARACTERS))
        wildcard = find_special(stem, "*?")
        is_pattern = len(stem) > 2 and stem[0] == stem[-1] == "/" and stem[-2] != "\\"
        if is_pattern or (edits and not self.has_additions):
            stem, edits = stem.strip("/"), 0
            is_word = not is_pattern or stem.isalnum()
            self.reject(start, end, ProblemKind.ADDITIONS_OFF, mended=is_word)
            if not is_word:
                return None
        elif wildcard >= 0:
            return self._prefix(stem, wildcard, start, end, text_field, weight)
        text = self._unescaped(stem)
        if not has_token(text):
            return self.signs(text, start, end, text_field)
        fuzzy = [lambda: Fuzzy(text, edits, text_field, weight)] if edits else []
        return self.first(start, end, *fuzzy, lambda: Term(text, text_field, weight))

    def _prefix(
        self, raw: str, wildcard: int, start: int, end: int, field: TextField, weight: float
    ) -> Node | None:
        if not raw.strip("*"):
            self.reject(start, end, ProblemKind.BARE_STAR)
            return None
        stem, rest = nfc(self._unescaped(raw[:wildcard])), raw[wildcard:]
        if rest != "*" and self.has_additions and has_token(rest if stem else raw):
            return self._inner_wildcard(raw, stem, start, end, field, weight)
        if rest != "*":
            self.reject(start, end, ProblemKind.WILDCARD, mended=is_prefix(stem))
            return self.literal(stem, field, Prefix, weight) if is_prefix(stem) else None
        tokens = analysis.tokens(stem)
        is_unspaced = bool(tokens) and analysis.is_unspaced(tokens[-1].term)
        is_long = bool(tokens) and letters_of(stem) >= MIN_PREFIX_CHARACTERS
        if is_prefix(stem) or not (tokens[1:] or is_unspaced or is_long):
            return self.first(start, end, lambda: Prefix(stem, field, weight))
        self.reject(start, end, ProblemKind.PREFIX_TOKENS)
        first, last = tokens[0].start, stem[tokens[-1].start :]
        is_cut_off = not is_unspaced and tokens[-1].end == len(stem)
        ends = [first, *(token.end for token in tokens)]
        whole = stem[first : ends[-2 if is_cut_off or is_prefix(last) else -1]]
        word = self.literal(whole, field, Term) if whole else None
        prefix = self.literal(last, field, Prefix, weight) if is_prefix(last) else None
        return all_of(word, prefix) if word and prefix else word or prefix

    def _inner_wildcard(
        self, raw: str, stem: str, start: int, end: int, field: TextField, weight: float
    ) -> Node | None:
        """Reject a word with a wildcard that is not at its end, and return the pattern for it. If
        every match has a prefix or a part of an identifier, it is added as a condition, so that few
        texts are read."""
        pieces = [unescape(piece) for piece in _WILDCARDS.split(raw)]
        words = (_WILDCARD_PATTERNS.get(piece) or literal(piece) for piece in pieces)
        pattern = self.first(start, end, lambda: Regex(rf"\b{''.join(words)}\b", True, field))
        if pattern is None:
            return None
        self.reject(start, end, ProblemKind.INNER_WILDCARD, pattern=str(pattern))
        part = _PART_BEHIND_STAR.fullmatch(raw)
        word = self.literal(part[1], field, Term, weight) if part else None
        if is_prefix(stem):
            word = self.literal(stem, field, Prefix, weight)
        return all_of(word, pattern) if word else pattern

    def signs(self, text: str, start: int, end: int, field: TextField) -> Node | None:
        """Reject a clause without letters or digits; return the pattern for signs of a program,
        such as ``->>``."""
        is_program = self.has_additions and _PROGRAM.fullmatch(text)
        pattern = Regex(literal(text), field=field) if is_program else None
        shown = pattern and str(pattern)
        self.reject(
            start, end, ProblemKind.SIGNS if pattern else ProblemKind.NO_TOKEN, pattern=shown
        )
        return pattern

    # Patterns and phrases

    def regex(
        self, match: re.Match[str], suffix: str, end: int, field: FieldRef | None
    ) -> Node | None:
        """Return the leaf of a pattern, given the ``match`` of the lexer."""
        pattern = match["pattern"]
        if suffix:
            self.reject(end - len(suffix), end, ProblemKind.NO_SCORE)
        if _PATH.fullmatch(pattern) and has_token(pattern):
            self.note(problems.NOTE_PATTERN, piece=match[0], text=pattern.strip("/"))
        text_field = field.text_field if field else None
        start = match.start("pattern") - 1
        return self.first(start, end, lambda: Regex(pattern, bool(match["flag"]), text_field))

    def phrase(
        self, raw: str, suffix: str, start: int, end: int, field: FieldRef | None
    ) -> Node | None:
        """Return the leaf of quoted text with its suffix. ``raw`` includes the quotes."""
        before = raw[:-1]
        is_escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
        inside = raw[1:-1]
        if not before or raw[-1] != '"' or is_escaped:
            self.reject(start, end, ProblemKind.UNCLOSED_QUOTE)
            inside = raw[1:].strip()
        text = self._unescaped(inside)
        is_value = field is not None and field.kind not in ("text", "unknown")
        if not (text if is_value else text.strip()):
            self.reject(start, end, ProblemKind.EMPTY_PHRASE)
            is_unknown = field is not None and field.kind == "unknown"
            return self.literal(field.name) if field and is_unknown else None
        if field is not None and field.kind == "unknown":
            name, field = field.name, self.reject_unknown(field.name, start - len(field.name) - 1)
            if field is None:
                return self.literal(f"{name} {text}")
        if field is not None and field.kind != "text":
            if suffix:
                self.reject(end - len(suffix), end, ProblemKind.NO_SCORE)
            if not field.type.is_ordered and field.type.holds(text):
                return self._keyword(text, field)
            if inside[:1] == "\\":  # a value, and no comparison or range
                kind = field.type.name
                return self.first(start, end, lambda: Range(field.name, kind, text, text))
            return self._value_of(text, start, end, field)
        slop, weight = self.numbers(suffix, end - len(suffix), 0, MAX_SLOP)
        text_field = field.text_field if field else None
        if find_special(inside, "*") >= 0:
            self.reject(start, end, ProblemKind.STAR_IN_PHRASE)
            pieces = [piece.rstrip("?") for piece in inside.split() if has_token(piece)]
            read = (self.word(piece, start + raw.index(piece), field) for piece in pieces)
            words = [word for word in read if word]
            return all_of(*words) if words else None
        if not has_token(text.removeprefix(EXACT_MARK) if self.has_additions else text):
            return self.signs(text, start, end, text_field)
        loose = [lambda: Phrase(text, slop, text_field, weight)] if slop else []
        return self.first(start, end, *loose, lambda: Phrase(text, 0, text_field, weight))

    def numbers(self, suffix: str, start: int, least: int, most: int) -> tuple[int, float]:
        """Return the number and the weight of a suffix such as ``~2^3``; reject any other suffix.
        The number is from ``least`` to ``most``, or 0 without a ``~``."""
        anywhere = _NUMBERS.match(suffix)
        typed, factor = anywhere.groups() if anywhere else ("", "")
        number, weight = int(typed or 0), float(factor or 1)
        kept = (
            min(max(number, least), most) if "~" in suffix else 0,
            weight if MIN_WEIGHT <= weight <= MAX_WEIGHT else 1.0,
        )
        if kept != (number, weight) or _SUFFIX.fullmatch(suffix) is None:
            self.reject(start, start + len(suffix), ProblemKind.SUFFIX)
        return kept

    def literal(
        self,
        text: str,
        field: TextField = None,
        kind: type[Phrase | Term | Prefix] = Phrase,
        weight: float = 1.0,
    ) -> Node | None:
        """Return the leaf of a text in which signs are ordinary characters, if it can be one."""
        try:
            return kind(text, field=field, weight=weight)
        except ArgumentError:
            self.findings.mendable = False
            return None

    def _unescaped(self, raw: str) -> str:
        """Return the text that ``raw`` stands for; note a backslash that does nothing."""
        text = unescape(raw)
        if text is not raw and text not in SPELLED and _LITERAL_BACKSLASH.search(raw):
            self.note(problems.NOTE_BACKSLASH, piece=shortened(raw), text=shortened(text))
        return text

    # Metadata

    def _keyword(self, text: str, field: FieldRef) -> KeywordEquals:
        self.note_guess(field)
        return KeywordEquals(field.name, text)

    def note_guess(self, field: FieldRef) -> None:
        """Note a guessed field: without an index, nobody knows which fields there are."""
        if field.kind == "guess":
            self.note(problems.NOTE_UNCHECKED_FIELD, name=field.name)

    def _value(self, raw: str, suffix: str, start: int, end: int, field: FieldRef) -> Node | None:
        if suffix:
            self.reject(end - len(suffix), end, ProblemKind.NO_SCORE)
        if find_special(raw, "*?") >= 0:
            is_literal = "*" not in raw  # as in an address
            self.reject(
                start, end, ProblemKind.WILDCARD_IN_VALUE, mended=is_literal, name=field.name
            )
            return self._keyword(unescape(raw), field) if is_literal else None
        return self._value_of(self._unescaped(raw), start, end, field)

    def _value_of(self, text: str, start: int, end: int, field: FieldRef) -> Node | None:
        """Return the leaf of one value of a metadata field, or of a comparison with one."""
        self.note_guess(field)
        if field.type.is_ordered:
            text = self._as_meant(text, start, end, field)
            others = list(_ranges(text, field))
        else:
            meant = field.type.meant(text)
            if text[-1:] in COMMAS and text[1:] and not meant:
                self.note(problems.NOTE_COMMA, name=field.name, value=text)
                return any_of(*(self._keyword(value, field) for value in (text, text[:-1])))
            others = [lambda: value_leaf(meant, field)] if meant else list(_ranges(text, field))
        is_range = text[:1] in ("[", "{") and (field.type.is_ordered or field.kind == "guess")
        read = range_leaf if is_range else value_leaf
        return self.first(start, end, lambda: read(text, field), *others)

    def _as_meant(self, text: str, start: int, end: int, field: FieldRef) -> str:
        """Return a value, comparison or range with values in the form of the language. A note says
        what a value was taken for. A time as seen from today is rejected, and its dates take its
        place."""
        match = RANGE.fullmatch(text) or COMPARISON.fullmatch(text) or _VALUE.fullmatch(text)
        assert match is not None
        reported: NodeError | None = None
        for group in (3, 2) if match.re is RANGE else (2,):
            bound = match[group]
            error = None if bound == "*" else field.type.problem(bound, field.name)
            first = last = field.type.meant(bound) if error else ""
            if first:
                self.note(problems.NOTE_VALUE, piece=bound, text=first)
            elif error and (since := field.type.since(bound)):
                first, last = since
                if reported is None:  # once, if both bounds have it
                    self.refuse(start, end, error)
                reported = error
            if not first:
                continue
            if group == 3 or text[0] == "<":
                first = last or first
            elif not match[1] and last != first:
                first = f"[{first} TO {last or '*'}]"
            text = text[: match.start(group)] + first + text[match.end(group) :]
        return text

    def range(
        self, raw: str, suffix: str, start: int, end: int, field: FieldRef | None
    ) -> Node | None:
        """Return the leaf of a range in brackets. ``raw`` starts with the bracket."""
        if field is None or field.kind == "text":
            self.reject(start, end, ProblemKind.RANGE_ON_TEXT, mended=False)
            return None
        if field.kind == "unknown":
            before = start - len(field.name) - 1
            near = self.reject_unknown(field.name, before, mended=False)
            return near and self.range(raw, suffix, start, end, near)
        if suffix:
            self.reject(end - len(suffix), end, ProblemKind.NO_SCORE)
        self.note_guess(field)
        if field.type.is_ordered:
            raw = self._as_meant(raw, start, end, field)
        return self.first(start, end, lambda: range_leaf(raw, field), *_ranges(raw, field))


def _ranges(text: str, field: FieldRef) -> Iterator[Callable[[], Leaf]]:
    """Yield the ranges of ordered values that a text may mean: two values with another sign between
    them, in the other order, or with both."""
    match = _LOOSE_RANGE.fullmatch(text)
    if match is None or not (match[1] or field.type.is_ordered):
        return
    low, high = match[2] or "*", match[3] or "*"
    for opening, closing in ((match[1] or "[", match[4] or "]"), ("[", "]")):
        turned = (closing + opening).translate(_TURNED)
        for ends in (
            f"{opening}{low} TO {high}{closing}",
            f"{turned[0]}{high} TO {low}{turned[1]}",
        ):
            yield lambda ends=ends: range_leaf(ends, field)


def is_no_field(name: str, value: str) -> bool:
    """Return whether a colon belongs to the text, as in an address (http://), a path, a time, or a
    name in a program (std::vector)."""
    return value[:1] in ("/", "\\", ":") or (name[-1:].isdigit() and value[:1].isdigit())


def with_colon(raw: str) -> str:
    """Return the text that a word with a colon stands for, in which a path keeps its backslashes
    (``C:\\\\Users``)."""
    return raw if _LITERAL_BACKSLASH.search(raw) else unescape(raw)

"""One clause of a query, as typed -> its text in the language, or its problems.

Every method returns the text of a clause, or None if there is none; for a rejected clause it
returns the one that a mended query would hold instead.
"""

from __future__ import annotations

import re
from operator import le

from arag_search.corpus import nfc
from arag_search.query import analysis, fragments, problems
from arag_search.query.analysis import (
    has_few_apostrophes,
    has_token,
    is_fuzzy,
    is_prefix,
    letters_of,
)
from arag_search.query.field_types import FieldType
from arag_search.query.fields import FieldRef, Schema
from arag_search.query.fragments import joined
from arag_search.query.grammar import (
    COMMAS,
    COMPARISON,
    LITERAL_BACKSLASH,
    PATH,
    RANGE,
    WEIGHT,
)
from arag_search.query.lexer import find_special, unescape
from arag_search.query.limits import (
    MAX_SLOP,
    MAX_WEIGHT,
    MIN_PREFIX_CHARACTERS,
    MIN_WEIGHT,
)
from arag_search.query.operators import AND, OR, SPELLED
from arag_search.query.printing import with_escaped_slashes
from arag_search.query.problems import Findings, fill, shortened
from arag_search.query.regexes import check_regex, literal
from arag_search.query.tree import EXACT_MARK, Range, TextField

Ends = tuple[str | None, str | None, bool, bool]
"""The bounds of a range, None for an open one, and whether they are included."""

_FUZZY_SUFFIX = re.compile(r"~[\d.]*")
_PROGRAM = re.compile(r"(?=\S*[<>@=|&#$%:~])\S{2,60}")
_WILDCARDS = re.compile(r"(?<!\\)([*?])")
_WILDCARD_PATTERNS = {"*": r"\w*", "?": r"\w"}
_PART_BEHIND_STAR = re.compile(r"\*[._]([^\W\d_]{2,})")
_FINAL_PUNCTUATION = re.compile(r"(?<!\\)\?[?!.,;]*$")
_WEIGHT_SUFFIX = re.compile(rf"\^({WEIGHT})")
_PHRASE_SUFFIX = re.compile(rf"(?:~(\d{{1,9}}))?(?:\^({WEIGHT}))?")
_WRONG_ORDER = re.compile(rf"\^({WEIGHT})~(\d{{1,9}})")
_TWO_VALUES = re.compile(r"([+-]?[\d.]+)\s*(?:-|–|—|\.\.|:)\s*([+-]?[\d.]+)", re.ASCII)
_OPEN_RANGE = re.compile(r"([\[{])\s*((?:[^\s,]+\s+)?)TO((?:\s+[^\s,]+)?)\s*([\]}])")
_LOOSE_RANGE = re.compile(
    r"([\[{])\s*([^\s,]+?)\s*(?:\bto\b|,|-|–|\s)\s*([^\s,]+?)\s*([\]}])", re.I
)


class ClauseReader:
    """A reader of clauses, which records problems and notes in ``findings``.

    With ``has_additions``, a = at the beginning of a phrase is a mark, words may be fuzzy, and what
    is between slashes is a pattern.
    """

    def __init__(self, schema: Schema, findings: Findings, *, has_additions: bool) -> None:
        self.schema = schema
        self.has_additions = has_additions
        self.findings = findings
        self.reject, self.note = findings.reject, findings.note

    def field(self, name: str) -> FieldRef:
        """Return the field of this name."""
        field = self.schema.field(name)
        if field.kind == "guess":
            self.note(problems.NOTE_UNCHECKED_FIELD, name=field.name)
        return field

    def reject_unknown(self, name: str, start: int, *, mended: bool = True) -> None:
        """Record that there is no such field."""
        end, fields = start + len(name) + 1, self.schema.describe()
        self.reject(start, end, problems.UNKNOWN_FIELD, mended=mended, name=name, fields=fields)

    # Words

    def word(self, raw: str, start: int, field: FieldRef | None) -> str | None:
        """Return the leaf of a bare word after its field, with its prefix star and weight."""
        if raw.isalnum() and raw.isascii() and field is None:  # as most words are
            return fragments.word(raw)
        raw = self._without_question_mark(raw)
        if field is not None and field.kind == "unknown":
            clause = start - len(field.name) - 1
            self.reject_unknown(field.name, clause)
            if LITERAL_BACKSLASH.search(raw):  # a path, such as C:\\Users
                return self._phrase_or_none(f"{field.name}:{raw}")
            cut = find_special(raw, "^~*")
            value = unescape(raw if cut < 0 else raw[:cut])
            colon = ":" if is_no_field(field.name, value) else " "
            return self._phrase_or_none(f"{field.name}{colon}{value}")
        if field is not None and field.kind != "text":
            return self._bare_value(raw, start, field)
        return self._text_word(raw, start, field.text_field if field else None)

    def _text_word(self, raw: str, start: int, field: TextField) -> str | None:
        end = start + len(raw)
        colon = find_special(raw, ":")
        if colon >= 0:
            self.reject(start, end, problems.SECOND_COLON)
            return self._phrase_or_none(literal_text(raw), field)
        weight = 1.0
        cut = find_special(raw, "^")
        if cut == 0 and not has_letter(raw):
            self.reject(start, end, problems.WEIGHT_MISPLACED)
            return None
        if cut >= 0:
            weight = self.weight(raw[cut:], start + cut)
            if has_letter(raw[cut:]):
                return self._word_or_none(raw, field)
            raw = raw[:cut]
        cut = find_special(raw, "~")
        if cut >= 0:
            if cut and self.has_additions and find_special(raw[:cut], "*?") < 0:
                return self._fuzzy(raw, cut, start, end, field, weight)
            message = problems.FUZZY if cut else problems.SLOP_MISPLACED
            self.reject(start, end, message)
            if cut and not _FUZZY_SUFFIX.fullmatch(raw, cut):
                return self._word_or_none(raw, field)
            raw = raw[:cut] or raw.strip("~")
            if not cut and not has_letter(raw):
                return None
        if len(raw) > 2 and raw[0] == raw[-1] == "/" and not raw.endswith("\\/"):
            word = raw[1:-1]
            is_word = word.isalnum() and has_token(word)
            self.reject(start, end, problems.REGULAR_EXPRESSION, mended=is_word)
            return fragments.word(word, field, weight) if is_word else None
        wildcard = find_special(raw, "*?")
        if wildcard >= 0:
            return self._prefix(raw, wildcard, start, end, field, weight)
        text = self._unescaped(raw)
        if not has_token(text):
            return self.reject_signs(text, start, end, field)
        return fragments.word(text, field, weight) if self._is_leaf(text, start, end) else None

    def _fuzzy(
        self, raw: str, cut: int, start: int, end: int, field: TextField, weight: float
    ) -> str | None:
        word = nfc(self._unescaped(raw[:cut]))
        suffix = _FUZZY_SUFFIX.fullmatch(raw, cut)
        if suffix is None:
            self.reject(start, end, problems.FUZZY_SYNTAX)
            return self._word_or_none(raw, field)
        is_sound = has_few_apostrophes(word)
        edits = {"~1": 1, "~2": 2}.get(suffix[0], 0) if is_sound else 0
        is_long = is_sound and is_fuzzy(word, edits or 1)
        if not (edits and is_long):
            message = problems.FUZZY_WORD if edits else problems.FUZZY_SYNTAX
            self.reject(start, end, message, mended=has_token(word))
        if is_long:
            return fragments.word(word, field, weight, f"~{edits or 1}")
        return fragments.word(word, field, weight) if has_token(word) else None

    def _prefix(
        self, raw: str, wildcard: int, start: int, end: int, field: TextField, weight: float
    ) -> str | None:
        stem = nfc(self._unescaped(raw[:wildcard]))
        if not has_few_apostrophes(stem):
            self.reject(start, end, problems.TOO_MANY_APOSTROPHES, mended=False)
            return None
        if not raw.strip("*"):
            self.reject(start, end, problems.BARE_STAR)
            return None
        if wildcard < len(raw) - 1 or raw[wildcard] == "?":
            if self.has_additions and has_token(raw[wildcard:] if stem else raw):
                return self._inner_wildcard(raw, stem, start, end, field, weight)
            self.reject(start, end, problems.WILDCARD, mended=is_prefix(stem))
            return fragments.word(stem, field, weight, "*") if is_prefix(stem) else None
        if _has_single_characters(stem):
            self.reject(start, end, problems.PREFIX_UNSPACED)
            return fragments.word(stem, field, weight)
        if letters_of(stem) < MIN_PREFIX_CHARACTERS:
            self.reject(start, end, problems.PREFIX_SHORT, mended=False)
            return None
        if not is_prefix(stem):
            leaves = _split_prefix(stem, field)
            self.reject(start, end, problems.PREFIX_TOKENS, mended=bool(leaves))
            return joined(AND, *leaves) if leaves else None
        return fragments.word(stem, field, weight, "*")

    def _without_question_mark(self, raw: str) -> str:
        """Return the word without a question mark at its end, and record a note on it."""
        if not raw.endswith(("?", "!", ".", ",", ";")):
            return raw
        match = _FINAL_PUNCTUATION.search(raw)
        if match is None or match.start() == 0:
            return raw
        word = raw[: match.start()]
        while word.endswith("?") and not word.endswith("\\?"):
            word = word[:-1]
        self.note(problems.NOTE_QUESTION_MARK, word=unescape(word))
        return word + match.group().replace("?", "")

    # Patterns

    def _inner_wildcard(
        self, raw: str, stem: str, start: int, end: int, field: TextField, weight: float
    ) -> str:
        """Reject a word with a wildcard that is not at its end; return the pattern for it, and the
        prefix or part of an identifier that every match has, so that few texts are read."""
        pieces = [unescape(piece) for piece in _WILDCARDS.split(raw)]
        words = (_WILDCARD_PATTERNS.get(piece) or literal(piece) for piece in pieces)
        pattern = fragments.pattern(rf"\b{''.join(words)}\b", True, field)
        self.reject(start, end, fill(problems.INNER_WILDCARD, pattern=pattern), mended=True)
        if is_prefix(stem):
            return joined(AND, fragments.word(stem, field, weight, "*"), pattern)
        part = _PART_BEHIND_STAR.fullmatch(raw)
        return joined(AND, fragments.word(part[1], field, weight), pattern) if part else pattern

    def reject_signs(self, text: str, start: int, end: int, field: TextField) -> str | None:
        """Reject a clause without letters or digits; return the pattern for signs of a program."""
        pattern = self._pattern_of(text, field)
        message = problems.NO_TOKEN
        if pattern is not None:
            message = fill(problems.SIGNS, pattern=pattern)
        self.reject(start, end, message)
        return pattern

    def _pattern_of(self, text: str, field: TextField) -> str | None:
        """Return the pattern that finds signs of a program, such as ``->>``; None for
        punctuation."""
        is_program = self.has_additions and _PROGRAM.fullmatch(text)
        return fragments.pattern(literal(text), field=field) if is_program else None

    def regex(
        self, match: re.Match[str], suffix: str, end: int, field: FieldRef | None
    ) -> str | None:
        """Return the leaf of a pattern; ``match`` is that of the lexer."""
        pattern, start = match["pattern"], match.start("pattern") - 1
        if suffix:
            self.reject(end - len(suffix), end, problems.WEIGHT_ON_PATTERN)
        try:
            check_regex(with_escaped_slashes(nfc(pattern)), bool(match["flag"]))
        except ValueError as error:
            self.reject(
                start, end, problems.BAD_PATTERN, error=str(error).rstrip("."), mended=False
            )
            return None
        if PATH.fullmatch(pattern) and has_token(pattern):
            text = pattern.strip("/")
            self.note(problems.NOTE_PATTERN, piece=match[0], text=text)
        text_field = field.text_field if field else None
        return fragments.pattern(pattern, bool(match["flag"]), text_field)

    # Phrases

    def phrase(
        self, raw: str, suffix: str, start: int, end: int, field: FieldRef | None
    ) -> str | None:
        """Return the leaf of quoted text with its suffix. ``raw`` includes the quotes."""
        closed = len(raw) > 1 and raw.endswith('"') and not _ends_escaped(raw)
        inside = raw[1:-1] if closed else raw[1:]
        if not closed:
            self.reject(start, end, problems.UNCLOSED_QUOTE)
            inside = inside.strip()
        if field is not None and field.kind == "unknown":
            self.reject_unknown(field.name, start - len(field.name) - 1)
            return self._phrase_or_none(f"{field.name} {unescape(inside)}")
        slop, weight = self._phrase_suffix(suffix, end - len(suffix))
        text = self._unescaped(inside)
        if field is not None and field.kind != "text":
            if slop or weight != 1:
                message = problems.WEIGHT_ON_FILTER if weight != 1 else problems.SLOP_MISPLACED
                self.reject(end - len(suffix), end, message)
            if text and not field.type.is_ordered and field.type.holds(text):
                return fragments.keyword(field.name, text)
            return self.value(text, start, end, field)
        text_field = field.text_field if field else None
        if not text.strip():
            self.reject(start, end, problems.EMPTY_PHRASE)
            return None
        if find_special(inside, "*") >= 0 and has_few_apostrophes(text):
            words = self._starred(inside, text_field)
            self.reject(start, end, problems.STAR_IN_PHRASE, mended=words is not None)
            return words
        words = text.removeprefix(EXACT_MARK) if self.has_additions else text
        if not has_token(words):
            return self.reject_signs(text, start, end, text_field)
        if not self._is_leaf(words, start, end):
            return None
        if slop and len(analysis.terms(text)) < 2:
            self.reject(start, end, problems.SLOP_ON_ONE_WORD)
            slop = 0
        return fragments.phrase(text, slop, text_field, weight)

    def _starred(self, inside: str, field: TextField) -> str | None:
        """Return the words of a phrase with stars, joined by AND; None if a star is no prefix."""
        words: list[str] = []
        for raw in inside.split():
            star = find_special(raw, "*")
            text = unescape(raw if star < 0 else raw[:star])
            if star < 0 and has_token(text):
                words.append(fragments.word(text, field))
            elif star == len(raw) - 1 and is_prefix(nfc(text)):
                words.append(fragments.word(text, field, ending="*"))
            elif star >= 0:
                return None
        return joined(AND, *words) if words else None

    def _phrase_suffix(self, suffix: str, start: int) -> tuple[int, float]:
        if not suffix:
            return 0, 1.0
        end = start + len(suffix)
        suffix = suffix.rstrip("?")
        match = _PHRASE_SUFFIX.fullmatch(suffix)
        if match is None:
            swapped = _WRONG_ORDER.fullmatch(suffix)
            if swapped:
                self.reject(start, end, problems.WEIGHT_BEFORE_SLOP)
                return self._slop(swapped[2], start, end), float(swapped[1])
            if suffix[0] == "~" and ("^" not in suffix or not re.match(r"~\d", suffix)):
                self.reject(start, end, problems.SLOP_SYNTAX)
                return 0, 1.0
            cut = suffix.index("^")
            return 0, self.weight(suffix[cut:], start + cut)
        slop = self._slop(match[1], start, end) if match[1] else 0
        weight = float(match[2] or 1)
        if MIN_WEIGHT <= weight <= MAX_WEIGHT:
            return slop, weight
        cut = suffix.find("^")
        return slop, self.weight(suffix[cut:], start + cut)

    def _slop(self, digits: str, start: int, end: int) -> int:
        slop = int(digits)
        if slop > MAX_SLOP:
            self.reject(start, end, problems.SLOP_RANGE, slop=slop)
            return MAX_SLOP
        return slop

    def weight(self, suffix: str, start: int) -> float:
        """Return the weight in ``suffix`` (``^2``); 1.0 if it is rejected."""
        end = start + len(suffix)
        match = _WEIGHT_SUFFIX.fullmatch(suffix)
        if match is None:
            if suffix.count("^") > 1:
                self.reject(start, end, problems.WEIGHT_REPEATED, mended=False)
            elif "~" in suffix:
                self.reject(start, end, problems.WEIGHT_BEFORE_SLOP, mended=False)
            else:
                self.reject(start, end, problems.WEIGHT_SYNTAX)
            return 1.0
        weight = float(match[1])
        if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            self.reject(start, end, problems.WEIGHT_RANGE, weight=weight)
            return 1.0
        return weight

    def _phrase_or_none(self, text: str, field: TextField = None) -> str | None:
        if is_searchable(text):
            return fragments.phrase(text, field=field)
        self.findings.mendable = False
        return None

    def _word_or_none(self, raw: str, field: TextField) -> str | None:
        """Return the leaf of a word as typed, in which signs are ordinary characters."""
        text = unescape(raw)
        return fragments.word(text, field) if is_searchable(text) else None

    # Texts

    def _unescaped(self, raw: str) -> str:
        """Return the text that ``raw`` stands for; note a backslash that does nothing."""
        text = unescape(raw)
        if text is not raw and text not in SPELLED and LITERAL_BACKSLASH.search(raw):
            self.note(problems.NOTE_BACKSLASH, piece=shortened(raw), text=shortened(text))
        return text

    def _is_leaf(self, text: str, start: int, end: int) -> bool:
        """Return whether a word or phrase of this text can be searched; if not, record why."""
        if has_few_apostrophes(text):
            return True
        self.reject(start, end, problems.TOO_MANY_APOSTROPHES, mended=False)
        return False

    # Metadata

    def _bare_value(self, raw: str, start: int, field: FieldRef) -> str | None:
        end = start + len(raw)
        cut = find_special(raw, "^~")
        if cut >= 0:
            message = problems.WEIGHT_ON_FILTER if raw[cut] == "^" else problems.SLOP_MISPLACED
            self.reject(start + cut, end, message)
            raw = raw[:cut]
        if find_special(raw, "*?") >= 0:
            message = fill(problems.PREFIX_ON_KEYWORD, name=field.name)
            is_address = "://" in raw and field.type.holds(raw)
            self.reject(start, end, message, mended=is_address)
            return fragments.keyword(field.name, unescape(raw)) if is_address else None
        return self.value(self._unescaped(raw), start, end, field)

    def value(self, text: str, start: int, end: int, field: FieldRef) -> str | None:
        """Return the leaf of one value of a metadata field, or of a comparison with one."""
        comparison = COMPARISON.fullmatch(text)
        kind = field.type_of_range(comparison[2]) if comparison else field.type
        if text[:1] in ("[", "{") and (kind.is_ordered or field.kind == "guess"):
            self.reject(start, end, problems.RANGE_SYNTAX, name=field.name, mended=False)
            return None
        if not kind.is_ordered:
            if not text:
                self.reject(start, end, problems.EMPTY_FIELD, name=field.name)
                return None
            if comparison:
                self.reject(start, end, kind.no_range(field.name), mended=False)
                return None
            if message := kind.problem(text, field.name):
                meant = kind.meant(text)
                self.reject(start, end, message, mended=bool(meant))
                return fragments.keyword(field.name, meant) if meant else None
            if text[-1] in COMMAS and (without := text[:-1]):
                self.note(problems.NOTE_COMMA, name=field.name, value=text)
                return joined(
                    OR, fragments.keyword(field.name, text), fragments.keyword(field.name, without)
                )
            return fragments.keyword(field.name, text)
        if comparison:
            sign, bound = comparison[1], comparison[2]
            lower, upper = (bound, None) if sign[0] == ">" else (None, bound)
            return self._bounds(field, kind, (lower, upper, "=" in sign, "=" in sign), start, end)
        two = _TWO_VALUES.fullmatch(text)
        if two and not kind.holds(text) and all(map(kind.holds, two.groups())):
            self.reject(start, end, kind.problem(text, field.name))
            return self._bounds(field, kind, (two[1], two[2], True, True), start, end)
        return self._bounds(field, kind, (text, text, True, True), start, end)

    def range(
        self, raw: str, suffix: str, start: int, end: int, field: FieldRef | None
    ) -> str | None:
        """Return the leaf of a range in brackets. ``raw`` starts with the bracket."""
        if field is None:
            self.reject(start, end, problems.RANGE_WITHOUT_FIELD, mended=False)
            return None
        if field.kind == "unknown":
            self.reject_unknown(field.name, start - len(field.name) - 1, mended=False)
            return None
        if field.kind == "text":
            self.reject(start, end, problems.RANGE_ON_TEXT, mended=False)
            return None
        if suffix.strip("?"):
            message = problems.WEIGHT_ON_FILTER if "^" in suffix else problems.SLOP_MISPLACED
            self.reject(end - len(suffix), end, message)
        if not field.type.is_ordered and field.kind != "guess":
            self.reject(start, end, field.type.no_range(field.name), mended=False)
            return None
        match = RANGE.fullmatch(raw)
        if match is None:
            match = _OPEN_RANGE.fullmatch(raw) or _LOOSE_RANGE.fullmatch(raw)
            message = fill(problems.RANGE_SYNTAX, name=field.name)
            self.reject(start, end, message, mended=match is not None)
            if match is None:
                return None
        lower, upper = (
            None if match[at].strip() in ("*", "") else match[at].strip() for at in (2, 3)
        )
        kind = field.type_of_range(lower or upper)
        if not kind.is_ordered:
            self.reject(start, end, problems.RANGE_SYNTAX, name=field.name, mended=False)
            return None
        ends = lower, upper, match[1] == "[", match[4] == "]"
        return self._bounds(field, kind, ends, start, end)

    def _bounds(
        self, field: FieldRef, kind: FieldType, ends: Ends, start: int, end: int
    ) -> str | None:
        lower, upper, include_lower, include_upper = ends
        is_value, reported = lower == upper, ""
        for at, bound in enumerate((lower, upper)):
            if bound is None or not (message := kind.problem(bound, field.name)):
                continue
            since = kind.since(bound)
            if meant := kind.meant(bound):
                self.note(problems.NOTE_VALUE, piece=bound, text=meant)
                since = meant, meant
            elif since is None or message != reported:  # once, if both bounds have it
                self.reject(start, end, message, mended=since is not None)
                reported = message
            if since is None:
                return None
            if at:
                upper = since[1] or (None if is_value else since[0])
            else:
                lower = since[0]
        ends = lower, upper, include_lower, include_upper
        turned = (upper, lower, include_upper, include_lower)
        closed = ((lower, upper, True, True), (upper, lower, True, True))  # nothing is between
        meant = next(at for at in (ends, turned, *closed) if le(*kind.interval(*at)))
        node = Range(field.name, kind.name, *meant)
        if meant is not ends:
            self.reject(start, end, problems.RANGE_UPSIDE_DOWN, fixed=node)
        return fragments.between(node)


def is_searchable(text: str) -> bool:
    """Return whether a leaf can be made of the text."""
    return has_token(text) and has_few_apostrophes(text)


def is_no_field(name: str, value: str) -> bool:
    """Return whether a colon belongs to the text: of an address (http://), a path, a time, or a
    name of a program (std::vector)."""
    return value[:1] in ("/", "\\", ":") or (name[-1:].isdigit() and value[:1].isdigit())


def _has_single_characters(text: str) -> bool:
    """Return whether a text ends in a script without blanks, each of whose characters is a word."""
    last = next(reversed(analysis.tokens(text)), None)
    return last is not None and last.end == len(text) and analysis.is_unspaced(last.term)


def _split_prefix(stem: str, field: TextField) -> list[str]:
    """Return the whole words of the stem of a prefix that is several words, as a phrase, and the
    last word as a prefix if it is one."""
    tokens = analysis.tokens(stem)
    is_open = bool(tokens) and tokens[-1].end == len(stem)
    last = stem[tokens.pop().start :] if is_open else ""
    whole = stem[tokens[0].start : tokens[-1].end] if tokens else ""
    leaves: list[str] = [fragments.word(whole, field)] if is_searchable(whole) else []
    return [*leaves, *([fragments.word(last, field, ending="*")] if is_prefix(last) else [])]


def has_letter(text: str) -> bool:
    """Return whether the text has a letter."""
    return any(map(str.isalpha, text))


def _ends_escaped(raw: str) -> bool:
    before = raw[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def literal_text(raw: str) -> str:
    """Return the text that a word with a colon stands for, in which a path keeps its backslashes
    (``C:\\\\Users``)."""
    return raw if LITERAL_BACKSLASH.search(raw) else unescape(raw)

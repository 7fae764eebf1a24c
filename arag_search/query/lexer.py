"""Splitting query text into lexemes: words, phrases, patterns, ranges and parentheses, with their
offsets.

One pass, O(len(text)). The lexer judges nothing: malformed input (an open quote, a backslash at the
end) becomes a lexeme too; the parser rejects it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast

Kind = Literal["word", "phrase", "regex", "range", "open", "close", "backslash"]

REGEX = re.compile(
    r"""(?P<signs>[-!+]*)(?:(?P<name>title|content):)?
        /(?P<pattern>(?![\s/])(?:[^\\]|\\.)+?)(?:(?<!\s)|(?<=\\\s))/(?P<flag>i?)
        (?P<end>[?!.,;]*)(?=[\s)^~]|$)""",
    re.VERBOSE | re.DOTALL,
)
"""A pattern between slashes with the signs and the field before it, and punctuation after it."""
PATTERN = re.sub(r"\(\?P<\w+>", "(?:", REGEX.pattern)
"""The same without groups, as a part of verbose expressions."""
_LEXEME = re.compile(
    r"""\s*+(?:
        (?P<open>\()
      | (?P<close>\))
      | (?P<phrase>"[^"\\]*+(?:\\.[^"\\]*+)*"?)
      | (?P<range>(?:[-!]*+[^\W\d][\w.-]*+:)?[\[{][^\[\]{}()"\\]*[\]}](?=[\s()"^~?]|$))
      | (?P<word>(?:[^\s()"\\]++|\\.)+)
      | (?P<backslash>\\))""",
    re.VERBOSE | re.DOTALL,
)
_SUFFIX = re.compile(r"[~^][^\s()\"\\]*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"\\.|([:^~*?])", re.DOTALL)
_BARE_RANGE = re.compile(r"[\[{]\s*\S+\s+TO\s+\S+\s*[\]}]")


class Lexeme(NamedTuple):
    """A piece of query text with its offsets.

    ``raw`` is ``text[start:end]`` without ``suffix``, the ``~2^3`` that directly follows a phrase,
    pattern, range or parenthesis. ``joined`` says that nothing separates it from the lexeme before
    it.
    """

    kind: Kind
    start: int
    end: int
    raw: str
    suffix: str
    joined: bool


def lex(text: str, *, patterns: bool = True) -> list[Lexeme]:
    """Return all lexemes of the text, in order. Only blanks are between them. Without
    ``patterns``, slashes are ordinary characters."""
    result: list[Lexeme] = []
    patterns = patterns and "/" in text
    position = 0
    # The alternatives cover every character, so only blanks at the end match nothing.
    while match := _LEXEME.match(text, position):
        kind = cast(Kind, match.lastgroup)
        start, end = match.span(kind)
        if patterns and kind == "word" and (regex := REGEX.match(text, start)):
            kind, end = "regex", regex.end()
        if kind == "range" and not _is_range(text[start:end]):
            word = _WORD.match(text, start)
            kind, end = "word", word.end() if word else end
        suffix = ""
        raw = text[start:end]
        if text[end : end + 1] in _SUFFIX_SIGNS and kind in _WITH_SUFFIX:
            suffix_match = _SUFFIX.match(text, end)
            if suffix_match:
                suffix, end = suffix_match.group(), suffix_match.end()
        # The first lexeme has nothing before it to be joined to.
        joined = start == position and start > 0
        result.append(Lexeme(kind, start, end, raw, suffix, joined))
        position = end
    return result


_WORD = re.compile(r'(?:[^\s()"\\]|\\.)+', re.DOTALL)
_WITH_SUFFIX = frozenset({"phrase", "close", "range", "regex"})
_SUFFIX_SIGNS = ("~", "^")


def _is_range(raw: str) -> bool:
    """Return whether brackets are a range: after a field always, alone only with a TO inside."""
    return ":" in raw.split("[", 1)[0].split("{", 1)[0] or bool(_BARE_RANGE.fullmatch(raw))


def unescape(raw: str) -> str:
    """Return the text that ``raw`` stands for: without backslashes, but with what they escape."""
    return _ESCAPE.sub(r"\1", raw) if "\\" in raw else raw


def find_special(raw: str, characters: str) -> int:
    """Return the index of the first unescaped one of the characters (of ``:^~*?``), -1 for none."""
    if "\\" not in raw:
        first = -1
        for character in characters:
            at = raw.find(character)
            if at >= 0 and (first < 0 or at < first):
                first = at
        return first
    for match in _SPECIAL.finditer(raw):
        if match.group(1) and match.group(1) in characters:
            return match.start()
    return -1


def pattern_start(text: str, number: int) -> int:
    """Return the offset of a pattern of a query, counted from 0; 0 if it has fewer."""
    starts = [lexeme.start for lexeme in lex(text) if lexeme.kind == "regex"]
    if number >= len(starts):
        return 0
    match = REGEX.match(text, starts[number])
    return starts[number] if match is None else match.end("signs")

"""Splitting query text into lexemes: words, phrases, patterns, ranges and parentheses, with their
offsets.

One pass, O(len(text)). The lexer judges nothing: malformed input (an open quote, a backslash at the
end) becomes a lexeme too; the parser rejects it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal, NamedTuple, cast

LexemeKind = Literal["plain", "word", "phrase", "regex", "range", "open", "close", "backslash"]

REGEX = re.compile(
    r"""(?P<signs>[-!+]*)(?:(?P<name>title|content):)?
        /(?P<pattern>(?![\s/])(?:[^\\]|\\.)+?)(?:(?<!\s)|(?<=\\\s))/(?P<flag>i?)
        (?P<end>[?!.,;]*)(?=[\s)^~]|$)""",
    re.VERBOSE | re.DOTALL,
)
"""A pattern between slashes with the signs and the field before it, and punctuation after it."""
PATTERN = re.sub(r"\(\?P<\w+>", "(?:", REGEX.pattern)
"""The same without groups, as a part of verbose expressions."""
_SUFFIX = r'(?:[~^][^\s()"\\]*)?'
_INSIDE = r'[^\[\]{}()"\\]*'
_LEXEMES = rf"""(?P<plain>[A-Za-z0-9]++(?=[\s)]|$))
    | (?P<open>\()
    | (?P<close>\)){_SUFFIX}
    | (?P<phrase>"[^"\\]*+(?:\\.[^"\\]*+)*"?){_SUFFIX}
    | (?P<range>(?:[-!]*+[^\W\d][\w.-]*+:[\[{{]|[\[{{](?=\s*[^\s\]}}]+\s+TO\s+[^\s\]}}]+\s*[\]}}]))
        {_INSIDE}[\]}}](?=[\s()"^~]|$)){_SUFFIX}
    | (?P<word>(?:[^\s()"\\]++|\\.)+)
    | (?P<backslash>\\)"""
"""All characters but blanks are part of one. Brackets are a range after a field, and alone if a TO
is inside. Most words are plain: letters and digits of ASCII."""
_SCANNER = re.compile(_LEXEMES, re.VERBOSE | re.DOTALL)
_SCANNER_WITH_PATTERNS = re.compile(
    rf"(?P<regex>{PATTERN}){_SUFFIX} | {_LEXEMES}", re.VERBOSE | re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"\\.|([:^~*?])", re.DOTALL)


class Lexeme(NamedTuple):
    """A piece of query text with its offsets.

    ``raw`` is ``text[start:end]`` without ``suffix``, the ``~2^3`` that directly follows a phrase,
    pattern, range or parenthesis. ``joined`` says that nothing separates it from the lexeme before
    it.
    """

    kind: LexemeKind
    start: int
    end: int
    raw: str
    suffix: str
    joined: bool


_made: Any = partial(cast(Any, tuple).__new__, Lexeme)  # Lexeme() takes twice as long


def lex(text: str, *, patterns: bool = True) -> list[Lexeme]:
    """Return all lexemes of the text, in order. Only blanks are between them. Without
    ``patterns``, slashes are ordinary characters."""
    scanner = _SCANNER_WITH_PATTERNS if patterns and "/" in text else _SCANNER
    lexemes: list[Lexeme] = []
    end_before = 0
    for match in scanner.finditer(text):
        kind: Any = match.lastgroup
        start, end = match.span()
        raw, suffix = match[0], ""
        if kind not in ("plain", "word", "open"):
            raw = match[kind]
            suffix = text[start + len(raw) : end]
        lexemes.append(_made((kind, start, end, raw, suffix, start == end_before > 0)))
        end_before = end
    return lexemes


def unescape(raw: str) -> str:
    """Return the text of ``raw`` without backslashes, but with the characters that they escape."""
    return _ESCAPE.sub(r"\1", raw) if "\\" in raw else raw


def find_special(raw: str, characters: str) -> int:
    """Return the index of the first unescaped one of the characters (of ``:^~*?``), -1 for none."""
    if len(characters) == 1 and "\\" not in raw:
        return raw.find(characters)
    for match in _SPECIAL.finditer(raw):
        if match.group(1) and match.group(1) in characters:
            return match.start()
    return -1

"""Query text -> lexemes: words, phrases, ranges, parentheses, each with its place.

One pass, O(len(text)). Nothing is judged here; what is odd (an open quote, a backslash at the end)
is a lexeme like the others, for the parser to refuse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "phrase", "range", "open", "close", "backslash"]

_LEXEME = re.compile(
    r"""(?P<space>\s+)
      | (?P<open>\()
      | (?P<close>\))
      | (?P<phrase>"(?:[^"\\]|\\.)*"?)
      | (?P<range>(?:[-!]*[^\W\d][\w.-]*:)?[\[{][^\[\]{}()"\\]*[\]}](?=[\s()"^~?]|$))
      | (?P<word>(?:[^\s()"\\]|\\.)+)
      | (?P<backslash>\\)""",
    re.VERBOSE | re.DOTALL,
)
_SUFFIX = re.compile(r"[~^][^\s()\"\\]*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"\\.|([:^~*?])", re.DOTALL)
_BARE_RANGE = re.compile(r"[\[{]\s*\S+\s+TO\s+\S+\s*[\]}]")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """``raw`` is ``text[start:end]`` without ``suffix``, the ``~2^3`` that directly follows a
    phrase, range or parenthesis. ``joined``: nothing stands between it and the lexeme before."""

    kind: Kind
    start: int
    end: int
    raw: str
    suffix: str
    joined: bool


def lex(text: str) -> list[Lexeme]:
    """All lexemes of the text, in order; joined by their gaps they are the text."""
    result: list[Lexeme] = []
    position = 0
    joined = False
    while position < len(text):
        match = _LEXEME.match(text, position)
        assert match is not None  # the alternatives cover every character
        kind = match.lastgroup
        end = match.end()
        if kind == "space":
            position, joined = end, False
            continue
        raw = match.group()
        if kind == "range" and not _is_range(raw):
            match = _LEXEME_WORD.match(text, position)
            assert match is not None
            kind, raw, end = "word", match.group(), match.end()
        suffix = ""
        if kind in ("phrase", "close", "range"):
            found = _SUFFIX.match(text, end)
            if found:
                suffix, end = found.group(), found.end()
        result.append(Lexeme(_KINDS[kind or ""], position, end, raw, suffix, joined))
        position, joined = end, True
    return result


_LEXEME_WORD = re.compile(r'(?:[^\s()"\\]|\\.)+', re.DOTALL)
_KINDS: dict[str, Kind] = {
    "word": "word",
    "phrase": "phrase",
    "range": "range",
    "open": "open",
    "close": "close",
    "backslash": "backslash",
}


def _is_range(raw: str) -> bool:
    """Brackets after a field are a range, well-formed or not; alone, only with TO between."""
    return ":" in raw.split("[", 1)[0].split("{", 1)[0] or bool(_BARE_RANGE.fullmatch(raw))


def unescape(raw: str) -> str:
    """The text that ``raw`` stands for: each backslash gone, what follows it kept."""
    return _ESCAPE.sub(r"\1", raw) if "\\" in raw else raw


def find_special(raw: str, characters: str) -> int:
    """Index of the first of the characters (of ``:^~*?``) that has no backslash; -1 for none."""
    for match in _SPECIAL.finditer(raw):
        if match.group(1) and match.group(1) in characters:
            return match.start()
    return -1

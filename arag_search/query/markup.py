r"""Marks of markup, which the words of a text are read without: ``**Wärme**pumpe`` is one word.

Passages show what the source has, and patterns and words as written search that. Only normal forms
of words leave marks out, and their places are places in the source. Marks within words are read in
Markdown (``max\_result``, ``M&uuml;ller``, ``H~2~O``), reStructuredText (``**bold**\ ness``) and
TeX (``M{\"u}ller``). In subtitles, numbers and times of cues, and tags are marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape
from typing import NamedTuple

from arag_search.corpus import TextKind


class Unmarked(NamedTuple):
    """A text without its marks. ``starts`` and ``ends`` have the offsets in the text with marks of
    each character and behind it."""

    text: str
    starts: list[int]
    ends: list[int]

    def placed(self, words: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Return words with their offsets in the text with marks."""
        return [(word, self.starts[start], self.ends[end - 1]) for word, start, end in words]


def pieces(text: str, kind: TextKind) -> Iterator[re.Match[str]]:
    """Yield the pieces between white space; a mark that holds some is in one piece. No word reaches
    over a piece."""
    return _PIECES.get(kind, _PIECE).finditer(text)


def split(text: str, kind: TextKind) -> list[str]:
    """Return the texts of ``pieces``."""
    return _PIECES[kind].findall(text) if kind in _PIECES else text.split()


def has_marks(text: str, kind: TextKind) -> bool:
    """Return whether a text may have marks."""
    return kind in _MARKS and _SIGN.search(text) is not None


def unmarked(piece: str, kind: TextKind) -> Unmarked | None:
    """Return a piece without its marks; None if it has none. O(len(piece))."""
    edits = [] if kind == "markdown" and "`" in piece else [*_edits(piece, kind)]  # code has none
    if not edits:
        return None
    texts, starts, ends, at = list[str](), list[int](), list[int](), 0
    for start, end, meant in (*edits, (len(piece), len(piece), "")):
        texts += (piece[at:start], meant)
        starts += (*range(at, start), *[start] * len(meant))
        ends += (*range(at + 1, start + 1), *[end] * len(meant))
        at = end
    return Unmarked("".join(texts), starts, ends)


def _edits(piece: str, kind: TextKind) -> Iterator[tuple[int, int, str]]:
    """Yield the stretches of a piece that mean something else, in order, with what they mean."""
    for mark in _MARKS[kind].finditer(piece):
        name = mark.lastgroup or ""
        inner = mark[name] if name else ""
        match name.rstrip("_"):
            case "word":  # between signs of emphasis
                yield mark.start(), mark.start(name), ""
                yield mark.end(name), mark.end(), ""
                continue
            case "raised":
                meant = inner.translate(_RAISED)
            case "lowered":
                meant = inner.translate(_LOWERED)
            case "base":
                meant = unicodedata.normalize("NFC", inner + _ACCENTS[mark["accent"]])
            case "entity":
                meant = unescape(inner)
            case _:
                meant = _LETTERS.get(inner, inner)
        if meant != mark[0]:
            yield *mark.span(), meant


_SIGN = re.compile(r"[\\&~^*<{:]")
"""A text without any of these has no marks: each mark, and the time of a cue, has one."""
_TIME = r"(?:\d+:)?\d\d:\d\d[.,]\d{1,3}"
_CUE = rf"(?m:^(?:\d{{1,6}}[ \t]*\n)?{_TIME}[ \t]*-->[ \t]*{_TIME}.*$)"
_FONT = r"<font [^<>\n]*>"
_PIECE = re.compile(r"\S+")
_PIECES = {
    "rst": re.compile(r"(?:\\ (?=\S)|\S)+"),
    "tex": re.compile(r"(?:\\(?:[\"'`^~=.uvHtcdbkr]|aa|AA|ae|AE|oe|OE|ss|[oOlLij]) (?=\w)|\S)+"),
    "subtitles": re.compile(rf"{_CUE}|(?:{_FONT}|\S)+"),
}
_ENTITY = r"(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
_ESCAPED = r"(?<=\w)\\(?P<sign>[!-/:-@\[-`{-~])(?=\w)"
_IN_TAGS = r"b|i|u|s|em|strong|span|mark|small|big|del|ins|font|kbd|wbr"
_EMPHASISED = r"(?P<word{0}>[^\W\d_][^\s*]{{1,60}})(?P=run{0})"
_MARKS = {
    "markdown": re.compile(
        rf"{_ENTITY}|</?(?:{_IN_TAGS})\b[^<>\s]*>|{_ESCAPED}"
        r"|<sup>(?P<raised>[+-]?\d{1,6})</sup>|<sub>(?P<lowered>\d{1,6})</sub>"
        r"|(?<=\w)\^(?P<raised_>[+-]?\d{1,6})\^|(?<=\w)~(?P<lowered_>\d{1,6})~"
        rf"|(?<![\w*])(?P<run>\*{{1,3}}){_EMPHASISED.format('')}(?=\w)"
        rf"|(?<=\w)(?P<run_>\*{{1,3}}){_EMPHASISED.format('_')}(?!\*)"
    ),
    "rst": re.compile(
        r"\\ :sup:`(?P<raised>[+-]?\d{1,6})`(?:\\ )?|\\ :sub:`(?P<lowered>\d{1,6})`(?:\\ )?"
        rf"|(?:\*{{1,2}}|`{{1,2}}_{{0,2}})?\\ (?:\*{{1,2}}|:[\w-]{{1,40}}:`|`{{1,2}})?|{_ESCAPED}"
    ),
    "tex": re.compile(
        r"\{?\\(?P<accent>[\"'`^~=.]|[uvHtcdbkr](?=[ {])) ?\{?\\?(?P<base>[A-Za-z])\}?\}?"
        r"|\{?\\(?P<letter>aa|AA|ae|AE|oe|OE|ss|[oOlLij])(?![A-Za-z])(?:\{\}| (?=\w))?\}?"
        r"|\\(?:text(?:bf|it|sc|tt|rm|sf)|emph|underline|mbox)\{|\\-|\\(?P<sign>[_&%$#])"
        r"|(?P<command>\\[A-Za-z]+\*?\{?)"
        r"|(?<=\w)\}(?=\w)|(?<=[^\W_])\{(?=[^\W_]+\})"
    ),
    "subtitles": re.compile(
        rf"{_CUE}|<{_TIME}>|<v(?:\.[\w.]*)?\Z|{_FONT}|</?[A-Za-z][^<>\s]*>|\{{\\[^{{}}\s]*\}}|{_ENTITY}"
    ),
}
"""A match without a group is left out; a group is read by its name."""
_RAISED = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_ACCENTS = {
    '"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "t": "\u0361", "c": "\u0327",
    "d": "\u0323", "b": "\u0331", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
_LETTERS: dict[str, str] = {
    "aa": "å", "AA": "Å", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "ss": "ß", "o": "ø",
    "O": "Ø", "l": "ł", "L": "Ł",
}  # fmt: skip

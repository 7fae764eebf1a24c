"""Signs that people and programs type in place of those of the query language: of full width, curly
or escaped quotes, minus signs, marks that cannot be seen.

They become the signs that they stand for, one character for one, so that offsets stay; each kind is
noted. Phrases in straight quotes and what a backslash makes ordinary stay as they are.
"""

from __future__ import annotations

import re

from arag_search.query.fields import Schema, is_field_name
from arag_search.query.problems import NOTE_QUOTES, NOTE_SIGNS, fill, shortened

_FULL_WIDTH = {0xFEE0 + ascii_sign: ascii_sign for ascii_sign in range(0x21, 0x7F)}
OPENING_QUOTES = "'‘‚‹“„«»〝「『《"
DASHES = "−‐‑–"
_CLOSING = r"""["”“»«〞〟」』》＂]|\\" """.strip()
_ENDS = r"(?=[\s)）~～^＾?？!！.,;:，。；、]|$)"
INVISIBLE = "\ufeff\u200b\u2060\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

_NEEDED = re.compile(
    rf"[\uff01-\uff5e{OPENING_QUOTES[1:]}”〞〟」』》’›{DASHES}{INVISIBLE}]|(?<!\w)'|\\\""
)
"""A text without any of these has no such sign. An apostrophe after a letter opens no quote."""

SIGNS = "（）：＊＾～［］｛｝＂＜＞＝＋－！｜＆"
"""Signs that a backslash keeps as they are."""

_PIECE = rf"""(?P<quoted>(?:(?<=[\s(（])|^)(?P<before>[-!+－！−–]*(?:[^\W\d][\w.-]*[:：])?)(?:
            (?P<double>[“„«»〝「『《＂]|\\"(?!\\))(?P<text>[^"“”„«»〝〞〟「」『』《》＂\\]+)
            (?P<close>{_CLOSING})
          | (?P<single>['‘‚‹])(?P<words>[^\s'"][^"'‘’‚‹›]*(?:(?<=\w)['’](?=\w)[^"'‘’‚‹›]*)*)
            (?P<end>['’‘›])){_ENDS})
      | (?P<phrase>"(?:[^"\\]|\\.)*"?)
      | (?P<escaped>\\.)
      | (?:(?<=[:：])[［｛\[{{][^\[\]{{}}［］｛｝()"\\]*[］｝\]}}])
      | (?<![\w.-])(?P<name>[^\W\d][\w.-]*)：
      | (?P<word>(?<![^\s(（])(?:ＡＮＤ|ＯＲ|ＮＯＴ|＆＆|｜｜)(?=[\s(（]|$))
      | (?P<not>(?:(?<=[\s(（])|^)[－！＋−‐‑–](?=[\w"“(（]))
      | (?:(?<=\w)＊(?![^\s)）]))
      | (?:(?<=["”»」』])～(?=\d)|＾(?=[\d.]))
      | (?:[＜＞＝])
      | (?P<group>[（）()])
      | (?P<invisible>(?:(?<=[\s(])|^)[{INVISIBLE}]+)"""


_SIGNS = re.compile(_PIECE, re.VERBOSE | re.DOTALL)
_SIGNS_AND_STRAIGHT = re.compile(
    _PIECE.replace("(?P<double>[", '(?P<double>["'), re.VERBOSE | re.DOTALL
)
"""The same for a text in which a straight quote has no partner; it may be that of a curly one."""


def plain_signs(text: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """Return the text with the signs of the query language, and notes. O(len(text))."""
    is_plain = text.isascii() and "'" not in text and '\\"' not in text
    if is_plain or not _NEEDED.search(text):
        return text, ()
    signs: dict[str, None] = {}
    notes: dict[str, None] = {}
    is_odd = re.sub(r"\\.", "", text, flags=re.DOTALL).count('"') % 2 == 1
    pieces = _SIGNS_AND_STRAIGHT if is_odd else _SIGNS
    groups = _balanced(pieces, text)

    def replaced(match: re.Match[str]) -> str:
        piece = match[0]
        if match["quoted"] is not None:
            before = match["before"]
            name = before.rstrip(":：").lstrip("-!+－！−–")
            if before[-1:] in (":", "：") and schema.named(name) is None and not schema.open:
                return piece
            before = re.sub("[−–]", "-", before).translate(_FULL_WIDTH)
            for sign in match["before"]:
                if sign not in before:
                    signs[sign] = None
            return before + _phrase(match, notes)
        if match["phrase"] is not None or match["escaped"] is not None:
            return piece
        if match["invisible"] is not None:
            return " " * len(piece)
        if match["name"] is not None:
            name = match["name"]
            is_open = schema.open and name.isascii() and is_field_name(name)
            if schema.named(name) is None and not is_open:
                return piece
            signs["："] = None
            return f"{name}:"
        if match["group"] is not None and not groups:
            return piece
        new = "-" if (match["not"] or " ") in DASHES else piece.translate(_FULL_WIDTH)
        if new != piece:
            for sign in piece if match["word"] is None else (piece,):
                if sign not in new:
                    signs[sign] = None
        return new

    plain = pieces.sub(replaced, text)
    if signs:
        notes[fill(NOTE_SIGNS, signs=" ".join(signs))] = None
    return plain, tuple(notes)


def _phrase(match: re.Match[str], notes: dict[str, None]) -> str:
    """Return a phrase in straight quotes, and note it; text in quotes that is a word stays."""
    words = match["text"] or match["words"]
    opening, closing = match["double"] or match["single"], match["close"] or match["end"]
    quoted = f"{opening}{words}{closing}"
    if len(words.split()) < 2 or (opening == '"' and closing in ('"', '\\"')):
        return quoted
    notes[fill(NOTE_QUOTES, piece=shortened(quoted))] = None
    return f'"{" " * (len(opening) - 1)}{words}{" " * (len(closing) - 1)}"'


def _balanced(pieces: re.Pattern[str], text: str) -> bool:
    """Return whether parentheses of either width close those that were opened."""
    depth = 0
    for match in pieces.finditer(text) if "（" in text or "）" in text else ():
        if match["group"] is not None:
            depth += 1 if match[0] in "(（" else -1
        if depth < 0:
            return False
    return depth == 0

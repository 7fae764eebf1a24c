"""Quotes, dashes and marks that people and programs type in place of those of the query language:
curly or escaped quotes, minus signs, marks that cannot be seen.

They become the signs that they stand for, one character for one, so that offsets stay; quotes and
dashes are noted. Phrases in straight quotes, patterns, and what a backslash makes ordinary stay as
they are.
"""

from __future__ import annotations

import re

from arag_search.query.fields import Schema
from arag_search.query.lexer import PATTERN
from arag_search.query.problems import NOTE_QUOTES, NOTE_SIGNS, fill, shortened
from arag_search.query.typography import CLOSING_QUOTES, HYPHENS, INVISIBLE, OPENING_QUOTES

_PLAIN = str.maketrans(
    dict.fromkeys(OPENING_QUOTES + CLOSING_QUOTES, '"')
    | dict.fromkeys(HYPHENS, "-")
    | dict.fromkeys(INVISIBLE + "\\", " ")
)

_NEEDED = re.compile(
    rf"[{OPENING_QUOTES[1:]}{CLOSING_QUOTES[1:]}{HYPHENS}{INVISIBLE}]|(?<!\w)'|\\\""
)
"""A text without any of these has no such sign. An apostrophe after a letter opens no quote."""

_SIGNS = re.compile(
    rf"""(?:(?<=[\s(])|^)(?P<before>[-!+{HYPHENS}]*(?:(?P<name>[^\W\d][\w.-]*):)?)(?:
            (?P<double>[“„«»〝「『《＂]|\\"(?!\\)|"(?![^"]*"))
            (?P<text>[^"“”„«»〝〞〟「」『』《》＂\\]+)
            (?P<close>["”“»«〞〟」』》＂]|\\")
          | (?P<single>['‘‚‹])(?P<words>[^\s'"][^"'‘’‚‹›]*(?:(?<=\w)['’](?=\w)[^"'‘’‚‹›]*)*)
            (?P<end>['’‘›]))(?=[\s)~^?!.,;:，。；、]|$)
      | (?P<kept>"(?:[^"\\]|\\.)*"?|\\.|(?:(?<=[\s(])|^){PATTERN})
      | (?P<invisible>(?:(?<=[\s(])|^)[{INVISIBLE}]+)
      | (?P<dash>(?:(?<=[\s(])|^)[{HYPHENS}](?=[\w"“(]))""",
    re.VERBOSE | re.DOTALL,
)
"""A straight quote opens a phrase that ends with another sign if it is the last straight one."""


def plain_signs(text: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """Return the text with the signs of the query language, and notes. O(len(text))."""
    is_plain = text.isascii() and "'" not in text and '\\"' not in text
    if is_plain or not _NEEDED.search(text):
        return text, ()
    dashes: dict[str, None] = {}
    notes: dict[str, None] = {}

    def replaced(match: re.Match[str]) -> str:
        piece = match[0]
        words = match["text"] or match["words"]
        if words is None:
            if match["dash"]:
                dashes[piece] = None
            return piece if match["kept"] else piece.translate(_PLAIN)
        before, name = match["before"], match["name"]
        if name and schema.named(name) is None and not schema.open:
            return piece
        dashes.update((sign, None) for sign in before if sign in HYPHENS)
        quoted = piece[len(before) :]
        if len(words.split()) > 1:  # other text in quotes is a word
            notes[fill(NOTE_QUOTES, piece=shortened(quoted))] = None
            opening, closing = match["double"] or match["single"], match["close"] or match["end"]
            # The blank in place of a backslash stands within the phrase.
            quoted = opening.translate(_PLAIN)[::-1] + words + closing.translate(_PLAIN)
        return before.translate(_PLAIN) + quoted

    plain = _SIGNS.sub(replaced, text)
    if dashes:
        notes[fill(NOTE_SIGNS, signs=" ".join(dashes))] = None
    return plain, tuple(notes)

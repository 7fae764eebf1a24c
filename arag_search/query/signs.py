"""Signs that people and programs type in place of the signs of the query language. They are curly
or escaped quotes, minus signs, question marks at the end of words, and marks that cannot be seen.

They become the signs that they stand for, or blanks, so that offsets stay. All but marks that
cannot be seen are noted. Phrases in straight quotes, patterns, and what a backslash makes ordinary
stay as they are.
"""

from __future__ import annotations

import re

from arag_search.query.fields import Schema
from arag_search.query.lexer import PATTERN
from arag_search.query.operators import SPELLED
from arag_search.query.problems import (
    NOTE_QUESTION_MARK,
    NOTE_QUOTES,
    NOTE_SIGNS,
    fill,
    shortened,
)
from arag_search.query.typography import CLOSING_QUOTES, HYPHENS, INVISIBLE, OPENING_QUOTES

_PLAIN = str.maketrans(
    dict.fromkeys(OPENING_QUOTES + CLOSING_QUOTES, '"')
    | dict.fromkeys(HYPHENS, "-")
    | dict.fromkeys(INVISIBLE + "\\", " ")
)

_NEEDED = re.compile(
    rf"[{OPENING_QUOTES[1:]}{CLOSING_QUOTES[1:]}{HYPHENS}{INVISIBLE}?]|(?<!\w)'|\\\""
)
"""A text without any of these has no such sign. An apostrophe after a letter opens no quote."""

_OPERATORS = "|".join(map(re.escape, SPELLED))
_SIGNS = re.compile(
    rf"""(?<![^\s(])(?P<before>[-!+{HYPHENS}]*(?:(?P<name>[^\W\d][\w.-]*):)?)(?:
            (?:[“„«»〝「『《＂]|\\"(?!\\)|"(?![^"]*"))
            (?P<text>[^"“”„«»〝〞〟「」『』《》＂\\]+)
            (?:["”“»«〞〟」』》＂]|\\")
          | ['‘‚‹](?P<words>[^\s'"][^"'‘’‚‹›]*(?:(?<=\w)['’](?=\w)[^"'‘’‚‹›]*)*)
            ['’‘›])(?=[\s)~^?!.,;:，。；、]|$)
      | (?P<kept>"(?:[^"\\]|\\.)*"?|\\.|(?<![^\s(]){PATTERN})
      | (?<![^\s(])[{INVISIBLE}]+
      | (?:(?<![^\s(])(?P<operator>{_OPERATORS})|(?<=[^\s\\(?]))\?+
            (?P<after_mark>[!.,;?]*)(?=[\s()"]|$)
      | (?P<dash>(?<![^\s(])[{HYPHENS}](?=[\w"“(]))""",
    re.VERBOSE | re.DOTALL,
)
"""A straight quote opens a phrase that ends with another sign if it is the last straight one."""
_WORD = re.compile(r'[^\s():"~^]+')
_MAX_WORD = 120


def plain_signs(text: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """Return the text with the signs of the query language, and notes. O(len(text))."""
    is_plain = text.isascii() and "'" not in text and "?" not in text and '\\"' not in text
    if is_plain or not _NEEDED.search(text):
        return text, ()
    dashes: dict[str, None] = {}
    notes: dict[str, None] = {}

    def replaced(match: re.Match[str]) -> str:
        piece = match[0]
        words = match["text"] or match["words"]
        if match["after_mark"] is not None:
            operator = match["operator"] or ""  # with a question mark, it is a word
            before = text[max(0, match.start() - _MAX_WORD) : match.start()] + operator
            for word in _WORD.findall(before)[-1:]:
                notes[fill(NOTE_QUESTION_MARK, word=word)] = None
            kept = (operator and f"\\{operator}") + match["after_mark"].replace("?", "")
            return kept.ljust(len(piece))
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
            quoted = f'"{words.strip()}"'
        return (before.translate(_PLAIN) + quoted).rjust(len(piece))

    plain = _SIGNS.sub(replaced, text)
    if dashes:
        notes[fill(NOTE_SIGNS, signs=" ".join(dashes))] = None
    return plain, tuple(notes)

"""The plain signs and letters for which typographic ones stand. They count in the words of an
index, in the signs of a query, and in answers that are compared.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from arag_search.corpus import nfc

APOSTROPHES = "'‘’‛`´′ʹʻʼʽʾʿꞌ׳＇"
"""Between letters, all of these are one apostrophe."""
OPENING_QUOTES = "'‘‚‹“„«»〝「『《＂"
CLOSING_QUOTES = "'’‘›”“»«〞〟」』》＂"
HYPHENS = "−‐‑–－"
"""The dashes that are typed for the hyphen which excludes."""
DASHES = HYPHENS + "‒—―⁃⸺⸻﹘﹣"
INVISIBLE = "\ufeff\u200b\u2060\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Signs of no width between words; within words there are soft hyphens and joiners."""
_WITHIN_WORDS = "\u00ad\u034f\u061c\u180e\u200c\u200d\u2061\u2062\u2063\u2064"
_LIGATURES = "ﬀﬁﬂﬃﬄﬅﬆĲĳ"
_QUOTES = OPENING_QUOTES + CLOSING_QUOTES + "‟⹂〟״″"

PLAIN = str.maketrans(
    {sign: unicodedata.normalize("NFKC", sign) for sign in _LIGATURES}
    | dict.fromkeys(_QUOTES, '"')
    | dict.fromkeys("‚‹›" + APOSTROPHES, "'")
    | dict.fromkeys(DASHES, "-")
    | dict.fromkeys(INVISIBLE + _WITHIN_WORDS, "")
)
"""The table for ``str.translate``. All that is ASCII stays but the backtick, an apostrophe."""


# Letters


_OTHER_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d",
                  "ħ": "h", "ı": "i", "ё": "е", "ς": "σ"}  # fmt: skip
"""Letters with a plain form that Unicode does not decompose them into."""
_ARABIC_LETTERS = str.maketrans("أإآٱیکۀ٫٬", "اااايكه.,", "\u0640")
"""Letters that are typed for each other, and separators of numbers. The tatweel is removed."""
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")
_LETTER_FORMS = frozenset(
    ("<wide>", "<narrow>", "<font>", "<compat>", "<initial>", "<medial>", "<final>", "<isolated>",
     "<super>", "<sub>")
)  # fmt: skip


_LOOKS = re.compile("[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]")
"""Marks of the look of an emoji (as text, in colours, tones of skin) or of a Han character."""


class _Letters(dict[int, str]):
    """The letters of compatibility forms, by code point."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.decomposition(character).partition(" ")[0]
        category = unicodedata.category(character)
        letters = unicodedata.normalize("NFKC", character).lower()
        if category == "Cf" or _LOOKS.match(character):
            letters = ""
        elif character in APOSTROPHES + "״":
            letters = '"' if character == "״" else "'"
        elif category == "Nd":
            letters = str(unicodedata.decimal(character))
        elif kind not in _LETTER_FORMS or category == "So" or not all(map(_is_in_word, letters)):
            letters = character
        letters = letters.translate(_ARABIC_LETTERS)
        if "\u3400" <= letters <= "\u9fff" or letters >= "\U00020000":
            letters = letters.translate(_han())
        self[code] = letters
        return letters


@cache
def _han() -> dict[int, str]:
    """Return the one form of Han characters that are written in several ways, by code point. In the
    file, each group has its form first."""
    text = Path(__file__).with_name("han.txt").read_text("utf-8")
    groups = re.sub("(?m)^#.*", "", text).split()
    return {ord(other): group[0] for group in groups for other in group[1:]}


class _WithoutAccents(dict[int, str]):
    """Latin and Greek letters without accents, by code point, and other letters as they are."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = _OTHER_LETTERS.get(character, character)
        if unicodedata.name(character, "").startswith(("LATIN", "GREEK")):
            decomposed = unicodedata.normalize("NFD", plain)
            plain = "".join(_OTHER_LETTERS.get(letter, letter) for letter in decomposed)
        plain = self[code] = _POINTS.sub("", plain)
        return plain


_LETTERS, _WITHOUT_ACCENTS = _Letters(), _WithoutAccents()


def _is_in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


def plain_letters(word: str) -> str:
    """Return a word with plain letters in place of compatibility forms, the one form of each Han
    character, straight apostrophes, and no points."""
    if word.isascii():
        return word
    return _POINTS.sub("", nfc(word.translate(_LETTERS)))


def has_only_letters(word: str) -> bool:
    """Return whether a word consists of letters, their marks and apostrophes."""
    word = word.replace("'", "")
    return word.isalpha() or (
        not word.isascii() and all(unicodedata.category(letter)[0] in "LM" for letter in word)
    )


def accents_off(word: str) -> str:
    """Return a word without the accents of its Latin and Greek letters."""
    return word if word.isascii() else word.translate(_WITHOUT_ACCENTS)

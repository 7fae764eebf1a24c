"""Typographic signs, and the plain signs that they stand for: one table for the words of an index,
the signs of a query, and answers that are compared.
"""

from __future__ import annotations

import unicodedata

APOSTROPHES = "'‘’‛`´′ʹʻʼʽʾʿꞌ׳＇"
"""Between letters, all of these are one apostrophe."""
OPENING_QUOTES = "'‘‚‹“„«»〝「『《＂"
CLOSING_QUOTES = "'’‘›”“»«〞〟」』》＂"
HYPHENS = "−‐‑–－"
"""The dashes that are typed for the hyphen which excludes."""
DASHES = HYPHENS + "‒—―⁃⸺⸻﹘﹣"
INVISIBLE = "\ufeff\u200b\u2060\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Signs of no width that stand between words; those within words are soft hyphens and joiners."""
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

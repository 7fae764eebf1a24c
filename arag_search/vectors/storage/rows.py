"""The texts of a chunk that have vectors, and the keys that bind a vector to its text."""

from __future__ import annotations

import hashlib

from arag_search.corpus import Chunk
from arag_search.vectors.base import VectorUnit

KEY_BYTES = 16


def row_key(text: str) -> bytes:
    """Return the key of the vector of a text: the first 16 bytes of the SHA-256 of exactly the
    string that is encoded."""
    return hashlib.sha256(text.encode("utf-8")).digest()[:KEY_BYTES]


def rows_of(
    chunk: Chunk, unit: VectorUnit, *, sentence_titles: bool = False
) -> list[tuple[int, str]]:
    """Return the ordinal and the text of each row of a chunk, in order of ordinal.

    Sentences: each that has a letter or a digit, without surrounding blanks; with
    ``sentence_titles`` below the title of the passage, if it has one. Passages: one row with
    the title, a newline and the content, or the content alone if there is no title; none if neither
    has a letter or a digit.
    """
    if unit == "sentence":
        above = f"{chunk.title}\n" if sentence_titles and chunk.title else ""
        return [
            (chunk.ordinal + number, f"{above}{text.strip()}")
            for number, text in enumerate(chunk.sentences())
            if _has_word(text)
        ]
    text = f"{chunk.title}\n{chunk.content}" if chunk.title else chunk.content
    return [(chunk.ordinal, text)] if _has_word(text) else []


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))

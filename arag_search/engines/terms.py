"""Exact terms (ids and keywords), as Lucene indexes them in either engine."""

from __future__ import annotations

from arag_search.corpus import Chunk
from arag_search.errors import BuildError

MAX_TERM_BYTES = 32_766
"""The longest id or keyword in UTF-8 that Lucene indexes."""


def term_bytes(text: str, chunk: Chunk) -> bytes:
    """Encode an id or keyword of a chunk as UTF-8.

    Raises BuildError for a term that is too long, UnicodeEncodeError for one that is not Unicode.
    """
    data = text.encode()
    if len(data) > MAX_TERM_BYTES:
        raise BuildError(
            f"An id or keyword has {len(data):,} bytes.",
            where=f"chunk {chunk.id[:60]!r}",
            allowed=f"at most {MAX_TERM_BYTES:,} bytes in UTF-8",
            do="Shorten it, or leave that metadata field undeclared.",
        )
    return data

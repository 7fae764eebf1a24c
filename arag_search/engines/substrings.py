"""Keyword search by substrings: a scan, as in the reference implementation of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest

from arag_search.corpus import Chunk, nfc
from arag_search.engines.base import Hit, KeywordRequest, Page
from arag_search.engines.compiling import float32


def substring_page(chunks: Iterable[Chunk], request: KeywordRequest) -> Page:
    """Return the chunks in scope that are best by occurrences of the lower-cased keywords.

    Raises QueryTimeoutError.
    """
    wanted = [(word.lower(), len(word)) for word in map(nfc, request.keywords) if word]
    count = 0

    def scored() -> Iterator[tuple[float, Chunk]]:
        nonlocal count
        for chunk in chunks:
            if request.deadline is not None:
                request.deadline.check()
            title, content = chunk.title.lower(), chunk.content.lower()
            score = sum((title.count(w) + content.count(w)) * size for w, size in wanted)
            if score:
                count += 1
                yield float32(score), chunk

    end = request.offset + request.top_k
    best = nsmallest(end, scored(), key=lambda pair: (-pair[0], pair[1].ordinal))
    hits = (Hit.of(chunk, score, text=request.with_text) for score, chunk in best[request.offset :])
    return Page(tuple(hits), count, True, count if end > count else None)

"""An index that runs each search once, however often and in whatever pages it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.search.results import SearchHit, SearchResult
from arag_search.vectors.opening import OpenVectors


class RememberedIndex(Index):
    """The searches of another index, which stays open, as its tools ask for them.

    With ``depth`` a search is run for so many passages without their text, pages are cut from
    these, and the text comes from memory: for replies that show whole passages. With depth 0 every
    page is searched for as it is asked, once. ``latest`` are the ids of the last page.
    """

    def __init__(self, index: Index, *, depth: int) -> None:
        super().__init__(index.engine, index.location, index.scope)
        self._index = index
        self._depth = depth
        self._chunks = {chunk.id: chunk for chunk in index.scan()} if depth else {}
        self._found: dict[Any, SearchResult] = {}
        self.latest: tuple[str, ...] = ()

    def close(self) -> None:
        """Forget what was found; the other index is not closed."""
        self._found.clear()

    def open_vectors(self) -> OpenVectors:
        """See Index."""
        return self._index.open_vectors()

    def encode_queries(self, queries: Sequence[str]) -> None:
        """See Index."""
        self._index.encode_queries(queries)

    def logical_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        return self._paged(self._index.logical_search, "top_k", query, top_k, offset, others)

    def keyword_search(
        self, keywords: Sequence[str], *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        wanted = tuple(keywords)
        return self._paged(self._index.keyword_search, "top_k", wanted, top_k, offset, others)

    def semantic_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        return self._paged(self._index.semantic_search, "top_k", query, top_k, offset, others)

    def hybrid_search(
        self, query: str, *, max_results: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        return self._paged(
            self._index.hybrid_search, "max_results", query, max_results, offset, others
        )

    def _paged(
        self,
        search: Callable[..., SearchResult],
        size: str,
        asked: str | tuple[str, ...],
        count: int,
        offset: int,
        others: dict[str, Any],
    ) -> SearchResult:
        """A page of a search; ``size`` is what it calls the number of passages."""
        if self._depth:
            others.pop("full_text", None)  # the text comes from memory
        page = (0, self._depth) if self._depth else (offset, count)
        key = (search.__name__, asked, page, *sorted(others.items()))
        found = self._found.get(key)
        if found is None:
            bare = {"snippets": False} if self._depth else {}
            found = search(asked, **{size: page[1]}, offset=page[0], **others, **bare)
            self._found[key] = found
        if self._depth:
            found = self._cut(found, offset, count)
        self.latest = tuple(hit.id for hit in found.hits)
        return found

    def _cut(self, found: SearchResult, offset: int, count: int) -> SearchResult:
        """A page of what was found, as the search itself would give it."""
        hits = tuple(
            _with_text(hit, self._chunks[hit.id]) for hit in found.hits[offset : offset + count]
        )
        # How many passages sentences are of is known where the page ends before it is full.
        by_sentence = found.total_unit == "sentences"
        passages = None if by_sentence and len(hits) == count else found.passages
        return replace(found, hits=hits, offset=offset, passages=passages)


def _with_text(hit: SearchHit, chunk: Chunk) -> SearchHit:
    return hit._replace(content=chunk.content, sentence_ends=chunk.sentence_ends)

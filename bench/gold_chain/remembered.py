"""An index that runs each search once, regardless of how often and in which pages it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.search.results import SearchHit, SearchResult
from arag_search.vectors.opening import OpenVectors


class RememberedIndex(Index):
    """A cache of the searches of another index, which stays open.

    With ``depth``, a search returns this many passages without their text. Pages are cut from them,
    and the text is added from memory, for replies that show whole passages. With depth 0 every page
    is searched for once. ``latest`` are the ids of the last page.
    """

    def __init__(self, index: Index, *, depth: int) -> None:
        super().__init__(index.engine, index.location, index.scope)
        self._index = index
        self._depth = depth
        self._chunks = {chunk.id: chunk for chunk in index.scan()} if depth else {}
        self._found: dict[Any, SearchResult] = {}
        self.latest: tuple[str, ...] = ()

    def close(self) -> None:
        """Clear the cache; the other index is not closed."""
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
        return self._paged(self._index.logical_search, query, top_k, offset, others)

    def keyword_search(
        self, keywords: Sequence[str], *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        wanted = tuple(keywords)
        return self._paged(self._index.keyword_search, wanted, top_k, offset, others)

    def semantic_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        return self._paged(self._index.semantic_search, query, top_k, offset, others)

    def hybrid_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        """See Index."""
        return self._paged(self._index.hybrid_search, query, top_k, offset, others)

    def _paged(
        self,
        search: Callable[..., SearchResult],
        asked: str | tuple[str, ...],
        count: int,
        offset: int,
        others: dict[str, Any],
    ) -> SearchResult:
        """Return a page of a search."""
        if self._depth:
            others.pop("full_text", None)  # the text comes from memory
        page = (0, self._depth) if self._depth else (offset, count)
        key = (search.__name__, asked, page, *sorted(others.items()))
        result = self._found.get(key)
        if result is None:
            bare = {"snippets": False} if self._depth else {}
            result = search(asked, top_k=page[1], offset=page[0], **others, **bare)
            self._found[key] = result
        if self._depth:
            result = self._cut(result, offset, count)
        self.latest = tuple(hit.id for hit in result.hits)
        return result

    def _cut(self, result: SearchResult, offset: int, count: int) -> SearchResult:
        """Cut a page from a deeper result, as the search itself would return it."""
        hits = tuple(
            _with_text(hit, self._chunks[hit.id]) for hit in result.hits[offset : offset + count]
        )
        # The number of passages of sentences is only known if the page is not full.
        by_sentence = result.total_unit == "sentences"
        passages = None if by_sentence and len(hits) == count else result.passages
        return replace(result, hits=hits, offset=offset, passages=passages)


def _with_text(hit: SearchHit, chunk: Chunk) -> SearchHit:
    return hit._replace(content=chunk.content, sentence_ends=chunk.sentence_ends)

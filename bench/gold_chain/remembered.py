"""An index that runs each search once, regardless of how often it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.vectors.opening import OpenVectors


class RememberedIndex(Index):
    """A cache of the searches of another index, which stays open."""

    def __init__(self, index: Index) -> None:
        super().__init__(index.engine, index.location, index.scope)
        self._index = index
        self._found: dict[Any, SearchResult] = {}

    def close(self) -> None:
        """Clear the cache; the other index is not closed."""
        self._found.clear()

    def open_vectors(self) -> OpenVectors:
        return self._index.open_vectors()

    def encode_queries(self, queries: Sequence[str]) -> None:
        self._index.encode_queries(queries)

    def logical_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        return self._paged(self._index.logical_search, query, top_k, offset, others)

    def keyword_search(
        self, keywords: Sequence[str], *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        wanted = tuple(keywords)
        return self._paged(self._index.keyword_search, wanted, top_k, offset, others)

    def semantic_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
        return self._paged(self._index.semantic_search, query, top_k, offset, others)

    def hybrid_search(
        self, query: str, *, top_k: int = 5, offset: int = 0, **others: Any
    ) -> SearchResult:
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
        key = (search.__name__, asked, offset, count, *sorted(others.items()))
        result = self._found.get(key)
        if result is None:
            result = search(asked, top_k=count, offset=offset, **others)
            self._found[key] = result
        return result

"""QueryCache: an encoder that caches the vectors of queries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arag_search.errors import ArgumentError
from arag_search.vectors.base import Encoder, EncoderIdentity

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

DEFAULT_SIZE = 10_000


class QueryCache:
    """An Encoder that caches the vectors of the last ``size`` queries of another one.

    It takes 4 bytes per number: 15 MB for 10,000 queries of 384. Safe to use from several threads;
    a query that two of them encode at once may be encoded twice. Raises ArgumentError for a size
    below 1.
    """

    def __init__(self, encoder: Encoder, size: int = DEFAULT_SIZE) -> None:
        if size < 1:
            raise ArgumentError(f"size is {size}.", allowed="1 or more")
        self._encoder = encoder
        self._size = size
        self._rows: OrderedDict[str, Any] = OrderedDict()  # the most recently used is last
        self._lock = threading.Lock()

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the cached encoder."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of documents, which are not cached."""
        return self._encoder.encode(texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return the vectors of queries. New queries are encoded together, without duplicates."""
        if not queries:
            return self._encoder.encode_queries(queries)
        import numpy as np

        rows: dict[str, Any] = {}
        with self._lock:
            for query in queries:
                if query in self._rows:
                    self._rows.move_to_end(query)
                    rows[query] = self._rows[query]
        missing = [query for query in dict.fromkeys(queries) if query not in rows]
        if missing:
            vectors = self._encoder.encode_queries(missing)
            new = {query: row.copy() for query, row in zip(missing, vectors, strict=True)}
            rows |= new
            with self._lock:
                self._rows |= new
                while len(self._rows) > self._size:
                    self._rows.popitem(last=False)
        return np.stack([rows[query] for query in queries])

    def forget(self) -> None:
        """Empty the cache, for measuring the cost of encoding."""
        with self._lock:
            self._rows.clear()

    def close(self) -> None:
        """Close the encoder."""
        self._encoder.close()

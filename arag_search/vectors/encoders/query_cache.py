"""QueryCache: no query is encoded twice while it is remembered."""

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
    """An encoder that remembers the vectors of the last ``size`` queries; itself an Encoder.

    4 bytes a number: 15 MB for 10,000 queries of 384. Safe to use from several threads; a query
    that two of them ask for at once may be encoded twice. Raises ArgumentError for a size below 1.
    """

    def __init__(self, encoder: Encoder, size: int = DEFAULT_SIZE) -> None:
        if size < 1:
            raise ArgumentError(f"size is {size}.", allowed="1 or more")
        self._encoder = encoder
        self._size = size
        self._rows: OrderedDict[str, Any] = OrderedDict()  # the one used last at the end
        self._lock = threading.Lock()

    @property
    def identity(self) -> EncoderIdentity:
        """That of the encoder."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """The vectors of documents, which are not remembered."""
        return self._encoder.encode(texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """The vectors of queries; those not remembered are encoded together, equal ones once."""
        if not queries:
            return self._encoder.encode_queries(queries)
        import numpy as np

        found: dict[str, Any] = {}
        with self._lock:
            for query in queries:
                if query in self._rows:
                    self._rows.move_to_end(query)
                    found[query] = self._rows[query]
        missing = [query for query in dict.fromkeys(queries) if query not in found]
        if missing:
            made = self._encoder.encode_queries(missing)
            new = {query: row.copy() for query, row in zip(missing, made, strict=True)}
            found |= new
            with self._lock:
                self._rows |= new
                while len(self._rows) > self._size:
                    self._rows.popitem(last=False)
        return np.stack([found[query] for query in queries])

    def forget(self) -> None:
        """Remember no query any more, for who measures what encoding costs."""
        with self._lock:
            self._rows.clear()

    def close(self) -> None:
        """Close the encoder."""
        self._encoder.close()

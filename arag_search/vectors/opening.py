"""Vectors and their encoder, opened on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from arag_search.errors import IndexClosedError
from arag_search.manifest import Manifest
from arag_search.system.processes import share_cores
from arag_search.vectors.base import (
    PROBE_TEXTS,
    Encoder,
    EncoderIdentity,
    FloatArray,
    Vectors,
    check_same_encoder,
)

CACHED_QUERIES = 10_000


class OpenVectors(NamedTuple):
    """The vectors of an index, and an encoder whose vectors are comparable with them."""

    vectors: Vectors
    encoder: Encoder


class VectorSource:
    """A source that opens vectors, and their encoder, once for all threads.

    If opening fails, the next call tries again.
    """

    def __init__(
        self,
        open_vectors: Callable[[], Vectors],
        open_encoder: Callable[[EncoderIdentity], Encoder],
        where: str,
        *,
        closes_encoder: bool = True,
    ) -> None:
        """Take the functions that open vectors and, by the identity of the encoder that made them,
        an encoder. The vectors are closed with this source, and if it ``closes_encoder``, so is
        that. ``where`` names the index in errors."""
        self._open_vectors = open_vectors
        self._open_encoder = open_encoder
        self._where = where
        self._closes_encoder = closes_encoder
        self._lock = threading.RLock()
        self._vectors: Vectors | None = None
        self._encoder: Encoder | None = None
        self._is_checked = self._closed = False

    @staticmethod
    def of(vectors: Vectors, encoder: Encoder) -> VectorSource:
        """Return a source of vectors and an encoder that are open already."""
        return VectorSource(lambda: vectors, lambda _: encoder, "memory")

    def open_vectors(self) -> Vectors:
        """Open the vectors alone, without a model. Raises the errors of opening them, and
        IndexClosedError after ``close``."""
        with self._lock:
            if self._closed:
                raise IndexClosedError(
                    f"The vectors of {self._where} are closed.", do="Open it again with open_index."
                )
            self._vectors = self._vectors or self._open_vectors()
            return self._vectors

    def open(self) -> OpenVectors:
        """Open vectors and encoder. Raises VectorsMismatchError if another encoder made the
        vectors, and the errors of ``open_vectors``, of opening the encoder and of encoding."""
        with self._lock:
            vectors = self.open_vectors()
            encoder = self._encoder = self._encoder or self._open_encoder(vectors.encoder)
            if not self._is_checked:
                now, where = encoder.encode(PROBE_TEXTS), self._where
                made_by, kept = vectors.encoder, vectors.probes
                check_same_encoder(made_by, kept, encoder.identity, now, where)
                self._is_checked = True
            return OpenVectors(vectors, encoder)

    def close(self) -> None:
        """Close vectors and encoder. May be called again."""
        with self._lock:
            self._closed = True
            if self._encoder is not None and self._closes_encoder:
                self._encoder.close()
            if self._vectors is not None:
                self._vectors.close()
            self._encoder = self._vectors = None


def vector_source(
    location: str,
    index: Manifest,
    vectors: Path | str | None,
    encoder: Encoder | str | None,
    nprobe: int | None = None,
    shared: dict[EncoderIdentity, Encoder] | None = None,
) -> VectorSource:
    """Return the source of an index's vectors, which are in ``vectors_root``.

    ``encoder`` is an encoder, which is not closed, or a name; None is the encoder that made the
    vectors. ``nprobe`` is the number of lists that a search probes; None takes the default of the
    vectors. Encoders for vectors that the same encoder made are ``shared`` with other sources, and
    closed by their owner.
    """

    def open_mapped() -> Vectors:
        share_cores()  # before numpy is loaded
        from arag_search.vectors.folder import vectors_root
        from arag_search.vectors.searching import open_vectors

        return open_vectors(vectors_root(location, vectors), index, location, nprobe=nprobe)

    def open_for_queries(made_by: EncoderIdentity) -> Encoder:
        from arag_search.vectors.encoders.choose import open_again, open_encoder

        known = {} if shared is None else shared
        if made_by not in known:
            if encoder is None:
                known[made_by] = QueryCache(open_again(made_by))
            elif isinstance(encoder, str):
                known[made_by] = QueryCache(open_encoder(encoder, **made_by.options))
            else:
                known[made_by] = QueryCache(encoder, owns=False)
        return known[made_by]

    return VectorSource(open_mapped, open_for_queries, location, closes_encoder=shared is None)


class QueryCache:
    """An Encoder that caches the vectors of the last ``size`` queries of another one, which is
    closed with it if it ``owns`` that.

    It takes 4 bytes per number: 15 MB for 10,000 queries of 384. Safe to use from several threads;
    a query that two of them encode at once may be encoded twice.
    """

    cut_texts = 0  # of queries, none is counted

    def __init__(self, encoder: Encoder, size: int = CACHED_QUERIES, *, owns: bool = True) -> None:
        self.identity, self.encode = encoder.identity, encoder.encode
        self.close = encoder.close if owns else lambda: None
        self._encoder = encoder
        self._size = size
        self._rows: dict[str, Any] = {}  # the most recently used is last
        self._lock = threading.Lock()

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return the vectors of queries. New queries are encoded together, without duplicates."""
        import numpy as np

        if not queries:
            return self._encoder.encode_queries(queries)
        with self._lock:
            rows = {query: self._rows[query] for query in queries if query in self._rows}
        if missing := [query for query in dict.fromkeys(queries) if query not in rows]:
            vectors = self._encoder.encode_queries(missing)
            rows |= {query: row.copy() for query, row in zip(missing, vectors, strict=True)}
        with self._lock:
            for query in rows:
                self._rows.pop(query, None)
            self._rows |= rows
            while len(self._rows) > self._size:
                del self._rows[next(iter(self._rows))]
        return np.stack([rows[query] for query in queries])

    def forget(self) -> None:
        """Empty the cache, for measuring the cost of encoding."""
        self._rows = {}

"""Indexes in memory with their vectors, and encoders that tests can read."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk
from arag_search.query.filters import parse_filter
from arag_search.search.index import Index
from arag_search.vectors.base import VECTOR_UNITS, Encoder, EncoderIdentity, VectorUnit
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors
from tests.support.passages import SCHEMA, chunk
from tests.support.plans import scoped


class TableEncoder:
    """An encoder that looks texts up in a table of vectors and scales these to unit length; a text
    that is not in the table becomes the last axis. ``encoded`` lists the batches of queries."""

    def __init__(self, table: Mapping[str, Sequence[float]], dimension: int = 3) -> None:
        self.identity = EncoderIdentity(kind="table", name="table", dimension=dimension)
        self.encoded: list[list[str]] = []
        self.closed = self.cut_texts = 0
        self._table = table
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        last = [0.0] * (self.identity.dimension - 1) + [1.0]
        rows = np.array([self._table.get(text, last) for text in texts], np.float32)
        rows = rows.reshape(len(texts), self.identity.dimension)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        with self._lock:
            self.encoded.append(list(queries))
        return self.encode(queries)

    def close(self) -> None:
        self.closed += 1


def vector_index(
    *chunks: Chunk,
    encoder: Encoder | None = None,
    scope: str | None = None,
    units: Sequence[VectorUnit] = VECTOR_UNITS,
) -> Index:
    """Build an index of the chunks and their vectors, which hash words by default."""
    encoder = encoder or HashingEncoder()
    vectors = MemoryVectors(chunks, encoder, units=units)
    return Index(
        MemoryEngine(chunks, metadata=SCHEMA.metadata),
        "memory",
        None if scope is None else scoped(parse_filter(scope, SCHEMA)),
        vectors=VectorSource.of(vectors, encoder),
    )


WORDS = (
    *("opera", "venice", "vivaldi", "libretto", "goldoni"),
    *("season", "winter", "born", "died", "griselda"),
)


def random_corpus(random: Random, documents: int) -> list[Chunk]:
    """Build chunks of up to 12 sentences of few words, so that many sentences are equally near."""
    return [
        chunk(
            number,
            f"d{number}",
            random.choice(("", "vivaldi", "opera")),
            *(
                f"{' '.join(random.choices(WORDS, k=random.choice((1, 2, 5))))}. "
                for _ in range(random.choice((0, 1, 3, 12)))
            ),
            year=number,
        )
        for number in range(documents)
    ]

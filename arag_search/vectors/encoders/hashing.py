"""HashingEncoder: a fake encoder, for which texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence

from arag_search.errors import ArgumentError
from arag_search.query.analysis import terms
from arag_search.system.extras import check_extra
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity, FloatArray, unit_rows

DEFAULT_DIMENSION = 256


class HashingEncoder:
    """An encoder that hashes each word, as analysed by the index, to a dimension and a sign.

    It needs numpy alone and gives the same vectors on every machine. They have no meaning beyond
    shared words, and take no prefix. A text without words counts as one word. Raises
    ArgumentError for a dimension below 2, and MissingExtraError.
    """

    def __init__(self, dimension: int = DEFAULT_DIMENSION) -> None:
        if dimension < 2:
            raise ArgumentError(f"dimension is {dimension}.", allowed="2 or more")
        check_extra("vectors", "numpy")
        self.cut_texts = 0
        self.identity = EncoderIdentity(
            kind="hashing",
            name="hashing" if dimension == DEFAULT_DIMENSION else f"hashing:{dimension}",
            dimension=dimension,
        )

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors, float32 of shape (texts, dimension), in the order of the texts."""
        import numpy as np

        vectors = np.zeros((len(texts), self.identity.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(terms(text) or [text]).items():
                bucket, sign = self._place(word)
                row[bucket] += sign * (1 + math.log(count))
        return unit_rows(vectors, texts, "the hashing encoder")

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return unit vectors, as ``encode`` does."""
        return self.encode(queries)

    def close(self) -> None:
        """Do nothing."""

    def _place(self, word: str) -> tuple[int, int]:
        digest = hashlib.blake2b(encodable(word).encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        return (number >> 1) % self.identity.dimension, 1 if number & 1 else -1

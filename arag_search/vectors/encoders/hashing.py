"""HashingEncoder: a fake encoder, for which texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

from arag_search.query.analysis import terms
from arag_search.vectors.base import FloatArray
from arag_search.vectors.encoders.prefixed import FunctionEncoder

DEFAULT_DIMENSION = 256


class HashingEncoder(FunctionEncoder):
    """An encoder that hashes each word, as analysed by the index, to a dimension and a sign.

    It needs numpy alone and gives the same vectors on every machine. They have no meaning beyond
    shared words. A text without words counts as one word.
    """

    kind = "hashing"

    def __init__(self, dimension: int = DEFAULT_DIMENSION) -> None:
        name = "hashing" if dimension == DEFAULT_DIMENSION else f"hashing:{dimension}"
        super().__init__(name, self._hashed, dimension, {})

    def _hashed(self, texts: list[str]) -> FloatArray:
        import numpy as np

        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(terms(text) or [text]).items():
                bucket, sign = self._place(word)
                row[bucket] += sign * (1 + math.log(count))
        return vectors

    def _place(self, word: str) -> tuple[int, int]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        return (number >> 1) % self._dimension, 1 if number & 1 else -1

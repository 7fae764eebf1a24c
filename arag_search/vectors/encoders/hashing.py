"""HashingEncoder: the fake that ships. Texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arag_search.errors import ArgumentError
from arag_search.query.analysis import terms
from arag_search.system.extras import check_extra
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.encoders.unit import unit_rows

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

DEFAULT_DIMENSION = 256
_REVISION = "1"  # another one whenever a text gets another vector


class HashingEncoder:
    """Words, as the index analyses them, each hashed to one number of ``dimension`` and a sign.

    Needs numpy alone. The same on every machine; no meaning beyond shared words, and no
    instruction before queries. A text without words counts as one word. Raises ArgumentError for a
    dimension below 2, and MissingExtraError.
    """

    def __init__(self, dimension: int = DEFAULT_DIMENSION) -> None:
        if dimension < 2:
            raise ArgumentError(f"dimension is {dimension}.", allowed="2 or more")
        check_extra("semantic", "numpy")
        self._identity = EncoderIdentity(
            kind="hashing",
            name="hashing" if dimension == DEFAULT_DIMENSION else f"hashing:{dimension}",
            revision=_REVISION,
            dimension=dimension,
        )

    @property
    def identity(self) -> EncoderIdentity:
        """What makes its vectors comparable."""
        return self._identity

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors, float32 of shape (texts, dimension), in the order given."""
        import numpy as np

        vectors = np.zeros((len(texts), self._identity.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(_words(text)).items():
                place, sign = self._place(word)
                row[place] += sign * (1 + math.log(count))
        return unit_rows(vectors, texts, "the hashing encoder")

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """As ``encode``."""
        return self.encode(queries)

    def close(self) -> None:
        """Nothing to free."""

    def _place(self, word: str) -> tuple[int, int]:
        digest = hashlib.blake2b(encodable(word).encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        return (number >> 1) % self._identity.dimension, 1 if number & 1 else -1


def _words(text: str) -> list[str]:
    return terms(text) or [text]

"""An encoder that encodes each text once, because packings of a corpus share sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from arag_search.vectors.base import Encoder, EncoderIdentity

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


class OnceEncoder:
    """An Encoder that caches every vector of another one: 1.5 kB for a vector of 384 numbers.

    Not safe for several threads.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._documents: dict[str, Any] = {}
        self._queries: dict[str, Any] = {}

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of documents."""
        return _remembered(self._documents, self._encoder.encode, texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return the vectors of queries."""
        return _remembered(self._queries, self._encoder.encode_queries, queries)

    def close(self) -> None:
        """Close the encoder."""
        self._encoder.close()


def _remembered(
    known: dict[str, Any], encode: Callable[[Sequence[str]], FloatArray], texts: Sequence[str]
) -> FloatArray:
    import numpy as np

    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing or not texts:
        rows = encode(missing)
        known |= zip(missing, rows, strict=True)
        if not texts:
            return rows
    return np.stack([known[text] for text in texts])

"""Scaling of a model's vectors to unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arag_search.errors import EncoderReplyError

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

_SHOWN_CHARACTERS = 60


def unit_rows(rows: Any, texts: Sequence[str], where: str) -> FloatArray:
    """Return rows of any float type, of shape (texts, dimension), as float32 rows of length 1.

    A row of zeros, which some models give to texts without known words, becomes the first unit
    vector. Raises EncoderReplyError, which shows the text, for a row with a number that is not
    finite.
    """
    import numpy as np

    vectors = np.array(rows, np.float32, order="C")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(lengths).all():
        text = texts[int(np.flatnonzero(~np.isfinite(lengths))[0])]
        shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
        raise EncoderReplyError(
            f"The vector of a text holds numbers that are not finite: {shown!r}.", where=where
        )
    vectors[lengths == 0, 0] = lengths[lengths == 0] = 1.0
    vectors /= lengths[:, None].astype(np.float32)
    return vectors

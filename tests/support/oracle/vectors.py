"""MemoryVectors: the exact nearest rows of chunks in memory, with numpy alone.

Vectors on disk are tested against it. Cosines are computed in 64 bits and rounded to 32, so that
equal texts have equal scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import Chunk
from arag_search.errors import IndexClosedError, NotServedError
from arag_search.vectors.base import (
    KEY_BYTES,
    PROBE_TEXTS,
    VECTOR_UNITS,
    Encoder,
    Nearest,
    Selection,
    VectorUnit,
    row_key,
    rows_of,
)

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


class _Rows(NamedTuple):
    """The rows of one unit in order of ordinal; ``chunks`` has the number of each row's chunk, and
    ``keys`` has their keys."""

    keys: NDArray[np.void]
    ordinals: NDArray[np.int64]
    chunks: NDArray[np.int64]
    vectors: NDArray[np.float64]


class MemoryVectors:
    """The vectors of chunks, made by an encoder. See Vectors."""

    def __init__(
        self,
        chunks: Iterable[Chunk],
        encoder: Encoder,
        *,
        units: Sequence[VectorUnit] = VECTOR_UNITS,
    ) -> None:
        """Encode the chunks, which may come in any order."""
        held = sorted(chunks, key=lambda chunk: chunk.ordinal)
        self._ordinals = np.array([chunk.ordinal for chunk in held], np.int64)
        self.encoder = encoder.identity
        self.probes = tuple(map(tuple, encoder.encode(PROBE_TEXTS).tolist()))
        self.units = tuple(units)
        self._rows: dict[VectorUnit, _Rows] = {}
        for unit in self.units:
            rows = [(at, *row) for at, chunk in enumerate(held) for row in rows_of(chunk, unit)]
            made = encoder.encode([text for _, _, text in rows])
            keys = np.array([np.void(row_key(text)) for _, _, text in rows], f"V{KEY_BYTES}")
            self._rows[unit] = _Rows(
                keys,
                np.array([ordinal for _, ordinal, _ in rows], np.int64),
                np.array([at for at, _, _ in rows], np.int64),
                made.astype(np.float64).reshape(len(rows), self.encoder.dimension),
            )
        self._closed = False

    def nearest(
        self, unit: VectorUnit, queries: FloatArray, n: int, within: Selection | None = None
    ) -> list[list[Nearest]]:
        """See Vectors. O(queries x rows)."""
        if self._closed:
            raise IndexClosedError("The vectors in memory are closed.", do="Make them again.")
        if unit not in self._rows:
            raise NotServedError(
                f"There are no {unit} vectors.", allowed=f"vectors by {', '.join(self.units)}"
            )
        rows = self._rows[unit]
        if within is not None:
            inside = within.mark(self._ordinals)[rows.chunks]
            rows = _Rows(
                rows.keys[inside], rows.ordinals[inside], rows.chunks[inside], rows.vectors[inside]
            )
        cosines = (queries.astype(np.float64) @ rows.vectors.T).astype(np.float32)
        nearest: list[list[Nearest]] = []
        for scores in cosines:
            order = np.lexsort((rows.ordinals, -scores))[:n]
            best = (rows.ordinals[order], scores[order], rows.keys[order])
            columns = (part.tolist() for part in best)
            nearest.append([Nearest(*row) for row in zip(*columns, strict=True)])
        return nearest

    def close(self) -> None:
        """See Vectors. May be called again."""
        self._closed = True

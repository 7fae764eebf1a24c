"""The rows of texts: each is found in a store by its key, or encoded and appended.

A job that is killed has lost at most a piece: the next one finds all other rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from arag_search.corpus import Chunk
from arag_search.vectors.base import VectorUnit, row_key, rows_of
from arag_search.vectors.state import UnitTexts
from arag_search.vectors.store import Store
from index_jobs.embedding.encoding import Encoding

FOUND_TEXTS = 1 << 17
"""How many texts are looked for at once, for each encoder: each time all keys of the store are
read."""


class TextRows:
    """The rows of the texts of an index, whose chunks are added in order.

    ``store`` is the one that is continued, None until there is a row; ``encoded`` of its rows were
    made here.
    """

    def __init__(
        self,
        units: Sequence[VectorUnit],
        encoding: Encoding,
        store: Store | None,
        create: Callable[[], Store],
        *,
        sentence_titles: bool,
        writing: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_piece: Callable[[int, int], None],
    ) -> None:
        """``create`` makes a store for the first row; rows are appended in ``writing``.
        ``on_piece`` is called after each piece with the numbers of texts that have a vector and of
        those that were encoded, and may raise."""
        self.store = store
        self.encoded = self._found = 0
        self._encoding = encoding
        self._create = create
        self._sentence_titles = sentence_titles
        self._writing = writing
        self._on_piece = on_piece
        self._waiting: dict[VectorUnit, list[tuple[int, str]]] = {unit: [] for unit in units}
        self._texts: dict[VectorUnit, tuple[array[int], array[int]]] = {
            unit: (array("q"), array("q")) for unit in units
        }

    def add(self, chunk: Chunk) -> None:
        """Add the texts of a chunk. Raises what encoding and storing raise."""
        for unit, waiting in self._waiting.items():
            waiting += rows_of(chunk, unit, sentence_titles=self._sentence_titles)
            if len(waiting) >= FOUND_TEXTS * self._encoding.encoders:
                self._give_rows(unit)

    def finish(self) -> dict[VectorUnit, UnitTexts]:
        """Return the texts that were added with their rows. Raises as ``add`` does."""
        for unit in self._waiting:
            self._give_rows(unit)
        return {
            unit: UnitTexts(np.array(ordinals), np.array(rows))
            for unit, (ordinals, rows) in self._texts.items()
        }

    def _give_rows(self, unit: VectorUnit) -> None:
        texts, self._waiting[unit] = self._waiting[unit], []
        keys = [row_key(text) for _, text in texts]
        rows = {} if self.store is None else self.store.find(unit, keys)
        missing = {key: text for key, (_, text) in zip(keys, texts, strict=True) if key not in rows}
        self._found += len(texts) - len(missing)
        for piece, encoded in self._encoding.encoded(missing):
            with self._writing():
                self.store = self.store or self._create()
                first = self.store.append(unit, piece.keys, encoded.vectors, encoded.cut)
            rows.update(zip(piece.keys, range(first, first + len(piece.keys)), strict=True))
            self.encoded += len(piece.keys)
            self._on_piece(self._found + self.encoded, self.encoded)
        ordinals, numbers = self._texts[unit]
        ordinals.extend(ordinal for ordinal, _ in texts)
        numbers.extend(rows[key] for key in keys)

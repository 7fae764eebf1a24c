"""The rows that a search may find: those of selected texts whose chunks are unchanged.

A selection is a scope of metadata clauses, which the columns of a sidecar evaluate, or a list of
ordinals from an engine, which may have searched text. Both become the same rows here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from arag_search.query.tree import Scope
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.storage.columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arag_search.vectors.base import Ordinals

    Mask = NDArray[np.bool_]

FEW_ROWS = 50_000
"""Fewer allowed rows than this are scored exactly, whatever the index."""

_KEPT_SCOPES = 8


@dataclass(frozen=True, slots=True)
class AllowedRows:
    """The rows that are allowed. If they are fewer than FEW_ROWS, ``few`` has their numbers,
    ascending; otherwise it is None, and ``bits`` has a bit for each row, the lowest of a byte
    first."""

    few: NDArray[np.int64] | None
    bits: NDArray[np.uint8]

    def mask(self, first: int, count: int) -> Mask:
        """Return whether each of ``count`` rows from ``first`` on is allowed."""
        import numpy as np

        if self.few is not None:
            mask = np.zeros(count, np.bool_)
            start, stop = np.searchsorted(self.few, (first, first + count))
            mask[self.few[start:stop] - first] = True
            return mask
        before = first % 8
        part = self.bits[first // 8 : (first + count + 7) // 8]
        return np.unpackbits(part, bitorder="little")[before : before + count].view(np.bool_)


class TextRows(NamedTuple):
    """The texts of a unit in corpus order. ``ends`` has, for each chunk, the number of texts up to
    its end, ``rows`` the row of each text. ``total`` also counts rows without a text."""

    ends: NDArray[np.int64]
    rows: NDArray[np.int64]
    total: int


class Allowance:
    """An evaluator of selections, which caches the latest scopes. Safe to use from several
    threads."""

    def __init__(
        self,
        columns: Columns,
        ordinals: Ordinals,
        texts: Mapping[VectorUnit, TextRows],
        deleted: Mask | None,
    ) -> None:
        """Take the arrays of a sidecar; ``ordinals`` are those of its chunks. ``deleted`` marks
        chunks that are never allowed."""
        self._columns = columns
        self._ordinals = ordinals
        self._texts = texts
        self._deleted = deleted
        self._lock = threading.Lock()
        self._cached: OrderedDict[tuple[VectorUnit, Scope | None], AllowedRows] = OrderedDict()

    def rows(self, unit: VectorUnit, within: Scope | Ordinals | None) -> AllowedRows | None:
        """Return the rows of a unit that may be found; None for all."""
        if within is not None and not isinstance(within, Scope):
            return self._of_chunks(unit, self._chunks_at(within))
        scope = within if within is not None and (within.include or within.exclude) else None
        if scope is None and self._deleted is None:
            texts = self._texts[unit]
            if len(texts.rows) == texts.total:
                return None
        key = unit, scope
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                return self._cached[key]
        chunks = self._columns.within(scope if scope is not None else Scope())
        allowed = self._of_chunks(unit, chunks)
        with self._lock:
            self._cached[key] = allowed
            while len(self._cached) > _KEPT_SCOPES:
                self._cached.popitem(last=False)
        return allowed

    def _chunks_at(self, ordinals: Ordinals) -> Mask:
        """Return, for each chunk, whether it has one of these ordinals."""
        import numpy as np

        mask = np.zeros(len(self._ordinals), np.bool_)
        at = np.searchsorted(self._ordinals, ordinals)
        inside = at < len(mask)
        at = at[inside]
        mask[at[self._ordinals[at] == ordinals[inside]]] = True
        return mask

    def _of_chunks(self, unit: VectorUnit, chunks: Mask) -> AllowedRows:
        """Return the rows of the marked chunks; ``chunks`` is changed."""
        import numpy as np

        ends, rows, total_rows = self._texts[unit]
        if self._deleted is not None:
            chunks &= ~self._deleted
        positions = np.flatnonzero(chunks)
        stops = ends[positions]
        starts = np.where(positions > 0, ends[positions - 1], 0)
        counts = stops - starts
        total = int(counts.sum())
        if total < FEW_ROWS:
            # text number = start of its chunk + number of earlier texts in the chunk
            before = np.cumsum(counts) - counts
            texts = np.repeat(starts - before, counts) + np.arange(total)
            return AllowedRows(np.sort(rows[texts]), np.empty(0, np.uint8))
        mask = np.zeros(total_rows, np.bool_)
        mask[rows[np.repeat(chunks, np.diff(ends, prepend=0))]] = True
        return AllowedRows(None, np.packbits(mask, bitorder="little"))

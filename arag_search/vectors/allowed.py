"""Which rows a search may find: those in scope whose chunks are not deleted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arag_search.query.tree import Scope
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

FEW_ROWS = 50_000
"""Fewer allowed rows than this are scored one by one, whatever the index."""

_KEPT_SCOPES = 8


@dataclass(frozen=True, slots=True)
class AllowedRows:
    """``few`` are the row numbers where they are fewer than FEW_ROWS, growing; else None, and
    ``bits`` has a bit for each row, the lowest of a byte first."""

    few: NDArray[np.int64] | None
    bits: NDArray[np.uint8]

    def mask(self, first: int, count: int) -> Mask:
        """Of each of ``count`` rows from ``first`` on, whether it is allowed."""
        import numpy as np

        before = first % 8
        part = self.bits[first // 8 : (first + count + 7) // 8]
        return np.unpackbits(part, bitorder="little")[before : before + count].view(np.bool_)


class Allowance:
    """Evaluates scopes to rows, and keeps the last of them. Safe to use from several threads."""

    def __init__(
        self,
        columns: Columns,
        ends: Mapping[VectorUnit, NDArray[np.int64]],
        deleted: Mask | None,
    ) -> None:
        """``ends`` tell of each chunk which row of a unit is the first that is not its;
        ``deleted`` which chunks are never allowed."""
        self._columns = columns
        self._ends = ends
        self._deleted = deleted
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[VectorUnit, Scope | None], AllowedRows] = OrderedDict()

    def rows(self, unit: VectorUnit, scope: Scope | None) -> AllowedRows | None:
        """The rows of a unit that may be found; None for all."""
        if scope is not None and not (scope.include or scope.exclude):
            scope = None
        if scope is None and self._deleted is None:
            return None
        key = unit, scope
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = self._evaluate(unit, scope)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > _KEPT_SCOPES:
                self._kept.popitem(last=False)
        return found

    def _evaluate(self, unit: VectorUnit, scope: Scope | None) -> AllowedRows:
        import numpy as np

        ends = self._ends[unit]
        chunks = np.ones(len(ends), np.bool_) if scope is None else self._columns.within(scope)
        if self._deleted is not None:
            chunks &= ~self._deleted
        positions = np.flatnonzero(chunks)
        stops = ends[positions]
        starts = np.where(positions > 0, ends[positions - 1], 0)
        counts = stops - starts
        total = int(counts.sum())
        if total < FEW_ROWS:
            # row = start of its chunk + how many rows of that chunk came before
            before = np.cumsum(counts) - counts
            few = np.repeat(starts - before, counts) + np.arange(total)
            return AllowedRows(few.astype(np.int64), np.empty(0, np.uint8))
        each = np.diff(ends, prepend=0)
        return AllowedRows(None, np.packbits(np.repeat(chunks, each), bitorder="little"))

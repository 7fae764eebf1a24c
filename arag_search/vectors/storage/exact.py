"""Exact search: the best rows by the cosine of their stored vectors, equal ones in corpus order.

Blocks of vectors are multiplied in float32, as fast as the processor can. That determines which
rows may be among the best: sums with different rounding differ by less than ``_SLACK``. Those few
are scored in float64, rounded to float32, and ordered by score and ordinal, so that equal vectors
have equal scores wherever they are stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag_search.engines.base import Mask, Ordinals
from arag_search.plan.clauses import ResolvedPlan
from arag_search.vectors.base import KEY_BYTES, FloatArray, Nearest, Selection, VectorUnit
from arag_search.vectors.storage.columns import Columns
from arag_search.vectors.storage.shards import MappedRows

Rows = NDArray[np.int64]

_SLACK = 1e-5
_SCORES = 1 << 23  # of a block at once: 32 MB
_MOST_BLOCK_ROWS = 1 << 17
_LEAST_BLOCK_ROWS = 1 << 10
_MOST_CONVERTED = 1 << 24  # elements of a block that is float16 on disk: 64 MB
_STRIPE_ROWS = 1 << 12
_MOST_ALONE = 1 << 23  # elements that one thread multiplies by a query: 2 ms
_RESCORED = 1 << 14  # rows that are scored in float64 at once


class RowTexts(NamedTuple):
    """For each row of a unit, the ordinal of its text (int64) and its key (uint8, 16 columns)."""

    ordinals: Rows
    keys: NDArray[np.uint8]


def block_rows(queries: int, dimension: int, *, converted: bool) -> int:
    """Return how many rows to multiply at once, so that they take at most about 100 MB."""
    rows = min(_SCORES // max(1, queries), _MOST_BLOCK_ROWS)
    if converted:
        rows = min(rows, _MOST_CONVERTED // dimension)
    return max(rows, _LEAST_BLOCK_ROWS)


def best_of_all(
    mapped: MappedRows,
    queries: FloatArray,
    n: int,
    allowed: Callable[[int, int], NDArray[np.bool_]] | None,
) -> list[Rows]:
    """Return, for each query, the rows that may be among its ``n`` best. ``allowed`` is called with
    a first row and a count, and returns whether each of these rows counts; None allows all."""
    pools = [_Pool(n) for _ in range(len(queries))]
    for first, scores in _scored(mapped, queries):
        rejected = None if allowed is None else ~allowed(first, scores.shape[1])
        for pool, row_scores in zip(pools, scores, strict=True):
            if rejected is not None:
                row_scores[rejected] = -np.inf
            pool.add(first, row_scores)
    return [pool.rows() for pool in pools]


def best_of_rows(mapped: MappedRows, queries: FloatArray, n: int, rows: Rows) -> list[Rows]:
    """Return, for each query, those of ``rows`` that may be among its ``n`` best."""
    pools = [_Pool(n) for _ in range(len(queries))]
    size = block_rows(len(queries), mapped.dimension, converted=True)
    for first in range(0, len(rows), size):
        vectors = mapped.gather(rows[first : first + size])
        for pool, scores in zip(pools, _products(vectors, queries), strict=True):
            pool.add(first, scores)
    return [rows[np.asarray(pool.rows())] for pool in pools]


def ranked(
    mapped: MappedRows, texts: RowTexts, query: FloatArray, rows: Rows, n: int
) -> list[Nearest]:
    """Return the ``n`` best of ``rows`` by their stored vectors; equal scores by ordinal."""
    scores = np.empty(len(rows), np.float32)
    wanted = query.astype(np.float64)
    for start in range(0, len(rows), _RESCORED):
        vectors = mapped.gather(rows[start : start + _RESCORED])
        # each row is summed separately, so that its position does not change its score
        scores[start : start + _RESCORED] = np.einsum(
            "ij,j->i", vectors, wanted, dtype=np.float64, optimize=False
        )
    return in_order(texts, rows, scores, n)


def in_order(texts: RowTexts, rows: Rows, scores: FloatArray, n: int) -> list[Nearest]:
    """Return the ``n`` best of ``rows``, best first, equal scores in order of ordinal."""
    ordinals = texts.ordinals[rows]
    order = np.lexsort((ordinals, -scores))[:n]
    keys = texts.keys[rows[order]].tobytes()
    best = zip(ordinals[order].tolist(), scores[order].tolist(), strict=True)
    return [
        Nearest(ordinal, score, keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])
        for at, (ordinal, score) in enumerate(best)
    ]


class _Pool:
    """The rows that may still be among the ``n`` best of one query.

    ``_least`` is a score that ``n`` rows reach; rows clearly below it are dropped.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._least = -1e30  # rejected rows have less
        self._rows: list[Rows] = []
        self._scores: list[FloatArray] = []
        self._kept = 0

    def add(self, first: int, scores: FloatArray) -> None:
        """Add the scores of the rows from ``first`` on."""
        if self._kept < self._n and len(scores) > self._n:
            self._raise_to(scores)
        rows = np.flatnonzero(scores >= self._least - _SLACK)
        if len(rows):
            self._scores.append(scores[rows])
            self._rows.append(rows + first)
            self._kept += len(rows)
        if self._kept > 4 * self._n + 1000:
            self._shrink()

    def rows(self) -> Rows:
        """Return the remaining rows."""
        self._shrink()
        return self._rows[0] if self._rows else np.empty(0, np.int64)

    def _raise_to(self, scores: FloatArray) -> None:
        at = len(scores) - self._n
        self._least = max(self._least, float(np.partition(scores, at)[at]))

    def _shrink(self) -> None:
        if not self._rows:
            return
        scores, rows = np.concatenate(self._scores), np.concatenate(self._rows)
        if len(scores) > self._n:
            self._raise_to(scores)
        kept = scores >= self._least - _SLACK
        self._scores, self._rows = [scores[kept]], [rows[kept]]
        self._kept = int(kept.sum())


def _scored(mapped: MappedRows, queries: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first row of each block, and the scores of its rows for each query."""
    size = block_rows(len(queries), mapped.dimension, converted=mapped.is_converted)
    blocks: Iterable[tuple[int, FloatArray]] = mapped.blocks(size)
    for first, vectors in blocks:
        yield first, _products(vectors, queries)


def _products(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the product of each query with each row of ``vectors``, of shape (queries, rows).

    Stripes of some thousand rows, multiplied by a matrix of few columns, are twice as fast for 2
    to 16 queries as ``queries @ vectors.T``, and no slower for more. They are transposed while they
    are in the cache. One query in few rows is not worth the threads of a product of matrices, which
    a search by words may need.
    """
    if len(queries) == 1 and vectors.size <= _MOST_ALONE:
        return np.vecdot(vectors, queries[0])[None]
    products = np.empty((len(queries), len(vectors)), np.float32)
    for start in range(0, len(vectors), _STRIPE_ROWS):
        stripe = vectors[start : start + _STRIPE_ROWS]
        products[:, start : start + len(stripe)] = (stripe @ queries.T).T
    return products


# The rows that a search may find: those of selected texts whose chunks are unchanged
#
# The columns of a sidecar evaluate a scope of metadata clauses, an engine one that searches text.
# Both become the same rows here.


FEW_ROWS = 50_000
"""Fewer allowed rows than this are kept as numbers, and scored exactly by quantised vectors too."""

_KEPT_SCOPES = 8


@dataclass(frozen=True, slots=True)
class AllowedRows:
    """The rows that are allowed, ``count`` of ``total``. Fewer than FEW_ROWS are kept by their
    numbers in ``few``, ascending; otherwise ``few`` is None, and ``bits`` has a bit for every row,
    the lowest of a byte first."""

    count: int
    total: int
    few: NDArray[np.int64] | None
    bits: NDArray[np.uint8]

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the rows, ascending."""
        return np.flatnonzero(self.mask(0, self.total)) if self.few is None else self.few

    def bitmap(self) -> NDArray[np.uint8]:
        """Return a bit for each row, the lowest of a byte first."""
        if self.few is None:
            return self.bits
        return np.packbits(self.mask(0, self.total), bitorder="little")

    def mask(self, first: int, count: int) -> Mask:
        """Return whether each of ``count`` rows from ``first`` on is allowed."""
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
        self._cached: OrderedDict[tuple[VectorUnit, ResolvedPlan | None], AllowedRows | None] = (
            OrderedDict()
        )

    def rows(self, unit: VectorUnit, within: ResolvedPlan | Selection | None) -> AllowedRows | None:
        """Return the rows of a unit that may be found; None for all."""
        scope = within.scope if isinstance(within, Selection) else within
        if scope is None and self._deleted is None:
            texts = self._texts[unit]
            if len(texts.rows) == texts.total:
                return None
        key = unit, scope
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                return self._cached[key]
        if isinstance(within, Selection):
            chunks = within.mark(self._ordinals)
        else:
            chunks = self._columns.within(scope)
        allowed = self._of_chunks(unit, chunks)
        with self._lock:
            self._cached[key] = allowed
            while len(self._cached) > _KEPT_SCOPES:
                self._cached.popitem(last=False)
        return allowed

    def _of_chunks(self, unit: VectorUnit, chunks: Mask) -> AllowedRows | None:
        """Return the rows of the marked chunks; None if these are all."""
        ends, rows, total_rows = self._texts[unit]
        if self._deleted is not None:
            chunks = chunks & ~self._deleted
        allowed = rows[np.repeat(chunks, np.diff(ends, prepend=0))]
        count = len(allowed)
        if count == total_rows:
            return None
        if count < FEW_ROWS:
            return AllowedRows(count, total_rows, np.sort(allowed), np.empty(0, np.uint8))
        mask = np.zeros(total_rows, np.bool_)
        mask[allowed] = True
        return AllowedRows(count, total_rows, None, np.packbits(mask, bitorder="little"))

"""Exact search: the rows that may be best by the cosine of their stored vectors, and their scores.

Blocks of vectors are multiplied in float32, as fast as the processor can. That determines which
rows may be among the best: sums with different rounding differ by less than ``_SLACK``. Those few
are scored in float64 and rounded to float32, so that equal vectors have equal scores wherever they
are stored.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from arag_search.engines.base import Mask
from arag_search.vectors.base import FloatArray
from arag_search.vectors.store import Rows, StoredRows

_SLACK = 1e-5
_SCORES = 1 << 23  # of a block at once: 32 MB
_MOST_BLOCK_ROWS = 1 << 17
_LEAST_BLOCK_ROWS = 1 << 10
_MOST_CONVERTED = 1 << 24  # elements of a block that is float16 on disk: 64 MB
_STRIPE_ROWS = 1 << 12
_MOST_ALONE = 1 << 23  # elements that one thread multiplies by a query: 2 ms
_RESCORED = 1 << 14  # rows that are scored in float64 at once
_GATHERING = 5  # the time to gather a row, as a multiple of the time to pass it in a scan


class AllowedRows:
    """The rows that a search may find: the ``mask`` marks these ``count`` rows among all."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        """A bit for every row, the lowest of a byte first."""
        return np.packbits(self.mask, bitorder="little")

    @cached_property
    def rows(self) -> Rows:
        """The rows, ascending; asked for if they are few."""
        return np.flatnonzero(self.mask)

    def before(self, end: int) -> int:
        """Return how many rows before ``end`` are allowed."""
        return int(np.count_nonzero(self.mask[:end]))


def candidate_rows(
    stored: StoredRows,
    queries: FloatArray,
    n: int,
    allowed: AllowedRows | None = None,
    first: int = 0,
) -> list[Rows]:
    """Return, for each query, the allowed rows from ``first`` on that may be among its ``n`` best.

    Memory does not grow with the number of rows: about 100 MB.
    """
    pools = [_Pool(n) for _ in range(len(queries))]
    total = stored.rows - first
    if allowed is not None and _GATHERING * allowed.count < total:
        rows = allowed.rows[allowed.before(first) :]
        size = block_rows(len(queries), stored.dimension, converted=True)
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            for pool, scores in zip(pools, _products(stored.gather(part), queries), strict=True):
                pool.add(part, scores)
    else:
        size = block_rows(len(queries), stored.dimension, converted=stored.is_converted)
        for start, vectors in stored.blocks(size, first):
            products = _products(vectors, queries)
            if allowed is not None:
                products[:, ~allowed.mask[start : start + len(vectors)]] = -np.inf
            for pool, scores in zip(pools, products, strict=True):
                pool.add(start, scores)
    return [pool.rows() for pool in pools]


def scores_of(stored: StoredRows, query: FloatArray, rows: Rows) -> FloatArray:
    """Return the cosines of rows with a query, each of which depends on its vector alone."""
    scores = np.empty(len(rows), np.float32)
    wanted = query.astype(np.float64)
    for start in range(0, len(rows), _RESCORED):
        vectors = stored.gather(rows[start : start + _RESCORED])
        # each row is summed separately, so that its position does not change its score
        scores[start : start + _RESCORED] = np.einsum(
            "ij,j->i", vectors, wanted, dtype=np.float64, optimize=False
        )
    return scores


def block_rows(queries: int, dimension: int, *, converted: bool) -> int:
    """Return how many rows to multiply at once, so that they take at most about 100 MB."""
    rows = min(_SCORES // max(1, queries), _MOST_BLOCK_ROWS)
    if converted:
        rows = min(rows, _MOST_CONVERTED // dimension)
    return max(rows, _LEAST_BLOCK_ROWS)


class _Pool:
    """The rows that may still be among the ``n`` best of one query.

    ``_least`` is a score that ``n`` rows reach; rows clearly below it are dropped.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._least = -1e30  # rejected rows have less
        self._rows = np.empty(0, np.int64)
        self._scores = np.empty(0, np.float32)

    def add(self, rows: Rows | int, scores: FloatArray) -> None:
        """Add the scores of these rows, or of the rows from a number on."""
        if len(self._rows) < self._n:
            self._raise_to(scores)
        at = np.flatnonzero(scores >= self._least - _SLACK)
        if len(at):
            new = rows + at if isinstance(rows, int) else rows[at]
            self._rows = np.concatenate([self._rows, new])
            self._scores = np.concatenate([self._scores, scores[at]])
        if len(self._rows) > 4 * self._n + 1000:
            self.rows()

    def rows(self) -> Rows:
        """Drop the rows that are not among the best, and return the others, ascending."""
        self._raise_to(self._scores)
        kept = self._scores >= self._least - _SLACK
        self._rows, self._scores = self._rows[kept], self._scores[kept]
        return self._rows

    def _raise_to(self, scores: FloatArray) -> None:
        if (at := len(scores) - self._n) > 0:
            self._least = max(self._least, float(np.partition(scores, at)[at]))


def _products(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the product of each query with each row of ``vectors``, of shape (queries, rows).

    Stripes of some thousand rows are multiplied by a matrix of few columns, and transposed while
    they are in the cache. For 2 to 16 queries this is twice as fast as ``queries @ vectors.T``, and
    for more no slower. One query in few rows uses one thread, and leaves the others to searches by
    words.
    """
    if len(queries) == 1 and vectors.size <= _MOST_ALONE:
        return np.vecdot(vectors, queries[0])[None]
    products = np.empty((len(queries), len(vectors)), np.float32)
    for start in range(0, len(vectors), _STRIPE_ROWS):
        stripe = vectors[start : start + _STRIPE_ROWS]
        products[:, start : start + len(stripe)] = (stripe @ queries.T).T
    return products

"""Rows that are nearest to a query -> passages, best first (A-RAG Eq. 3).

By sentence vectors a passage scores as its best sentence; by passage vectors as itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import chunk_ordinal
from arag_search.query.tree import Scope
from arag_search.vectors.base import Nearest, Vectors, VectorUnit

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

_FIRST_SENTENCES = 16
_SENTENCES_A_PASSAGE = 3
_GROWTH = 4


class NearPassage(NamedTuple):
    """A passage by the ordinal of its chunk, and its cosine with the query.

    ``sentences`` are the numbers (0-based, growing) of those of its sentences that were fetched on
    the way to it, the best among them; empty by passage vectors.
    """

    ordinal: int
    score: float
    sentences: tuple[int, ...] = ()


class NearPassages(NamedTuple):
    """The first passages in order. ``complete`` says that there are no more in scope."""

    passages: list[NearPassage]
    complete: bool


def near_passages(
    vectors: Vectors, unit: VectorUnit, query: FloatArray, n: int, scope: Scope | None = None
) -> NearPassages:
    """The ``n`` passages nearest to a query, of shape (dimension,); fewer where there are fewer.

    Best first, equal scores in corpus order. So many sentences are fetched that ``n`` passages are
    among them, or all there are. Raises NotServedError for a unit without vectors.
    """
    queries = query.reshape(1, -1)
    if unit == "passage":
        rows = vectors.nearest(unit, queries, n, scope)[0]
        return NearPassages([NearPassage(*row) for row in rows], len(rows) < n)
    fetch = max(_FIRST_SENTENCES, _SENTENCES_A_PASSAGE * n)
    while True:
        rows = vectors.nearest(unit, queries, fetch, scope)[0]
        found = _by_chunk(rows)
        complete = len(rows) < fetch
        if complete or len(found) >= n:
            return NearPassages(found[:n], complete and len(found) <= n)
        fetch *= _GROWTH


def _by_chunk(sentences: list[Nearest]) -> list[NearPassage]:
    """The chunks of sentences that come best first, each with the best of its scores."""
    best: dict[int, float] = {}
    numbers: dict[int, list[int]] = {}
    for sentence, score in sentences:
        chunk = chunk_ordinal(sentence)
        best.setdefault(chunk, score)
        numbers.setdefault(chunk, []).append(sentence - chunk)
    return [
        NearPassage(chunk, score, tuple(sorted(numbers[chunk]))) for chunk, score in best.items()
    ]

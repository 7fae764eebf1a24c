"""Rows that are nearest to a query -> passages, best first (A-RAG Eq. 3).

By sentence vectors a passage scores as its best sentence; by passage vectors as itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import Chunk, chunk_ordinal
from arag_search.query.tree import Scope
from arag_search.vectors.base import Nearest, Vectors, VectorUnit
from arag_search.vectors.storage.rows import row_key, rows_of

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

_FIRST_SENTENCES = 16
_SENTENCES_A_PASSAGE = 3
_GROWTH = 4


class NearPassage(NamedTuple):
    """A passage by the ordinal of its chunk, and its cosine with the query.

    ``sentences`` are the numbers (0-based, growing) of those of its sentences that were fetched on
    the way to it, the best among them; empty by passage vectors. ``keys`` are those of the
    sentences, or that of the passage.
    """

    ordinal: int
    score: float
    sentences: tuple[int, ...] = ()
    keys: tuple[bytes, ...] = ()

    def is_of(self, chunk: Chunk) -> bool:
        """Whether the vectors by which this passage was found are those of the chunk's text."""
        texts = dict(rows_of(chunk, "sentence" if self.sentences else "passage"))
        return all(
            (text := texts.get(chunk.ordinal + number)) is not None and row_key(text) == key
            for number, key in zip(self.sentences or (0,), self.keys, strict=True)
        )


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
        passages = [NearPassage(row.ordinal, row.score, (), (row.key,)) for row in rows]
        return NearPassages(passages, len(rows) < n)
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
    keys: dict[int, dict[int, bytes]] = {}
    for sentence, score, key in sentences:
        chunk = chunk_ordinal(sentence)
        best.setdefault(chunk, score)
        keys.setdefault(chunk, {})[sentence - chunk] = key
    passages: list[NearPassage] = []
    for chunk, score in best.items():
        numbers, own_keys = zip(*sorted(keys[chunk].items()), strict=True)
        passages.append(NearPassage(chunk, score, numbers, own_keys))
    return passages

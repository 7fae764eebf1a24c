"""The vectors nearest to a query -> passages, best first (A-RAG Eq. 3).

With sentence vectors a passage has the score of its best sentence, with passage vectors its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import Chunk, chunk_ordinal
from arag_search.query.tree import Scope
from arag_search.vectors.base import Nearest, Vectors, VectorUnit, row_key, rows_of

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray, Ordinals

_FIRST_SENTENCES = 16
_SENTENCES_A_PASSAGE = 3
_GROWTH = 4


class NearPassage(NamedTuple):
    """The ordinal of a passage's chunk, and its cosine with the query.

    ``sentences`` are the numbers (0-based, ascending) of its sentences that were fetched, including
    the best; empty with passage vectors. ``keys`` are the row keys of the sentences, or the row key
    of the passage.
    """

    ordinal: int
    score: float
    sentences: tuple[int, ...] = ()
    keys: tuple[bytes, ...] = ()

    def is_of(self, chunk: Chunk) -> bool:
        """Return whether this passage was found by vectors of the chunk's present text, which of a
        sentence may have the title above it."""
        unit: VectorUnit = "sentence" if self.sentences else "passage"
        return any(
            self._is_of_rows(chunk, dict(rows_of(chunk, unit, sentence_titles=titled)))
            for titled in ((False, True) if self.sentences else (False,))
        )

    def _is_of_rows(self, chunk: Chunk, texts: Mapping[int, str]) -> bool:
        return all(
            (text := texts.get(chunk.ordinal + number)) is not None and row_key(text) == key
            for number, key in zip(self.sentences or (0,), self.keys, strict=True)
        )


class NearPassages(NamedTuple):
    """The first passages in order. ``complete`` says that there are no more within."""

    passages: list[NearPassage]
    complete: bool


def near_passages(
    vectors: Vectors,
    unit: VectorUnit,
    query: FloatArray,
    n: int,
    within: Scope | Ordinals | None = None,
) -> NearPassages:
    """Return the ``n`` passages ``within`` nearest to a query of shape (dimension,), or all if
    fewer.

    The best comes first, equal scores are in corpus order. Sentences are fetched until they cover
    ``n`` passages, or all. Raises NotServedError for a unit without vectors.
    """
    queries = query.reshape(1, -1)
    if unit == "passage":
        rows = vectors.nearest(unit, queries, n, within)[0]
        passages = [NearPassage(row.ordinal, row.score, (), (row.key,)) for row in rows]
        return NearPassages(passages, len(rows) < n)
    fetch = max(_FIRST_SENTENCES, _SENTENCES_A_PASSAGE * n)
    while True:
        rows = vectors.nearest(unit, queries, fetch, within)[0]
        passages = _by_chunk(rows)
        complete = len(rows) < fetch
        if complete or len(passages) >= n:
            return NearPassages(passages[:n], complete and len(passages) <= n)
        fetch *= _GROWTH


def _by_chunk(sentences: list[Nearest]) -> list[NearPassage]:
    """Return the chunks of sentences, which come best first, with the best score of each."""
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

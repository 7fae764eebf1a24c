"""Hybrid search on an inverted file of packed vectors (IVF-PQ), with its recall."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arag_search import Index, open_index
from arag_search.vectors.faiss_index import LEAST_POINTS_A_LIST, lists_for
from arag_search.vectors.opening import QueryCache
from bench import BenchError
from bench.report.rounds import Played, Player, threads
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

TOP = 10
_NUMBERS_A_CODE = 8
"""The numbers of a vector that a byte stands for."""


@dataclass(frozen=True, slots=True)
class Packed:
    """An index with packed vectors, and the share of the ``TOP`` nearest passages of exact search
    that they find."""

    index: Index
    factory: str
    recall: float

    def player(self, queries: Sequence[str], top_k: int) -> Player:
        """Return a player of hybrid searches, which encodes the queries anew in each round."""
        encoder = self.index.open_vectors().encoder
        if not isinstance(encoder, QueryCache):
            raise BenchError("The queries of hybrid search are not encoded as expected.")
        search = self.index.hybrid_search
        play = threads(
            lambda number: search(queries[number], top_k=top_k, snippets=False), len(queries)
        )

        def play_anew(clients: int) -> Played:
            encoder.forget()
            return play(clients)

        return play_anew


@contextmanager
def packed(location: str, encoder: str, vectors: Path, queries: Sequence[str]) -> Generator[Packed]:
    """Embed the passages of an index into folders in ``vectors``, first for exact search, then
    packed, and open it."""
    with _opened(location, encoder, vectors / "flat", "flat") as index:
        exact = _nearest(index, queries)
        rows = index.manifest.chunks
        codes = index.open_vectors().encoder.identity.dimension // _NUMBERS_A_CODE
    lists = max(1, min(lists_for(rows), rows // LEAST_POINTS_A_LIST))
    factory = f"IVF{2 ** int(math.log2(lists))},PQ{codes}"
    with _opened(location, encoder, vectors / "packed", factory) as index:
        pairs = zip(exact, _nearest(index, queries), strict=True)
        shares = [len(nearest & hits) / len(nearest) for nearest, hits in pairs]
        yield Packed(index, factory, sum(shares) / len(shares))


def _opened(location: str, encoder: str, vectors: Path, factory: str) -> Index:
    options = EmbedOptions(vectors=vectors, units=("passage",), index=factory)
    embed_index(location, encoder, options)
    return open_index(location, vectors=vectors, encoder=encoder, search_timeout_s=None)


def _nearest(index: Index, queries: Sequence[str]) -> list[set[str]]:
    search = index.naive_embedding_search
    results = [search(query, top_k=TOP, snippets=False) for query in queries]
    return [{hit.id for hit in result.hits} for result in results]

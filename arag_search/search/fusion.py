"""Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): several rankings into one.

An item scores the sum over the rankings that hold it of weight / (K + rank), ranks counted from 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

K = 60
"""The constant of LogicalRAG's hybrid search, and of the paper that proposed it."""
LOGICAL_K = 1
"""The constant for a logical query and vectors, chosen in bench/studies/retrieval.md. Provisional:
the difference from K was not resolved."""


class Fused(NamedTuple):
    """An item: its ordinal, its score, and its rank (from 1) in each ranking, None if absent."""

    ordinal: int
    score: float
    ranks: tuple[int | None, ...]


def fuse(
    *rankings: Sequence[int], weights: Sequence[float] | None = None, k: float = K
) -> list[Fused]:
    """Return all items of the rankings, best score first, equal scores in order of ordinal.

    Each ranking lists distinct ordinals, best first. Without ``weights``, each of them counts 1.
    """
    ranks_of = [{ordinal: rank for rank, ordinal in enumerate(ranks, 1)} for ranks in rankings]
    weighted = weights or [1.0] * len(rankings)
    fused: list[Fused] = []
    for ordinal in set[int]().union(*ranks_of):
        ranks = tuple(ranking.get(ordinal) for ranking in ranks_of)
        # With fsum the same ranks give the same score, whichever rankings they are in.
        score = math.fsum(
            weight / (k + rank)
            for weight, rank in zip(weighted, ranks, strict=True)
            if rank is not None
        )
        fused.append(Fused(ordinal, score, ranks))
    return sorted(fused, key=lambda item: (-item.score, item.ordinal))


def fuse_logical(logical: Sequence[int], vectors: Sequence[int]) -> list[Fused]:
    """Merge the ranking of a logical query with that of vectors. The small constant keeps the first
    passages of a precise query among the first, whatever the vectors add."""
    return fuse(logical, vectors, k=LOGICAL_K)

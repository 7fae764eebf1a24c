"""Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): several rankings into one.

An item scores the sum over the rankings that hold it of 1 / (K + rank), ranks counted from 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

K = 60
"""The constant of LogicalRAG's hybrid search, and of the paper that proposed it."""


class Fused(NamedTuple):
    """An item: its ordinal, its score, and its rank (from 1) in each ranking, None if absent."""

    ordinal: int
    score: float
    ranks: tuple[int | None, ...]


def fuse(*rankings: Sequence[int]) -> list[Fused]:
    """Return all items of the rankings, best score first, equal scores in order of ordinal.

    Each ranking lists distinct ordinals, best first.
    """
    ranks_of = [{ordinal: rank for rank, ordinal in enumerate(ranks, 1)} for ranks in rankings]
    fused: list[Fused] = []
    for ordinal in set[int]().union(*ranks_of):
        ranks = tuple(ranking.get(ordinal) for ranking in ranks_of)
        # With fsum the same ranks give the same score, whichever rankings they are in.
        score = math.fsum(1 / (K + rank) for rank in ranks if rank is not None)
        fused.append(Fused(ordinal, score, ranks))
    return sorted(fused, key=lambda item: (-item.score, item.ordinal))

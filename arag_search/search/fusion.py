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
    """One item: its ordinal, its score, and its rank (from 1) in each ranking, None where it is in
    none of the places that were looked at."""

    ordinal: int
    score: float
    ranks: tuple[int | None, ...]


def fuse(*rankings: Sequence[int]) -> list[Fused]:
    """All items of the rankings, each given as distinct ordinals, best first.

    Best score first, equal scores in order of ordinal.
    """
    places = [{ordinal: rank for rank, ordinal in enumerate(one, 1)} for one in rankings]
    fused: list[Fused] = []
    for ordinal in set[int]().union(*places):
        ranks = tuple(place.get(ordinal) for place in places)
        # fsum: the same ranks give the same score, in whichever ranking each of them is.
        score = math.fsum(1 / (K + rank) for rank in ranks if rank is not None)
        fused.append(Fused(ordinal, score, ranks))
    return sorted(fused, key=lambda one: (-one.score, one.ordinal))

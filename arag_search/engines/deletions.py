"""Deleted documents that an index still holds: they count in BM25 until they are merged away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from arag_search.errors import IndexProblemError

MAX_DELETED_SHARE = 0.05
"""Above it ``arag-search info`` advises to compact."""


class Counted(Protocol):
    """One of the two indexes that an engine searches."""

    @property
    def documents(self) -> int: ...

    @property
    def deleted(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Deletions:
    """How many of the documents that statistics count are deleted, and the greater share of those
    in chunks and sentences."""

    documents: int
    share: float


def deletions_of(*parts: Counted | None) -> Deletions:
    """What the given parts hold together; None is one that was left out."""
    given = [part for part in parts if part is not None]
    shares = [part.deleted / max(1, part.documents + part.deleted) for part in given]
    return Deletions(sum(part.deleted for part in given), max(shares, default=0.0))


def check_compact(deletions: Deletions, where: str) -> None:
    """Raise IndexProblemError where deleted documents change the scores.

    For comparisons and measurements.
    """
    if deletions.documents:
        raise IndexProblemError(
            f"{deletions.share:.1%} of the index are deleted documents, which change its scores.",
            where=where,
            allowed="an index without deleted documents",
            do=f"Run: arag-search compact {where}",
        )

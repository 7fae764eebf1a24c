"""Deleted documents that an index still holds: BM25 counts them until they are merged away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from arag_search.errors import IndexProblemError

MAX_DELETED_SHARE = 0.05
"""Above this share, ``arag-search info`` recommends to compact."""


class DocumentCounts(Protocol):
    """The counts of one of the two indexes that an engine searches."""

    @property
    def documents(self) -> int: ...

    @property
    def deleted(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deleted documents that statistics still count: how many there are, and their share of the
    chunks or of the sentences, whichever is greater."""

    documents: int
    share: float


def deletions_of(*parts: DocumentCounts | None) -> Deletions:
    """Return the deletions of several indexes together; None is an index that was left out."""
    counts = [part for part in parts if part is not None]
    shares = [part.deleted / max(1, part.documents + part.deleted) for part in counts]
    return Deletions(sum(part.deleted for part in counts), max(shares, default=0.0))


def check_compact(deletions: Deletions, where: str) -> None:
    """Raise IndexProblemError if deleted documents change the scores.

    Comparisons and measurements call this.
    """
    if deletions.documents:
        raise IndexProblemError(
            f"{deletions.share:.1%} of the index are deleted documents, which change its scores.",
            where=where,
            allowed="an index without deleted documents",
            do=f"Run: arag-search compact {where}",
        )

"""Sums over the searches of a record: passages shared by consecutive searches, and the searches
that followed failed ones."""

from __future__ import annotations

from collections.abc import Mapping

from arag_search.agent.record import Record
from arag_search.evaluation.trajectories import trajectories

SUMS = (
    "searches", "pairs", "empty_pairs", "of_larger", "jaccard", "of_asked",
    "failed", "refused", "at_once", "later", "never", "waited",
)  # fmt: skip
"""The names of Overlap and Recovery. Their means are sums here: overlaps over pairs, and in
``waited`` the searches from a failed one to the next that found something."""


def search_sums(record: Record) -> Mapping[str, float]:
    """Return what a record adds to each of SUMS."""
    summary = trajectories([record])
    overlap, recovery = summary.overlap, summary.recovery
    return {
        "searches": summary.searches,
        "pairs": overlap.pairs,
        "empty_pairs": overlap.empty_pairs,
        "of_larger": overlap.pairs * (overlap.of_larger or 0.0),
        "jaccard": overlap.pairs * (overlap.jaccard or 0.0),
        "of_asked": overlap.pairs * (overlap.of_asked or 0.0),
        "failed": recovery.failed,
        "refused": recovery.refused,
        "at_once": recovery.at_once,
        "later": recovery.later,
        "never": recovery.never,
        "waited": (recovery.at_once + recovery.later) * (recovery.searches or 0.0),
    }

"""The passages that a client has been shown since its question began."""

from __future__ import annotations

from arag_search.tools.base import ReadSet


class Session:
    """The read sets of one connection, one for each index. Two sessions share nothing."""

    def __init__(self) -> None:
        self._read_sets: dict[str, ReadSet] = {}

    def read_set(self, index: str) -> ReadSet:
        """Return what was shown from an index. A call works on a copy, which is added when its
        reply is made. So a call that was cancelled before has shown nothing, and a reply that was
        lost in transit counts as shown until ``reset``."""
        return self._read_sets.setdefault(index, ReadSet(is_kept=False))

    def reset(self) -> None:
        """Begin a new question. Running calls still add to the read set of the previous
        question."""
        self._read_sets = {}

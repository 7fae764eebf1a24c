"""What one client has been shown since its question began."""

from __future__ import annotations

from arag_search.tools.base import ReadSet


class Session:
    """The read sets of one connection, one an index. Two sessions share nothing."""

    def __init__(self) -> None:
        self._read_sets: dict[str, ReadSet] = {}

    def read_set(self, index: str) -> ReadSet:
        """What was shown of an index. A call works on a copy, which is added when its reply is
        made: a call that was cancelled before has shown nothing, a reply that was lost on its way
        counts as shown until ``reset``."""
        return self._read_sets.setdefault(index, ReadSet())

    def reset(self) -> None:
        """A new question begins. Calls still at work add to what the question before was shown."""
        self._read_sets = {}

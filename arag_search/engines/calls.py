"""The calls in flight of an engine that threads share, so that ``close`` waits for them."""

from __future__ import annotations

import threading
from types import TracebackType

from arag_search.errors import IndexClosedError


class Calls:
    """A context manager around every call of an engine over the index ``where``."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._in_flight = 0
        self._closed = False

    def __enter__(self) -> None:
        """Count a call as in flight. Raises IndexClosedError after ``close``."""
        with self._lock:
            if self._closed:
                raise IndexClosedError(
                    f"The index {self.where} is closed.", do="Open it again with open_index."
                )
            self._in_flight += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._in_flight -= 1
            if self._closed:
                self._changed.notify_all()

    def close(self) -> bool:
        """Reject further calls and wait for those in flight. Return True to the first caller."""
        with self._changed:
            first = not self._closed
            self._closed = True
            self._changed.wait_for(lambda: self._in_flight == 0)
            return first

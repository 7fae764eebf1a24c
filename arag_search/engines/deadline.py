"""The time limit of one query, in any engine."""

from __future__ import annotations

import time

from arag_search.errors import ArgumentError, QueryTimeoutError

DEFAULT_SEARCH_TIMEOUT_S = 10.0


class Deadline:
    """A point in time, ``timeout_s`` seconds after its creation."""

    __slots__ = ("_until", "timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._until = time.monotonic() + timeout_s

    @staticmethod
    def after(timeout_s: float | None) -> Deadline | None:
        """Return the deadline of a query that begins now; None for a query without a limit."""
        return None if timeout_s is None else Deadline(timeout_s)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline. Raises QueryTimeoutError once it has passed."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise self.exceeded()
        return left

    def check(self) -> None:
        """Raise QueryTimeoutError if the deadline has passed."""
        if time.monotonic() >= self._until:
            raise self.exceeded()

    def exceeded(self) -> QueryTimeoutError:
        """Return the error for a query that took longer."""
        return QueryTimeoutError(
            f"The query took longer than {self.timeout_s:g} s and was stopped.",
            allowed=f"{self.timeout_s:g} s for a query (search_timeout_s, --search-timeout-s)",
        )


def left_nanoseconds(deadline: Deadline | None) -> int:
    """Return the time until a deadline; 0 for None. Raises QueryTimeoutError if it has passed."""
    return 0 if deadline is None else max(1, int(deadline.left_s * 1e9))


def check_search_timeout(timeout_s: float | None) -> None:
    """Raise ArgumentError for an invalid time limit."""
    if timeout_s is not None and not 0 < timeout_s < 1e6:
        raise ArgumentError(
            f"The time limit of a search is {timeout_s:g} s.",
            allowed="more than 0 s, below 1,000,000 s",
            do="None, or 0 on the command line, means no limit.",
        )

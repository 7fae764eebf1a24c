"""Advice on queries that took too long."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from arag_search.engines.base import Deadline, Matching
from arag_search.errors import QueryTimeoutError

KEYWORD_NARROWING: Mapping[Matching, str] = {
    "token": "Give fewer keywords, and shorter phrases.",
    "substring": "Use token matching: substring matching reads every passage.",
}
NARROWING = (
    "Write fewer clauses, shorter phrases and longer prefixes, or join with AND a rare word."
)
HYBRID_NARROWING = "Write fewer words, and rarer ones."


@contextmanager
def advising_on_timeout(
    deadline: Deadline | None, location: str, advice: str
) -> Generator[Deadline | None]:
    """Complete a QueryTimeoutError raised within: add the limit, the index, and advice."""
    try:
        yield deadline
    except QueryTimeoutError as error:
        if deadline is None:
            raise
        complete = deadline.exceeded()
        complete.where = location
        complete.do = advice
        raise complete from error

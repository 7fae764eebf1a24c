"""Advice on queries that took too long."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from arag_search.engines.base import Deadline, Matching
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import Clause, leaves
from arag_search.query.problems import shortened

KEYWORD_NARROWING: Mapping[Matching, str] = {
    "token": "Give fewer keywords, and shorter phrases.",
    "substring": "Use token matching: substring matching reads every passage.",
}
HYBRID_NARROWING = "Write fewer words, and rarer ones."

_LONG_PHRASE_WORDS = 4


@contextmanager
def advising_on_timeout(
    deadline: Deadline | None, location: str, advice: Callable[[], str]
) -> Generator[Deadline | None]:
    """Complete a QueryTimeoutError raised within: add the limit, the index, and advice."""
    try:
        yield deadline
    except QueryTimeoutError as error:
        if deadline is None:
            raise
        complete = deadline.exceeded()
        complete.where = location
        complete.do = advice()
        raise complete from error


def narrowing(query: Clause) -> str:
    """Return advice that names the costliest clause: a loose phrase, a long one, or a prefix."""
    all_leaves = leaves(query)
    phrases = [leaf for leaf in all_leaves if leaf.kind == "phrase"]
    prefixes = [leaf for leaf in all_leaves if leaf.kind == "prefix"]
    phrase = max(phrases, key=lambda leaf: (leaf.slop > 0, len(leaf.words[0])), default=None)
    if phrase is not None and (phrase.slop or len(phrase.words[0]) > _LONG_PHRASE_WORDS):
        return f"Shorten the phrase {shortened(str(phrase))}, or write its rare words with AND."
    if prefixes:
        shortest = min(prefixes, key=lambda prefix: len(prefix.typed))
        return f"Write a longer prefix than {shortened(str(shortest))}, or whole words."
    return "Write fewer clauses, leave out the most frequent words, or join with AND a rare word."

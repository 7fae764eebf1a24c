"""The worst queries that the limits of the language let through, on synthetic passages.

The most frequent words are known: ``word_of`` gives the word of a rank, and a word begins with the
syllable of its rank. So the same candidates are made for every size.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from arag_search.engines.base import Granularity
from arag_search.errors import AragError
from arag_search.query.limits import MAX_LEAVES, MAX_PREFIXES, MAX_SLOP, MAX_WORDS, PREFIX_SHARES
from arag_search.search.index import Index
from arag_search.search.resolve import MAX_VERIFIED
from bench.scale.synthetic import word_of

LIMIT_S = 120.0
"""The longest time for a query here; ``DEFAULT_SEARCH_TIMEOUT_S`` would end it earlier."""
_AGAIN_S = 15.0
"""A query that takes less is asked twice, since the first answer may wait for the disk."""
_LONG_WORDS = 500
"""The rank of the first word of two syllables."""
_GRANULARITIES: tuple[Granularity, ...] = ("chunk", "sentence")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that may be slow."""

    name: str
    query: str
    granularity: Granularity = "chunk"
    top_k: int = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """A candidate's time, the faster of two, and the processor time of its thread; ``error`` is the
    name of the error that ended it."""

    name: str
    query: str
    seconds: float
    processor_s: float
    error: str = ""


def candidates(words: Sequence[str], rare: str) -> list[Candidate]:
    """Return the candidates, each at the limit of something.

    ``words`` are the most frequent ones, two more than ``MAX_LEAVES``; ``rare`` matches at most as
    many passages as a pattern may read.
    """
    leaves = words[:MAX_LEAVES]
    loose = [
        f'"{words[at]} {words[at + 1]} {words[at + 2]}"~{MAX_SLOP}'
        for at in range(min(MAX_LEAVES, MAX_WORDS // 3))
    ]
    short = MAX_PREFIXES // PREFIX_SHARES[3]
    long_words = [word_of(_LONG_WORDS + at) for at in range(MAX_PREFIXES)]
    made = {
        "frequent words, OR": " OR ".join(leaves),
        "frequent words, AND": " AND ".join(leaves),
        "frequent words, NOT": f"({' OR '.join(leaves[:32])}) NOT {' NOT '.join(leaves[32:])}",
        "frequent words, PREFER": f"{leaves[0]} PREFER ({' OR '.join(leaves[1:])})",
        "frequent words, DEMOTE": f"{leaves[0]} DEMOTE ({' OR '.join(leaves[1:])})",
        "pairs of frequent words": " OR ".join(
            f"({first} AND {other})" for first, other in zip(leaves[:32], leaves[32:], strict=True)
        ),
        "loose phrases, OR": " OR ".join(loose),
        "loose phrases, AND": " AND ".join(loose),
        "prefixes of 3 characters": " OR ".join(f"{word[:3]}*" for word in words[:short]),
        "prefixes of 5 characters": " OR ".join(f"{word[:5]}*" for word in long_words),
        "fuzzy words, 2 edits": " OR ".join(f"{word}~2" for word in long_words),
        "fuzzy words that are not there": " AND ".join(f"{word}qq~2" for word in long_words),
        "a pattern": rf'"={rare}" AND /(\w+ )+\w*q/',
    }
    drawn = [
        Candidate(name, query, granularity)
        for granularity in _GRANULARITIES
        for name, query in made.items()
    ]
    return [*drawn, replace(drawn[0], name=f"{drawn[0].name}, 1,000 hits", top_k=1000)]


def outcomes(index: Index) -> Iterator[Outcome]:
    """Ask each candidate, with the counts of its parts and the nearest passages of a reply."""
    words = [word_of(rank) for rank in range(MAX_LEAVES + 2)]
    for candidate in candidates(words, _rare(index)):
        name = f"{candidate.name}, {candidate.granularity}s"
        outcome = _asked(index, name, candidate)
        if outcome.seconds < _AGAIN_S:
            again = _asked(index, name, candidate)
            outcome = min(outcome, again, key=lambda outcome: outcome.seconds)
        yield outcome


def _asked(index: Index, name: str, candidate: Candidate) -> Outcome:
    began, began_thread = time.perf_counter(), time.thread_time()
    error = ""
    try:
        index.logical_search(
            candidate.query,
            top_k=candidate.top_k,
            granularity=candidate.granularity,
            relax=True,
            branches=True,
        )
    except AragError as raised:
        error = type(raised).__name__
    seconds, processor_s = time.perf_counter() - began, time.thread_time() - began_thread
    return Outcome(name, candidate.query, seconds, processor_s, error)


def _rare(index: Index) -> str:
    """Return a word that at most MAX_VERIFIED passages have, by halving the interval of ranks."""
    low, high = 0, 1 << 24
    while high - low > 1:
        rank = (low + high) // 2
        total = index.logical_search(f'"={word_of(rank)}"', top_k=1, snippets=False).total
        if total is not None and total > MAX_VERIFIED:
            low = rank
        else:
            high = rank
    return word_of(high)

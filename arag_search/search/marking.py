"""Where in a text the words of a query stand, for who marks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.tree import Phrase, Prefix, TextLeaf
from arag_search.search.occurrences import adjacent_places, loosened_places

Place = tuple[int, int]
"""Offsets, in code points, of the first character and after the last."""


def places(
    text: str, leaves: Iterable[TextLeaf], field: Literal["title", "content"]
) -> list[Place]:
    """The places of all that the leaves find in a text of a title or of content, in order; what
    overlaps is one place.

    A phrase is one place, one with slop the words of each match. O(words of the text x leaves).
    """
    wanted = [leaf for leaf in leaves if leaf.field in (None, field)]
    if not wanted:
        return []
    tokens, terms = _words(text)
    found: set[Place] = set()
    for leaf in wanted:
        found.update((tokens[first].start, tokens[last].end) for first, last in _runs(leaf, terms))
    return _merged(sorted(found))


@lru_cache(maxsize=2_000)
def _words(text: str) -> tuple[list[Token], list[str]]:
    """The words of a text with their places, and alone; kept, for the same passages are found again
    and again."""
    tokens = analysis.tokens(text)
    return tokens, [token.term for token in tokens]


def _runs(leaf: TextLeaf, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last position of each stretch of words that the leaf finds."""
    if isinstance(leaf, Prefix):
        starts = tuple(spelling[0] for spelling in leaf.spellings)
        yield from ((at, at) for at, term in enumerate(terms) if term.startswith(starts))
        return
    slop = leaf.slop if isinstance(leaf, Phrase) else 0
    for words in leaf.spellings:
        if slop and len(words) > 1:
            for options in loosened_places(terms, words, slop):
                yield from ((at, at) for each in options for at in each)
        else:
            yield from ((at, at + len(words) - 1) for at in adjacent_places(terms, words))


def _merged(ordered: Sequence[Place]) -> list[Place]:
    merged: list[Place] = []
    for start, end in ordered:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

"""The places in a text where the words of a query occur, to be marked on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.matching import Pattern
from arag_search.query.tree import TextLeaf

Mark = tuple[int, int]
"""Offsets, in code points, of the first character and after the last."""


def marks(text: str, leaves: Iterable[TextLeaf], field: Literal["title", "content"]) -> list[Mark]:
    """Return the marks of everything that the leaves match in a title or a content, in order.

    A phrase is one mark; a loose phrase has a mark on each word of a match. Marks that overlap are
    merged. O(words of the text x leaves).
    """
    wanted = [leaf for leaf in leaves if leaf.field in (None, field)]
    if not wanted:
        return []
    tokens, terms = _words(text)
    all_marks: set[Mark] = set()
    for leaf in wanted:
        runs = Pattern.of(leaf).runs(terms)
        all_marks.update((tokens[first].start, tokens[last].end) for first, last in runs)
    return _merged(sorted(all_marks))


@lru_cache(maxsize=2_000)
def _words(text: str) -> tuple[list[Token], list[str]]:
    """Return the tokens of a text, and their terms. Searches find the same passages again, so that
    the last texts are cached."""
    tokens = analysis.tokens(text)
    return tokens, [token.term for token in tokens]


def _merged(ordered: Sequence[Mark]) -> list[Mark]:
    merged: list[Mark] = []
    for start, end in ordered:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

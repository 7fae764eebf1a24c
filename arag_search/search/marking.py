"""The places in a text where the words of a query occur, to be marked on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.matching import Pattern
from arag_search.query.tree import TextLeaf

TextField = Literal["title", "content"]
Mark = tuple[int, int]
"""Offsets, in code points, of the first character and after the last."""


def marks(text: str, leaves: Iterable[TextLeaf], field: TextField) -> list[Mark]:
    """Return the marks of everything that the leaves match in a title or a content, in order.

    A phrase is one mark; a loose phrase has a mark on each word of a match. Marks that overlap are
    merged. O(words of the text x leaves).
    """
    return merged(spans(text, leaves, field))


def spans(text: str, leaves: Iterable[TextLeaf], field: TextField) -> list[Mark]:
    """Return the marks as ``marks`` does, sorted, but those that overlap are not merged."""
    wanted = [leaf for leaf in leaves if leaf.field in (None, field)]
    if not wanted:
        return []
    tokens, terms = _words(text)
    all_marks: set[Mark] = set()
    for leaf in wanted:
        runs = Pattern.of(leaf).runs(terms)
        all_marks.update((tokens[first].start, tokens[last].end) for first, last in runs)
    return sorted(all_marks)


@lru_cache(maxsize=2_000)
def _words(text: str) -> tuple[list[Token], list[str]]:
    """Return the tokens of a text, and their terms. Searches find the same passages again, so that
    the last texts are cached."""
    tokens = analysis.tokens(text)
    return tokens, [token.term for token in tokens]


def merged(ordered: Sequence[Mark]) -> list[Mark]:
    """Return sorted marks with those that overlap merged into one."""
    result: list[Mark] = []
    for start, end in ordered:
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result

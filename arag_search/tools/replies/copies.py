"""Near copies: hits whose texts are nearly the same share a line of a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from arag_search.engines.hits import Hit
from arag_search.query import analysis
from arag_search.query.forms import normal_terms
from arag_search.tokens import count_tokens

ALIKE = 0.85
"""Texts whose word runs have at least this Jaccard similarity are near copies."""
_RUN_WORDS = 4
_COPIED_WORDS = 50
_COMPARED_CHARACTERS = 20_000
_MAX_SAME_TOKENS = 200


class NearCopy(NamedTuple):
    """A hit with nearly the text of another hit, and its place among the hits, from 0."""

    id: str
    title: str
    at: int


class _Text:
    """The words of a hit, and their runs, read when they are compared."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit

    @cached_property
    def words(self) -> list[str]:
        return normal_terms(self.hit.content[:_COMPARED_CHARACTERS], "")

    @cached_property
    def folded(self) -> list[str]:
        text = " ".join(self.words)
        return self.words if text.isascii() else text.casefold().split()

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(self.folded)

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        # A text of fewer words is similar only to itself.
        return frozenset(zip(*(self.folded[start:] for start in range(_RUN_WORDS)), strict=False))

    def copies(self, other: _Text) -> bool:
        """Return whether this is nearly the same text as another one."""
        if not self.words or not (len(self.words) >= _COPIED_WORDS or self._is_of_page(other)):
            return False
        if self.words == other.words:
            return True
        # A word that only one of them has is in a run that only this one has, with three more.
        most = _RUN_WORDS * (1 - ALIKE) * min(len(self.folded), len(other.folded))
        apart = len(self.kinds) + len(other.kinds) - 2 * len(self.kinds & other.kinds)
        if ALIKE * apart > most:
            return False
        shared = len(self.runs & other.runs)
        return shared > 0 and shared >= ALIKE * len(self.runs | other.runs)

    def _is_of_page(self, other: _Text) -> bool:
        mine, its = (hit.id.rpartition("/")[2].partition(".")[0] for hit in (self.hit, other.hit))
        return mine == its and analysis.terms(self.hit.title) == analysis.terms(other.hit.title)


def near_copies(
    hits: Sequence[Hit], typed_in: Callable[[Hit], int]
) -> list[Sequence[NearCopy] | None]:
    """Return the near copies of each hit; None for a hit that is itself a near copy. The first hit
    has them, unless a later one has more of what was typed (``typed_in``).

    Texts are compared by their words alone, so that other markup of a page is no difference. A few
    words that different pages share are no copy. So a short text is compared only with texts of the
    same page, by its title and the name of its file. O(hits^2) comparisons of sets of at most as
    many runs as a text has words.
    """
    texts = list(map(_Text, hits))
    copies: dict[int, list[NearCopy]] = {}
    for at, text in enumerate(texts):
        above = copies if text.hit.content else ()
        original = next((place for place in above if text.copies(texts[place])), None)
        copies[at] = []
        if original is not None:
            first, second = original, at
            if typed_in(text.hit) > typed_in(texts[original].hit):
                first, second = second, first
            hit = texts[second].hit
            named = [*copies[original], NearCopy(hit.id, hit.title, second)]
            if _can_be_named(named):
                del copies[second]
                copies[first] = named
    return [copies.get(at) for at in range(len(hits))]


def _can_be_named(copies: Sequence[NearCopy]) -> bool:
    ids = ", ".join(copy.id for copy in copies)
    return "\n" not in copies[-1].id and count_tokens(ids) <= _MAX_SAME_TOKENS

"""In which sentences of a text a leaf of a query occurs.

A word is looked for as text, which costs little: where it stands between blanks or brackets it is a
token for sure. Only a sentence in which it stands otherwise is cut into tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

from arag_search.query import analysis
from arag_search.query.matching import Pattern

_EDGES = frozenset(" \t\r\n()[]{}<>|/\\!?*+=-–—“”")
"""Characters that are in no token and end each one beside them."""
_EDGES_OF_ASCII = _EDGES | {'"'}
"""The same beside a word of ASCII: between Hebrew letters a quotation mark may be in a token."""
_MIDDLES = frozenset(".,;:")
"""Characters that end a token where an edge or nothing follows; else they may be within one."""


class Sentences:
    """A text cut into sentences, to look for leaves in. ``ends`` are the offsets after each."""

    __slots__ = ("_ends", "_low", "_text", "_tokens")

    def __init__(self, text: str, ends: Sequence[int]) -> None:
        self._text = text
        self._tokens: dict[int, list[str]] = {}
        self._ends = ends
        self._low = analysis.fold(text)  # as long as the text

    def tokens(self, number: int) -> list[str]:
        """The tokens of one sentence."""
        found = self._tokens.get(number)
        if found is None:
            start = self._ends[number - 1] if number else 0
            found = analysis.terms(self._text[start : self._ends[number]])
            self._tokens[number] = found
        return found

    def matching(self, pattern: Pattern) -> set[int]:
        """Return the numbers of the sentences that match. O(length of the text)."""
        matched: set[int] = set()
        unsure: set[int] = set()
        for words in pattern.spellings:
            if not pattern.slop or len(words) == 1:
                self._look_for(" ".join(words), pattern.is_prefix, matched, unsure)
            if len(words) > 1:  # with something else than a blank between them
                unsure |= self._with_all(words)
        for number in unsure - matched:
            if pattern.matches(self.tokens(number)):
                matched.add(number)
        return matched

    def _look_for(self, wanted: str, is_prefix: bool, matched: set[int], unsure: set[int]) -> None:
        """Add sentences that have this as tokens for sure, and those that have it otherwise."""
        low, ends = self._low, self._ends
        edges = _EDGES_OF_ASCII if wanted.isascii() else _EDGES
        at = low.find(wanted)
        while at >= 0:
            number = bisect_right(ends, at)
            end = ends[number]
            if number not in matched:
                stop = at + len(wanted)
                start = ends[number - 1] if number else 0
                if (at == start or low[at - 1] in edges) and (
                    stop == end or is_prefix or (stop < end and _ends_at(stop, low, end, edges))
                ):
                    matched.add(number)
                else:
                    unsure.add(number)
                    end = at + 1
            at = low.find(wanted, end)

    def _with_all(self, words: Sequence[str]) -> set[int]:
        """Return the sentences that have each of the words, even within another word."""
        numbers: set[int] | None = None
        for word in set(words):
            with_word: set[int] = set()
            at = self._low.find(word)
            while at >= 0:
                number = bisect_right(self._ends, at)
                with_word.add(number)
                at = self._low.find(word, self._ends[number])
            numbers = with_word if numbers is None else numbers & with_word
            if not numbers:
                break
        return numbers or set()


def _ends_at(stop: int, low: str, end: int, edges: Collection[str]) -> bool:
    """Whether a token that stands before an offset ends there for sure."""
    after = low[stop]
    return after in edges or (after in _MIDDLES and (stop + 1 == end or low[stop + 1] in edges))

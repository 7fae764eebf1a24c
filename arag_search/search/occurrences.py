"""The sentences of a text in which a leaf of a query occurs.

A word is searched as text, which is cheap: between blanks or brackets it is certainly a token. Only
a sentence in which it occurs otherwise is split into tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from arag_search.corpus import split_at
from arag_search.plan.clauses import Clause
from arag_search.plan.matching import Pattern, Words, patterns_of
from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.forms import Form, normal_forms, normal_terms

_EDGES = frozenset(" \t\r\n()[]{}<>|/\\!?*+=-–—“”")
"""Characters that no token holds, and that end a token next to them."""
_EDGES_OF_ASCII = _EDGES | {'"'}
"""The same next to a word of ASCII: between Hebrew letters a quotation mark may be in a token."""
_MIDDLES = frozenset(".,;:")
"""Characters that end a token if an edge or nothing follows; otherwise a token may hold them."""


class Sentences:
    """A text with its sentences; ``ends`` has the offset after each sentence, and ``code`` is that
    of ``normal_forms``."""

    __slots__ = ("_code", "_ends", "_low", "_text", "_words")

    def __init__(self, text: str, ends: Sequence[int], code: bool = False) -> None:
        self._text = text
        self._words: dict[int, Words] = {}
        self._ends = ends
        self._code = code
        self._low = analysis.fold(text)  # as long as the text

    def words(self, number: int) -> Words:
        """Return the words of one sentence."""
        words = self._words.get(number)
        if words is None:
            start = self._ends[number - 1] if number else 0
            words = Words(self._text[start : self._ends[number]], self._code)
            self._words[number] = words
        return words

    def matching(self, pattern: Pattern) -> set[int]:
        """Return the numbers of the sentences that match a pattern. O(length of the text)."""
        if pattern.language:  # other words than the pattern's match
            forms = _forms(self._text, tuple(self._ends), pattern.language, self._code)
            return {at for at, terms in enumerate(forms) if pattern.matches(terms)}
        if pattern.edits:
            return {at for at in range(len(self._ends)) if self.words(at).match(pattern)}
        matched: set[int] = set()
        unsure: set[int] = set()
        for words in pattern.spellings:
            if not pattern.slop or len(words) == 1:
                self._search(" ".join(words), pattern.is_prefix, matched, unsure)
            if len(words) > 1:  # perhaps with something other than a blank between them
                unsure |= self._with_all(words)
        for number in unsure - matched:
            if self.words(number).match(pattern):
                matched.add(number)
        return matched

    def _search(self, wanted: str, is_prefix: bool, matched: set[int], unsure: set[int]) -> None:
        """Add sentences that certainly have this text as tokens, and those that might."""
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


@lru_cache(maxsize=2_000)
def _forms(text: str, ends: tuple[int, ...], language: str, code: bool) -> list[list[str]]:
    """Return the normal forms of the sentences of a text. Searches find the same passages again, so
    that the last ones are cached."""
    return [normal_terms(sentence, language, code=code) for sentence in split_at(text, ends)]


def _ends_at(stop: int, low: str, end: int, edges: Collection[str]) -> bool:
    """Return whether a token before an offset certainly ends there."""
    after = low[stop]
    return after in edges or (after in _MIDDLES and (stop + 1 == end or low[stop + 1] in edges))


# The places in a text where the words of a query occur, to be marked on a page


TextField = Literal["title", "content"]
Mark = tuple[int, int]
"""Offsets, in code points, of the first character and after the last."""


def marks(text: str, leaves: Iterable[Clause], field: TextField, code: bool = False) -> list[Mark]:
    """Return the marks of everything that the leaves match in a title or a content, in order.

    A phrase is one mark; a loose phrase has a mark on each word of a match. Marks that overlap are
    merged. ``code`` is that of ``normal_forms``. O(words of the text x leaves).
    """
    return merged(spans(text, leaves, field, code))


def spans(text: str, leaves: Iterable[Clause], field: TextField, code: bool = False) -> list[Mark]:
    """Return the marks as ``marks`` does, sorted, but those that overlap are not merged."""
    wanted = [leaf for leaf in leaves if leaf.field in (None, field)]
    if not wanted:
        return []
    all_marks: set[Mark] = set()
    for leaf in wanted:
        if leaf.lookup is not None:
            all_marks.update(leaf.lookup.places(text))
            continue
        for pattern in patterns_of(leaf):
            words, terms = _words(text, pattern.language, code)
            runs = pattern.runs(terms)
            all_marks.update((words[first].start, words[last].end) for first, last in runs)
    return sorted(all_marks)


@lru_cache(maxsize=2_000)
def _words(text: str, language: str, code: bool) -> tuple[Sequence[Token | Form], list[str]]:
    """Return the words of a text with their places, and their terms. Searches find the same
    passages again, so that the last texts are cached."""
    words = normal_forms(text, language, code=code) if language else analysis.tokens(text)
    return words, [word.term for word in words]


def merged(ordered: Sequence[Mark]) -> list[Mark]:
    """Return sorted marks with those that overlap merged into one."""
    result: list[Mark] = []
    for start, end in ordered:
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result

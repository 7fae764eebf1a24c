"""The sentences of a text in which a leaf of a query occurs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal

from arag_search.corpus import split_at
from arag_search.plan.clauses import Clause
from arag_search.plan.matching import Pattern, patterns_of, terms_of
from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.forms import HOLE, Form, normal_forms


class Sentences:
    """A text with its sentences; ``ends`` has the offset after each sentence, and ``code`` is that
    of ``normal_forms``."""

    __slots__ = ("_code", "_ends", "_terms", "_text")

    def __init__(self, text: str, ends: Sequence[int], code: bool = False) -> None:
        self._text = text
        self._ends = tuple(ends)
        self._code = code
        self._terms: dict[str, _Terms] = {}

    def matching(self, pattern: Pattern) -> set[int]:
        """Return the numbers of the sentences that match a pattern."""
        return self._in(pattern.language).matching(pattern)

    def match(self, pattern: Pattern) -> bool:
        """Return whether the text as a whole matches a pattern."""
        return self._in(pattern.language).match(pattern)

    def _in(self, language: str) -> _Terms:
        terms = self._terms.get(language)
        if terms is None:
            terms = self._terms[language] = _terms(self._text, self._ends, language, self._code)
        return terms


class _Terms:
    """The terms of a text and of its sentences."""

    def __init__(self, text: str, ends: tuple[int, ...], language: str, code: bool) -> None:
        sentences = split_at(text, ends)
        self._sentences = [terms_of(sentence, language, code) for sentence in sentences]
        # A word may go on in the next sentence, and parts of words stand behind all words.
        is_apart = all(sentence[-1:].isspace() for sentence in sentences[:-1])
        self._all = list(chain(*self._sentences))
        if not is_apart or HOLE in self._all:
            self._all = terms_of(text, language, code)
        self._set = frozenset(self._all)

    @cached_property
    def _sets(self) -> list[frozenset[str]]:
        return list(map(frozenset, self._sentences))

    def matching(self, pattern: Pattern) -> set[int]:
        if pattern.is_expanded:
            return {
                at for at, terms in enumerate(self._sets) if any(map(pattern.expands_to, terms))
            }
        return {
            at
            for words in pattern.spellings
            for at, terms in enumerate(self._sets)
            if terms.issuperset(words) and (not words[1:] or pattern.matches(self._sentences[at]))
        }

    def match(self, pattern: Pattern) -> bool:
        if pattern.is_expanded:
            return any(map(pattern.expands_to, self._set))
        likely = [words for words in pattern.spellings if self._set.issuperset(words)]
        return any(not words[1:] for words in likely) or (
            bool(likely) and pattern.matches(self._all)
        )


_terms = lru_cache(maxsize=32)(_Terms)
"""Searches find the same passages again, so that the terms of the last ones are cached."""


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

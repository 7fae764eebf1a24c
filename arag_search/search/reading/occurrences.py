"""The sentences and the places of a text in which a leaf of a query occurs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal

from arag_search.corpus import TextKind, kind_of, split_at
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause
from arag_search.plan.matching import Pattern, Words, patterns_of, terms_of
from arag_search.query import analysis
from arag_search.query.analysis import Token
from arag_search.query.forms import HOLE, NormalForm, normal_forms


class Sentences:
    """A text with its sentences. ``ends`` has the offset after each sentence; ``kind`` is as in
    ``normal_forms``."""

    __slots__ = ("_ends", "_kind", "_matching", "_terms", "_text")

    def __init__(self, text: str, ends: Sequence[int], kind: TextKind = "") -> None:
        self._text = text
        self._ends = tuple(ends)
        self._kind: TextKind = kind
        self._terms: dict[str, _Terms] = {}
        self._matching: dict[Pattern, set[int]] = {}

    def matching(self, pattern: Pattern) -> set[int]:
        """Return the numbers of the sentences that match a pattern. Each pattern is looked for
        once."""
        numbers = self._matching.get(pattern)
        if numbers is None:
            numbers = self._matching[pattern] = self._in(pattern.language).matching(pattern)
        return numbers

    def match(self, pattern: Pattern) -> bool:
        """Return whether the text as a whole matches a pattern."""
        terms = self._in(pattern.language)
        if terms.is_apart:
            if self.matching(pattern):
                return True
            if pattern.is_expanded:  # one word, which is in one sentence
                return False
        return terms.match(pattern)

    def _in(self, language: str) -> _Terms:
        terms = self._terms.get(language)
        if terms is None:
            terms = self._terms[language] = _Terms(self._text, self._ends, language, self._kind)
        return terms


class _Terms:
    """The terms of a text and of its sentences.

    ``is_apart``: every sentence ends with white space. Otherwise a word may go on in the next one,
    and only the text as a whole has its term.
    """

    def __init__(self, text: str, ends: tuple[int, ...], language: str, kind: TextKind) -> None:
        sentences = split_at(text, ends)
        self.is_apart = all(map(str.isspace, [sentence[-1:] for sentence in sentences[:-1]]))
        self._sentences = [terms_of(sentence, language, kind) for sentence in sentences]
        self._whole = text, language, kind

    @cached_property
    def _all(self) -> list[str]:
        terms = list(chain(*self._sentences))
        # Parts of words stand behind all words.
        return terms if self.is_apart and HOLE not in self._set else terms_of(*self._whole)

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(chain(*self._sentences)) if self.is_apart else frozenset(self._all)

    @cached_property
    def _sets(self) -> list[frozenset[str]]:
        return list(map(frozenset, self._sentences))

    def matching(self, pattern: Pattern) -> set[int]:
        if pattern.is_expanded:
            alike = pattern.expansions(self._set)
            return {at for at, terms in enumerate(self._sets) if not alike.isdisjoint(terms)}
        return {
            at
            for words in pattern.spellings
            if not self.is_apart or self._set.issuperset(words)
            for at, terms in enumerate(self._sets)
            if terms.issuperset(words) and (not words[1:] or pattern.matches(self._sentences[at]))
        }

    def match(self, pattern: Pattern) -> bool:
        if pattern.is_expanded:
            return bool(pattern.expansions(self._set))
        likely = [words for words in pattern.spellings if self._set.issuperset(words)]
        return any(not words[1:] for words in likely) or (
            bool(likely) and pattern.matches(self._all)
        )


class AnalysedTexts:
    """The analysed texts of the passages of one search.

    The judge of conditions, the choice of snippets and the nearest passages share them, so that
    each text is analysed once.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], tuple[Words, Sentences]] = {}

    def of(self, hit: Hit) -> tuple[Words, Sentences]:
        """Return the heading and the content of a hit."""
        # A sentence that is judged alone has no ends, and an id that a passage may have, too.
        key = hit.id, bool(hit.sentence_ends)
        known = self._known.get(key)
        if known is None:
            kind, ends = kind_of(hit.doc_id), hit.sentence_ends or (len(hit.content),)
            known = Words(*hit.heading, kind=kind), Sentences(hit.content, ends, kind)
            self._known[key] = known
        return known


# The places in a text where the words of a query occur, to be marked on a page


MarkedField = Literal["title", "content"]
Mark = tuple[int, int]
"""Offsets, in code points, of the first character and after the last."""


def marks(
    text: str, leaves: Iterable[Clause], field: MarkedField, kind: TextKind = ""
) -> list[Mark]:
    """Return the marks of everything that the leaves match in a title or a content, in order.

    A phrase is one mark; a loose phrase has a mark on each word of a match. Marks that overlap are
    merged. ``kind`` is as in ``normal_forms``. O(words of the text x leaves).
    """
    return merged(spans(text, leaves, field, kind))


def spans(
    text: str, leaves: Iterable[Clause], field: MarkedField, kind: TextKind = ""
) -> list[Mark]:
    """Return the marks as ``marks`` does, sorted, but does not merge overlapping ones."""
    wanted = [leaf for leaf in leaves if leaf.field in (None, field)]
    if not wanted:
        return []
    all_marks: set[Mark] = set()
    for leaf in wanted:
        if leaf.lookup is not None:
            all_marks.update(leaf.lookup.places(text))
            continue
        for pattern in patterns_of(leaf):
            words, terms = _words(text, pattern.language, kind)
            runs = pattern.runs(terms)
            all_marks.update((words[first].start, words[last].end) for first, last in runs)
    return sorted(all_marks)


@lru_cache(maxsize=2_000)
def _words(
    text: str, language: str, kind: TextKind
) -> tuple[Sequence[Token | NormalForm], list[str]]:
    """Return the words of a text with their places, and their terms. Searches find the same
    passages again, so that the last texts are cached."""
    words = normal_forms(text, language, kind=kind) if language else analysis.tokens(text)
    return words, [word.term for word in words]


def merged(ordered: Sequence[Mark]) -> list[Mark]:
    """Return sorted marks, with overlapping ones merged into one."""
    result: list[Mark] = []
    for start, end in ordered:
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result

"""Text fields in memory: inverted, with the positions of each term and their BM25 scores, or only
scanned.

Scores equal those of Lucene's BM25Similarity to the last bit. That requires its arithmetic: every
step is rounded to 32 bits, and the length of a text is stored in one byte, so that lengths from 40
on share a score with their neighbours. In 64 bits some hits would be ordered differently.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from ctypes import c_float

from arag_search.engines.deadline import Deadline
from arag_search.query import analysis
from arag_search.query.matching import Pattern, Positions, loose_matches, phrase_starts

_EXACT_LENGTHS = 24  # the byte of a norm holds this many lengths unchanged


def float32(value: float) -> float:
    """Return the nearest 32-bit float.

    Applied to the result of one 64-bit operation on 32-bit values, it gives the result of the
    32-bit operation, since 64 bits have more than twice the digits.
    """
    return c_float(value).value


class TextField:
    """The postings of one field over documents 0, 1, 2, … and their BM25 scores."""

    def __init__(self, texts: Iterable[Sequence[str]], k1: float, b: float) -> None:
        """Index the terms of each document, in order. A document without terms does not count."""
        self._postings: dict[str, dict[int, list[int]]] = {}
        self._norms: list[int] = []
        self._documents = 0
        self._deadline: Deadline | None = None
        length = 0
        for document, terms in enumerate(texts):
            for position, term in enumerate(terms):
                self._postings.setdefault(term, {}).setdefault(document, []).append(position)
            self._norms.append(_length_byte(len(terms)))
            self._documents += bool(terms)
            length += len(terms)
        self._dictionary = sorted(self._postings)
        average = length / max(self._documents, 1)
        self._inverse_norms = _inverse_norms(set(self._norms), average, k1, b)

    def until(self, deadline: Deadline) -> TextField:
        """Return a copy whose evaluation raises QueryTimeoutError after a deadline."""
        limited = copy(self)
        limited._deadline = deadline
        return limited

    def scores(self, pattern: Pattern, boost: float) -> dict[int, float]:
        """Return the BM25 score, times ``boost``, of each document that matches.

        The pattern has one spelling. The score of a prefix is the boost itself.
        """
        frequencies = self.frequencies(pattern)
        if pattern.is_prefix:
            return dict.fromkeys(frequencies, boost)
        (terms,) = pattern.spellings
        weight = float32(boost * float32(sum(self._idf(term) for term in terms)))
        known: dict[tuple[float, int], float] = {}
        scores: dict[int, float] = {}
        for document, frequency in frequencies.items():
            key = frequency, self._norms[document]
            score = known.get(key)
            if score is None:
                part = float32(1 + float32(frequency * self._inverse_norms[key[1]]))
                score = known[key] = float32(weight - float32(weight / part))
            scores[document] = score
        return scores

    def matching(self, pattern: Pattern) -> Collection[int]:
        """Return the documents that match a pattern of one spelling."""
        return self.frequencies(pattern).keys()

    def frequencies(self, pattern: Pattern) -> Mapping[int, float]:
        """Return how often each document matches a pattern of one spelling.

        A loose match counts as less than 1, all matches of a prefix together as 1.
        """
        (terms,) = pattern.spellings
        if pattern.is_prefix:
            return dict.fromkeys(self._with_prefix(terms[0]), 1.0)
        if self._deadline is not None:
            self._deadline.check()
        lists = [self._postings.get(term, {}) for term in terms]
        if len(terms) == 1:
            return {document: len(positions) for document, positions in lists[0].items()}
        shortest = min(lists, key=len)
        repeats = len(set(terms)) < len(terms)
        frequencies: dict[int, float] = {}
        for document in shortest:
            if self._deadline is not None:
                self._deadline.check()
            if all(document in postings for postings in lists):
                positions = [postings[document] for postings in lists]
                frequency = _frequency(positions, pattern.slop, repeats)
                if frequency:
                    frequencies[document] = frequency
        return frequencies

    def documents(self) -> set[int]:
        """Return the documents with a term."""
        return set[int]().union(*self._postings.values())

    def _with_prefix(self, prefix: str) -> Iterator[int]:
        """Yield the documents with a term that begins so, perhaps several times."""
        for at in range(bisect_left(self._dictionary, prefix), len(self._dictionary)):
            if not self._dictionary[at].startswith(prefix):
                break
            if self._deadline is not None:
                self._deadline.check()
            yield from self._postings[self._dictionary[at]]

    def _idf(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        if not holding:
            return 0.0
        return float32(math.log(1 + (self._documents - holding + 0.5) / (holding + 0.5)))


class ScannedField:
    """A field of a few texts, which are read again for each pattern: less work than to invert them.

    Only a text that has all words of a pattern, perhaps within other words, is analysed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._low = [analysis.fold(text) for text in texts]
        self._terms: dict[int, list[str]] = {}

    def matching(self, pattern: Pattern) -> Collection[int]:
        """Return the documents that match a pattern of one spelling. O(length of the texts)."""
        (words,) = pattern.spellings
        return [
            document
            for document, low in enumerate(self._low)
            if all(word in low for word in words) and pattern.matches(self._terms_of(document))
        ]

    def _terms_of(self, document: int) -> list[str]:
        if document not in self._terms:
            self._terms[document] = analysis.terms(self._texts[document])
        return self._terms[document]


def kept_length(length: int) -> int:
    """Return a length as Lucene's byte keeps it: exact below 40, else the least with its byte."""
    return _length_of(_length_byte(length))


def _length_byte(length: int) -> int:
    """Return the byte that stands for a length: exact below 40, then with four significant bits."""
    rest = length - _EXACT_LENGTHS
    if rest < 8:
        return length
    shift = rest.bit_length() - 4
    return _EXACT_LENGTHS + ((shift + 1) << 3 | (rest >> shift) & 7)


def _length_of(byte: int) -> int:
    """Return the least length with this byte."""
    rest = byte - _EXACT_LENGTHS
    if rest < 8:
        return byte
    return _EXACT_LENGTHS + ((rest & 7 | 8) << (rest >> 3) - 1)


def _inverse_norms(
    length_bytes: Iterable[int], average: float, k1: float, b: float
) -> dict[int, float]:
    """Return 1 / (k1 * (1 - b + b * length / average)) for each length byte, in 32-bit steps."""
    k1, b, average = float32(k1), float32(b), float32(average)
    result: dict[int, float] = {}
    for byte in length_bytes:
        ratio = float32(float32(b * float32(_length_of(byte))) / average) if average else 0.0
        norm = float32(k1 * float32(float32(1 - b) + ratio))
        result[byte] = float32(1 / norm) if norm else math.inf
    return result


def _frequency(positions: Positions, slop: int, repeats: bool) -> float:
    """Return the frequency of a phrase in a text with these positions of its words."""
    if not slop:
        return len(phrase_starts(positions))
    if repeats:
        return _repeated_frequency(positions, slop)
    return _sloppy_frequency(
        [[at - number for at in held] for number, held in enumerate(positions)], slop
    )


def _sloppy_frequency(shifted: list[list[int]], slop: int) -> float:
    """Return the sum of 1 / (1 + width) over the matches that Lucene counts, added in 32 bits.

    ``shifted`` holds for each word its positions minus its number in the phrase; the width of a
    match is the difference between the greatest and the least of them. Lucene walks through all
    lists at once: the word with the least value advances until it has passed the second, which
    ends a match of the least width on the way; then the word that is now least advances. This
    visits only some of the combinations, so that only the same walk gives the same scores.
    """
    at = [0] * len(shifted)
    end = max(positions[0] for positions in shifted)
    frequency = 0.0
    while True:
        lead, second = sorted((shifted[word][at[word]], word) for word in range(len(at)))[:2]
        word = lead[1]
        width = end - lead[0]
        while True:
            at[word] += 1
            if at[word] == len(shifted[word]):
                return _with_match(frequency, width, slop)
            position = shifted[word][at[word]]
            end = max(end, position)
            if position > second[0]:
                break
            width = min(width, end - position)
        frequency = _with_match(frequency, width, slop)


def _with_match(frequency: float, width: int, slop: int) -> float:
    return float32(frequency + float32(1 / (1 + width))) if width <= slop else frequency


def _repeated_frequency(positions: Positions, slop: int) -> float:
    """Return 1 / (1 + the least width of a match), 0 if there is none within the slop.

    It is for phrases that repeat a word: no position may serve for both. (Lucene matches the same
    documents, with other scores.)
    """

    def matches(width: int) -> bool:
        return next(loose_matches(positions, width), None) is not None

    if not matches(slop):
        return 0.0
    return float32(1 / (1 + bisect_left(range(slop), True, key=matches)))

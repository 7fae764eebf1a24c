"""Text fields: the positions of each term in each document, and their BM25 scores.

Scores equal those of Lucene's BM25Similarity to the last bit. That requires its arithmetic: every
step is rounded to 32 bits, and the length of a text is stored in one byte, so that lengths from 40
on share a score with their neighbours. In 64 bits some hits would be ordered differently.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_float

from arag_search.plan.matching import Pattern, Positions, loose_matches
from arag_search.query.forms import HOLE


def float32(value: float) -> float:
    """Return the nearest 32-bit float.

    Applied to the result of one 64-bit operation on 32-bit values, it gives the result of the
    32-bit operation, since 64 bits have more than twice the digits.
    """
    return c_float(value).value


class TextField:
    """The postings of one field over documents 0, 1, 2, … and their BM25 scores."""

    def __init__(self, texts: Iterable[Sequence[str]], k1: float, b: float) -> None:
        """Index the terms of each document, in order, with holes. A document without terms does not
        count."""
        self._postings: dict[str, dict[int, list[int]]] = {}
        lengths: list[int] = []
        for document, terms in enumerate(texts):
            for position, term in enumerate(terms):
                if term != HOLE:
                    self._postings.setdefault(term, {}).setdefault(document, []).append(position)
            lengths.append(sum(term != HOLE for term in terms))
        self._documents = sum(map(bool, lengths))
        average = sum(lengths) / max(self._documents, 1)
        self._inverse_norms = [_inverse_norm(length, average, k1, b) for length in lengths]

    def scores(self, pattern: Pattern, boost: float) -> dict[int, float]:
        """Return the BM25 score, times ``boost``, of each document that matches.

        The pattern has one spelling. The score of a prefix or fuzzy word is the boost itself.
        """
        frequencies = self.frequencies(pattern)
        if pattern.is_expanded:
            return dict.fromkeys(frequencies, boost)
        (terms,) = pattern.spellings
        weight = float32(boost * float32(sum(self._idf(term) for term in terms)))
        scores: dict[int, float] = {}
        for document, frequency in frequencies.items():
            part = float32(1 + float32(frequency * self._inverse_norms[document]))
            scores[document] = float32(weight - float32(weight / part))
        return scores

    def frequencies(self, pattern: Pattern) -> Mapping[int, float]:
        """Return how often each document matches a pattern of one spelling.

        A loose match counts as less than 1, all matches of a prefix together as 1.
        """
        (terms,) = pattern.spellings
        if pattern.is_expanded:
            expanded = (self._postings[term] for term in pattern.expansions(self._postings.keys()))
            return {document: 1.0 for postings in expanded for document in postings}
        lists = [self._postings.get(term, {}) for term in terms]
        repeats = len(set(terms)) < len(terms)
        frequencies = {
            document: _frequency([postings[document] for postings in lists], pattern.slop, repeats)
            for document in set(lists[0]).intersection(*lists)
        }
        return {document: frequency for document, frequency in frequencies.items() if frequency}

    def documents(self) -> set[int]:
        """Return the documents with a term."""
        return set[int]().union(*self._postings.values())

    def _idf(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        if not holding:
            return 0.0
        return float32(math.log(1 + (self._documents - holding + 0.5) / (holding + 0.5)))


def kept_length(length: int) -> int:
    """Return a length as Lucene's byte keeps it: the byte holds 24 lengths unchanged, and of what
    is above them four significant bits, so that lengths below 40 are exact."""
    rest = length - 24
    if rest < 16:
        return length
    shift = rest.bit_length() - 4
    return 24 + (rest >> shift << shift)


def _inverse_norm(length: int, average: float, k1: float, b: float) -> float:
    """Return 1 / (k1 * (1 - b + b * length / average)), in 32-bit steps."""
    k1, b, average = float32(k1), float32(b), float32(average)
    ratio = float32(float32(b * float32(kept_length(length))) / average) if average else 0.0
    norm = float32(k1 * float32(float32(1 - b) + ratio))
    return float32(1 / norm) if norm else math.inf


def _frequency(positions: Positions, slop: int, repeats: bool) -> float:
    """Return the frequency of a phrase in a text with these positions of its words."""
    if not slop:
        return len(_phrase_starts(positions))
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


def _phrase_starts(positions: Positions) -> set[int]:
    """Return the positions at which the words stand side by side, in order."""
    starts = set(positions[0])
    for number, word_positions in enumerate(positions[1:], 1):
        starts.intersection_update([at - number for at in word_positions])
    return starts

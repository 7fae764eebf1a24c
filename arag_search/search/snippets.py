"""The sentences of a chunk to show for a query, the same for every engine.

Only the content counts, and not leaves on the title. A snippet is a list of sentence numbers
(0-based, ascending); tools decide how to write them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from arag_search.corpus import split_at
from arag_search.engines.base import Hit, Matching
from arag_search.query import analysis
from arag_search.query.matching import Pattern
from arag_search.query.tree import Node, Phrase, TextLeaf, positive_leaves
from arag_search.search.occurrences import Sentences

MAX_SENTENCES = 3
"""The number of sentences that a logical search shows of one chunk."""


class Snippets:
    """The choice of sentences for one query, made once per search and used for every hit.

    A sentence has a point for each distinct positive leaf that matches it; the best three are
    shown, and of equal ones the earlier. If no leaf matches, sentences with a word of a phrase are
    shown, or else the first sentence.
    """

    def __init__(self, query: Node) -> None:
        # Leaves that differ only in weight or field count once.
        patterns: dict[object, Pattern] = {}
        for leaf in positive_leaves(query):
            if isinstance(leaf, TextLeaf) and leaf.field != "title":
                pattern = Pattern.of(leaf)
                patterns[type(leaf), leaf.text, pattern] = pattern
        self._patterns = list(patterns.values())

    def choose(self, hit: Hit) -> list[int]:
        """Return sentence numbers for a hit, which must carry its text. O(length of its content).

        At sentence granularity these are the sentences that matched.
        """
        if hit.matched_sentences:
            return list(hit.matched_sentences)
        text = Sentences(hit.content or "", hit.sentence_ends)
        points = _points(self._patterns, text)
        best = sorted(points, key=lambda number: (-points[number], number))
        return sorted(best[:MAX_SENTENCES]) or first_sentence(hit)


def keyword_sentences(hit: Hit, keywords: Sequence[str], matching: Matching) -> list[int]:
    """Return all sentences with a keyword (A-RAG Eq. 2), or with a word of one, or the first."""
    if matching == "substring":
        wanted = [keyword.lower() for keyword in keywords if keyword]
        sentences = split_at(hit.content or "", hit.sentence_ends)
        numbers = [
            number
            for number, sentence in enumerate(sentences)
            if any(keyword in sentence.lower() for keyword in wanted)
        ]
        return numbers or first_sentence(hit)
    patterns = [Pattern.of(Phrase(keyword)) for keyword in keywords if analysis.terms(keyword)]
    text = Sentences(hit.content or "", hit.sentence_ends)
    return sorted(_points(patterns, text)) or first_sentence(hit)


def best_sentence(words: str, text: Sentences, among: range) -> int | None:
    """Return the number of the sentence with most of the words, the first of several; None if no
    sentence ``among`` these has any."""
    patterns = [Pattern(((word,),)) for word in dict.fromkeys(analysis.terms(words))]
    points = _points(patterns, text)
    numbers = [number for number in points if number in among]
    return min(numbers, key=lambda number: (-points[number], number), default=None)


def sentences_with(words: str, content: str, sentence_ends: Sequence[int]) -> list[int]:
    """Return the numbers of the sentences with most of the words, at most MAX_SENTENCES in their
    order, or of the first sentence if none has any."""
    patterns = [Pattern(((word,),)) for word in dict.fromkeys(analysis.terms(words))]
    points = _points(patterns, Sentences(content, sentence_ends))
    best = sorted(points, key=lambda number: (-points[number], number))
    return sorted(best[:MAX_SENTENCES]) or [0][: len(sentence_ends)]


def first_sentence(hit: Hit) -> list[int]:
    """Return the first sentence of a hit that has any."""
    return [0] if hit.sentence_ends else []


def _points(patterns: Sequence[Pattern], text: Sentences) -> dict[int, int]:
    """Return how many of the patterns each sentence matches, by its number.

    If no sentence matches any pattern, the single words of the patterns are used instead.
    Sentences that match nothing are left out.
    """
    points = Counter(number for pattern in patterns for number in text.matching(pattern))
    if points:
        return points
    words = dict.fromkeys(word for pattern in patterns for word in pattern.words())
    return Counter(number for word in words for number in text.matching(Pattern(((word,),))))

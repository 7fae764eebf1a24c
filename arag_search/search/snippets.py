"""Which sentences of a chunk to show for a query, the same for every engine.

Only the content is looked at; a leaf on the title does not count. A snippet is a list of sentence
numbers (0-based, growing); how they are written out is the tools' business.
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
"""Sentences that a logical search shows of one chunk."""


class Snippets:
    """Chooses sentences for one query; made once a search, used for each hit.

    A sentence is worth as many points as it holds distinct positive leaves; the best three are
    shown, the earlier of equals first. Where none holds a leaf, those with a part of a phrase;
    else the first sentence.
    """

    def __init__(self, query: Node) -> None:
        # Leaves that differ in weight or field only are one leaf here.
        patterns: dict[object, Pattern] = {}
        for leaf in positive_leaves(query):
            if isinstance(leaf, TextLeaf) and leaf.field != "title":
                pattern = Pattern.of(leaf)
                patterns[type(leaf), leaf.text, pattern] = pattern
        self._patterns = list(patterns.values())

    def choose(self, hit: Hit) -> list[int]:
        """Sentence numbers for a hit. O(length of its content).

        The hit must carry its text. At sentence granularity these are the sentences that matched.
        """
        if hit.matched_sentences:
            return list(hit.matched_sentences)
        text = Sentences(hit.content or "", hit.sentence_ends)
        points = _points(self._patterns, text)
        held = sorted(points, key=lambda number: (-points[number], number))
        return sorted(held[:MAX_SENTENCES]) or first_sentence(hit)


def keyword_sentences(hit: Hit, keywords: Sequence[str], matching: Matching) -> list[int]:
    """All sentences with a keyword (A-RAG Eq. 2), else those with a part of one, else the first."""
    if matching == "substring":
        wanted = [keyword.lower() for keyword in keywords if keyword]
        sentences = split_at(hit.content or "", hit.sentence_ends)
        held = [
            number
            for number, sentence in enumerate(sentences)
            if any(keyword in sentence.lower() for keyword in wanted)
        ]
        return held or first_sentence(hit)
    patterns = [Pattern.of(Phrase(keyword)) for keyword in keywords if analysis.terms(keyword)]
    text = Sentences(hit.content or "", hit.sentence_ends)
    return sorted(_points(patterns, text)) or first_sentence(hit)


def first_sentence(hit: Hit) -> list[int]:
    """The first sentence of a hit that has any."""
    return [0] if hit.sentence_ends else []


def _points(patterns: Sequence[Pattern], text: Sentences) -> dict[int, int]:
    """Return how many of the patterns each sentence matches, by its number.

    Where no sentence matches any, their single words are the patterns. Sentences that match
    nothing are left out.
    """
    points = Counter(number for pattern in patterns for number in text.matching(pattern))
    if points:
        return points
    words = dict.fromkeys(word for pattern in patterns for word in pattern.words())
    return Counter(number for word in words for number in text.matching(Pattern(((word,),))))

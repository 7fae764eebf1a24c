"""Which sentences of a chunk to show for a query, the same for every engine.

Only the content is looked at; a leaf on the title does not count. A snippet is a list of sentence
numbers (0-based, growing); how they are written out is the tools' business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arag_search.corpus import split_at
from arag_search.engines.base import Hit, Matching
from arag_search.query import analysis
from arag_search.query.positions import have_distinct
from arag_search.query.tree import Node, Phrase, Prefix, Term, TextLeaf, positive_leaves

MAX_SENTENCES = 3
"""Sentences that a logical search shows of one chunk."""

_Tokens = Sequence[str]
_Test = Callable[[_Tokens], bool]


class Snippets:
    """Chooses sentences for one query; made once a search, used for each hit.

    A sentence is worth as many points as it holds distinct positive leaves; the best three are
    shown, the earlier of equals first. Where none holds a leaf, those with a part of a phrase;
    else the first sentence.
    """

    def __init__(self, query: Node) -> None:
        found = (
            leaf
            for leaf in positive_leaves(query)
            if isinstance(leaf, TextLeaf) and leaf.field != "title"
        )
        self._leaves = list(dict.fromkeys(_unweighted(leaf) for leaf in found))
        self._tests = [_holds(leaf) for leaf in self._leaves]
        self._parts = frozenset(
            token
            for leaf in self._leaves
            if not isinstance(leaf, Prefix)
            for spelling in leaf.spellings
            for token in spelling
        )

    def choose(self, hit: Hit) -> list[int]:
        """Sentence numbers for a hit. O(length of its content).

        The hit must carry its text. At sentence granularity these are the sentences that matched.
        """
        if hit.matched_sentences:
            return list(hit.matched_sentences)
        tokens = _sentence_tokens(hit)
        points = [sum(test(sentence) for test in self._tests) for sentence in tokens]
        if not any(points):
            points = [len(self._parts.intersection(sentence)) for sentence in tokens]
        held = [number for number, count in enumerate(points) if count]
        held.sort(key=lambda number: -points[number])
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
    leaves = [Phrase(keyword) for keyword in keywords if analysis.terms(keyword)]
    tests = [_holds(leaf) for leaf in leaves]
    tokens = _sentence_tokens(hit)
    held = [number for number, sentence in enumerate(tokens) if any(t(sentence) for t in tests)]
    if not held:
        parts = {token for leaf in leaves for spelling in leaf.spellings for token in spelling}
        held = [n for n, sentence in enumerate(tokens) if not parts.isdisjoint(sentence)]
    return held or first_sentence(hit)


def first_sentence(hit: Hit) -> list[int]:
    """The first sentence of a hit that has any."""
    return [0] if hit.sentence_ends else []


def _sentence_tokens(hit: Hit) -> list[list[str]]:
    return [analysis.terms(sentence) for sentence in split_at(hit.content or "", hit.sentence_ends)]


def _unweighted(leaf: TextLeaf) -> TextLeaf:
    """Leaves that differ in weight or field only are one leaf here."""
    match leaf:
        case Term():
            return Term(leaf.text)
        case Phrase():
            return Phrase(leaf.text, leaf.slop)
        case Prefix():
            return Prefix(leaf.text)


def _holds(leaf: TextLeaf) -> _Test:
    """Whether a list of tokens holds the leaf, in any of its spellings."""
    if isinstance(leaf, Prefix):
        starts = tuple(spelling[0] for spelling in leaf.spellings)
        return lambda tokens: any(token.startswith(starts) for token in tokens)
    slop = leaf.slop if isinstance(leaf, Phrase) else 0
    tests = [_holds_words(spelling, slop) for spelling in leaf.spellings]
    return tests[0] if len(tests) == 1 else lambda tokens: any(test(tokens) for test in tests)


def _holds_words(words: tuple[str, ...], slop: int) -> _Test:
    if len(words) == 1:
        word = words[0]
        return lambda tokens: word in tokens
    if slop:
        return lambda tokens: within_slop(tokens, words, slop)
    return lambda tokens: _adjacent(tokens, words)


def _adjacent(tokens: _Tokens, words: tuple[str, ...]) -> bool:
    first, length = words[0], len(words)
    for at, token in enumerate(tokens):
        if token == first and tuple(tokens[at : at + length]) == words:
            return True
    return False


def within_slop(tokens: _Tokens, words: tuple[str, ...], slop: int) -> bool:
    """Whether distinct positions p_i of the words have max(p_i - i) - min(p_i - i) <= slop.

    A window of that width slides over the shifted positions p_i - i; within it the words are
    matched to distinct positions one by one, with exchange (augmenting paths) where two want the
    same one.
    """
    places = [[at for at, token in enumerate(tokens) if token == word] for word in words]
    if not all(places):
        return False
    shifted = sorted({at - i for i, found in enumerate(places) for at in found})
    for low in shifted:
        options = [
            [at for at in found if low <= at - i <= low + slop] for i, found in enumerate(places)
        ]
        if all(options) and have_distinct(options):
            return True
    return False

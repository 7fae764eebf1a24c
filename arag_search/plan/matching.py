"""How text leaves match tokens: the only place that knows, apart from engines that compile.

Snippets, marking, judging and keyword scores ask here, so that all of them learn a new kind of text
leaf at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from arag_search.corpus import TextKind
from arag_search.plan.clauses import Clause, wanted_leaves
from arag_search.query.analysis import Spellings, spellings_of
from arag_search.query.analysis import terms as written
from arag_search.query.forms import folded, joined_apart, normal_terms

Positions = Sequence[Sequence[int]]
"""For each word of a phrase, in order, the positions at which a text has it."""


class Pattern(NamedTuple):
    """The tokens that a text leaf looks for, whatever its field and weight.

    A text matches if it has the words of any of ``spellings`` side by side and in order, or
    loosened by ``slop`` positions. If ``is_prefix``, it matches if a token begins with the only
    word. With ``edits``, it matches if a token differs from the word in so many letters at most.
    The tokens are normal forms in ``language`` or, if that is empty, words as they are written.
    """

    spellings: Spellings
    slop: int = 0
    is_prefix: bool = False
    language: str = ""
    edits: int = 0

    @property
    def is_expanded(self) -> bool:
        """Whether it is a word that stands for several of the index."""
        return self.is_prefix or bool(self.edits)

    def expansions(self, tokens: Collection[str]) -> set[str]:
        """Return the tokens that a word stands for that stands for several."""
        words = tuple([word for (word,) in self.spellings])
        if self.is_prefix:
            return {token for token in tokens if token.startswith(words)}
        return {
            token
            for token in tokens
            if any(within_edits(word, token, self.edits) for word in words)
        }

    def matches(self, tokens: Sequence[str]) -> bool:
        """Return whether a text of these tokens matches."""
        if self.is_prefix or self.edits:
            return bool(self.expansions(tokens))
        is_likely = False
        for words in self.spellings:
            if words[0] in tokens:
                if len(words) == 1:
                    return True
                is_likely = True
        return is_likely and next(self.runs(tokens), None) is not None

    def runs(self, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the first and last position of every run of tokens that matches.

        A loose phrase yields the position of each of its words; the same one more than once where
        several matches share it.
        """
        if self.is_expanded:
            alike = self.expansions(set(tokens))
            yield from ((at, at) for at, token in enumerate(tokens) if token in alike)
            return
        for words in self.spellings:
            if not all(map(tokens.__contains__, words)):
                continue
            length = len(words)
            if self.slop and length > 1:
                positions = [[at for at, token in enumerate(tokens) if token == w] for w in words]
                for choices in loose_matches(positions, self.slop):
                    yield from ((at, at) for choice in choices for at in choice)
                continue
            for at, token in enumerate(tokens):
                if token == words[0] and tuple(tokens[at : at + length]) == words:
                    yield at, at + length - 1

    def words(self) -> Iterator[str]:
        """Yield the whole words of all spellings; a word that stands for others has none."""
        if not self.is_expanded:
            for spelling in self.spellings:
                yield from spelling


def patterns_of(leaf: Clause) -> tuple[Pattern, ...]:
    """Return the patterns of a leaf on text, which matches where one of them does."""
    if leaf.kind in ("word", "phrase"):
        return (Pattern(leaf.words, leaf.slop, language=leaf.language),)
    edits = leaf.edits
    written = Pattern(leaf.words, 0, not edits, edits=edits)
    if not leaf.language:
        return (written,)
    forms = ((folded(leaf.typed),),)
    return written, written._replace(spellings=forms, language=leaf.language)


def typed_patterns(query: Clause) -> list[tuple[str | None, Pattern]]:
    """Return the words and phrases that a query wants in any form, as they were typed, each with
    the field that it names."""
    return [
        (leaf.field, Pattern(spellings_of(leaf.typed), leaf.slop))
        for leaf in wanted_leaves(query)
        if leaf.kind in ("word", "phrase") and leaf.language
    ]


def terms_of(text: str, language: str, kind: TextKind) -> list[str]:
    """Return the normal forms of a text in a language or, if that is empty, the words as
    written."""
    return normal_terms(text, language, kind=kind) if language else written(text)


class Words:
    """The words of a text, or of the texts of a heading, as they are written and in normal forms.
    In a heading, only the title has words as written. ``kind`` is as in ``normal_forms``."""

    __slots__ = ("_kind", "_terms", "_texts")

    def __init__(self, *texts: str, kind: TextKind = "") -> None:
        self._texts = texts
        self._kind: TextKind = kind
        self._terms: dict[str, list[str]] = {}

    def terms(self, language: str) -> list[str]:
        """Return the normal forms in a language or, if that is empty, the words as written."""
        terms = self._terms.get(language)
        if terms is None:
            texts = self._texts if language else self._texts[:1]
            first, *others = [terms_of(text, language, self._kind) for text in texts]
            terms = self._terms[language] = joined_apart([first, *filter(None, others)])
        return terms

    def match(self, pattern: Pattern) -> bool:
        """Return whether the text matches a pattern."""
        return pattern.matches(self.terms(pattern.language))


def within_edits(word: str, other: str, most: int) -> bool:
    """Return whether at most so many edits make a word of another (optimal string alignment).

    An edit adds, leaves out or replaces a letter, or exchanges two neighbours. No letter is edited
    twice.
    """
    if abs(len(word) - len(other)) > most:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        previous, row = row, [at]
        for to, wanted in enumerate(other, 1):
            cost = min(previous[to] + 1, row[-1] + 1, previous[to - 1] + (letter != wanted))
            is_exchange = at > 1 < to and letter == other[to - 2] and wanted == word[at - 2]
            row.append(min(cost, before[to - 2] + 1) if is_exchange else cost)
        before = previous
        if min(row) > most:
            return False
    return row[-1] <= most


def loose_matches(positions: Positions, slop: int) -> Iterator[Positions]:
    """Yield the ways in which a loose phrase matches: for each word the positions it may take.

    A match gives the words distinct positions p_i with max(p_i - i) - min(p_i - i) <= slop. A
    window of the width of the slop slides over the shifted positions p_i - i; the positions of a
    word ascend.
    """
    for low in sorted(
        {at - number for number, word_positions in enumerate(positions) for at in word_positions}
    ):
        choices: list[Sequence[int]] = []
        for number, word_positions in enumerate(positions, low):
            first = bisect_left(word_positions, number)
            end = bisect_right(word_positions, number + slop, first)
            if first == end:
                break
            choices.append(word_positions[first:end])
        else:
            if _have_distinct(choices):
                yield choices


def _have_distinct(choices: Positions) -> bool:
    """Return whether a number can be taken from each list so that no two are equal.

    Bipartite matching by augmenting paths: O(lists x all their numbers).
    """
    taken: dict[int, int] = {}

    def place(word: int, tried: set[int]) -> bool:
        for position in choices[word]:
            if position not in tried:
                tried.add(position)
                if position not in taken or place(taken[position], tried):
                    taken[position] = word
                    return True
        return False

    return all(place(word, set()) for word in range(len(choices)))

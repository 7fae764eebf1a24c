"""How text leaves match tokens: the only place that knows, apart from engines that compile.

Snippets, marking, judging and the scores of keywords ask here, so that a new kind of
text leaf is taught to all of them at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, assert_never

from arag_search.query.analysis import Spellings
from arag_search.query.tree import Phrase, Prefix, Term, TextLeaf

Positions = Sequence[Sequence[int]]
"""For each word of a phrase, in order, the positions at which a text has it."""


class Pattern(NamedTuple):
    """The tokens that a text leaf looks for, whatever its field and weight.

    A text matches any of ``spellings``: with the words side by side and in order, or loosened by
    ``slop`` positions; if ``is_prefix``, with a token that begins with the only word.
    """

    spellings: Spellings
    slop: int = 0
    is_prefix: bool = False

    @staticmethod
    def of(leaf: TextLeaf) -> Pattern:
        """Return the pattern of a leaf."""
        match leaf:
            case Term():
                return Pattern(leaf.spellings)
            case Phrase():
                return Pattern(leaf.spellings, leaf.slop)
            case Prefix():
                return Pattern(leaf.spellings, is_prefix=True)
            case _:
                assert_never(leaf)

    def matches(self, tokens: Sequence[str]) -> bool:
        """Return whether a text of these tokens matches."""
        return next(self.runs(tokens), None) is not None

    def runs(self, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the first and last position of every run of tokens that matches.

        A loose phrase yields the position of each of its words; the same one more than once where
        several matches share it.
        """
        if self.is_prefix:
            starts = tuple(word for (word,) in self.spellings)
            yield from ((at, at) for at, token in enumerate(tokens) if token.startswith(starts))
            return
        for words in self.spellings:
            length = len(words)
            if self.slop and length > 1:
                positions = [[at for at, token in enumerate(tokens) if token == w] for w in words]
                for choices in loose_matches(positions, self.slop):
                    yield from ((at, at) for choice in choices for at in choice)
                continue
            for at, token in enumerate(tokens):
                if token == words[0] and tuple(tokens[at : at + length]) == words:
                    yield at, at + length - 1

    def alternatives(self) -> Iterator[Pattern]:
        """Yield the pattern of each spelling; the slop of a single word is 0."""
        for words in self.spellings:
            yield Pattern((words,), self.slop if len(words) > 1 else 0, self.is_prefix)

    def words(self) -> Iterator[str]:
        """Yield the whole words of all spellings. A prefix has none."""
        if not self.is_prefix:
            for spelling in self.spellings:
                yield from spelling


def phrase_starts(positions: Positions) -> set[int]:
    """Return the positions at which the words stand side by side, in order."""
    starts = set(positions[0])
    for number, word_positions in enumerate(positions[1:], 1):
        starts.intersection_update([at - number for at in word_positions])
    return starts


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

"""In which sentences of a text a leaf of a query occurs.

A word is looked for as text, which costs little: where it stands between blanks or brackets it is a
token for sure. Only a sentence in which it stands otherwise is cut into tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from arag_search.query import analysis
from arag_search.query.positions import have_distinct
from arag_search.query.tree import Phrase, Prefix, Spellings, TextLeaf

_EDGES = frozenset(" \t\r\n()[]{}<>|/\\!?*+=-–—“”")
"""Characters that are in no token and end each one beside them."""
_EDGES_OF_ASCII = _EDGES | {'"'}
"""The same beside a word of ASCII: between Hebrew letters a quotation mark may be in a token."""
_MIDDLES = frozenset(".,;:")
"""Characters that end a token where an edge or nothing follows; else they may be within one."""


class Sentences:
    """A text cut into sentences, to look for leaves in. ``ends`` are the offsets after each."""

    __slots__ = ("_text", "_tokens", "ends", "low")

    def __init__(self, text: str, ends: Sequence[int]) -> None:
        self._text = text
        self._tokens: dict[int, list[str]] = {}
        self.ends = ends
        self.low = analysis.fold(text)  # as long as the text
        """The text in lower case."""

    def tokens(self, number: int) -> list[str]:
        """The tokens of one sentence."""
        found = self._tokens.get(number)
        if found is None:
            start = self.ends[number - 1] if number else 0
            found = analysis.terms(self._text[start : self.ends[number]])
            self._tokens[number] = found
        return found


class Occurrences:
    """What a leaf looks for: the words of any of its spellings, beside each other, or in any order
    with at most ``slop`` moves; of a prefix the beginning of a word."""

    __slots__ = ("_is_prefix", "_slop", "_spellings")

    def __init__(self, spellings: Spellings, *, slop: int = 0, is_prefix: bool = False) -> None:
        self._spellings = spellings
        self._slop = slop
        self._is_prefix = is_prefix

    @staticmethod
    def of(leaf: TextLeaf) -> Occurrences:
        """The occurrences of a leaf, whatever its field and weight."""
        slop = leaf.slop if isinstance(leaf, Phrase) else 0
        return Occurrences(leaf.spellings, slop=slop, is_prefix=isinstance(leaf, Prefix))

    def sentences(self, text: Sentences) -> set[int]:
        """The numbers of the sentences that hold one. O(length of the text)."""
        found: set[int] = set()
        unsure: set[int] = set()
        for words in self._spellings:
            if not self._slop or len(words) == 1:
                self._look_for(" ".join(words), text, found, unsure)
            if len(words) > 1:  # with something else than a blank between them
                unsure |= _with_all(words, text)
        for number in unsure - found:
            if self._held_by(text.tokens(number)):
                found.add(number)
        return found

    def _look_for(self, wanted: str, text: Sentences, found: set[int], unsure: set[int]) -> None:
        """Add sentences that hold this as tokens, and those that hold it in another way."""
        low, ends = text.low, text.ends
        edges = _EDGES_OF_ASCII if wanted.isascii() else _EDGES
        at = low.find(wanted)
        while at >= 0:
            number = bisect_right(ends, at)
            end = ends[number]
            if number not in found:
                stop = at + len(wanted)
                start = ends[number - 1] if number else 0
                if (at == start or low[at - 1] in edges) and (
                    stop == end
                    or self._is_prefix
                    or (stop < end and _ends_at(stop, low, end, edges))
                ):
                    found.add(number)
                else:
                    unsure.add(number)
                    end = at + 1
            at = low.find(wanted, end)

    def _held_by(self, tokens: Sequence[str]) -> bool:
        if self._is_prefix:
            starts = tuple(spelling[0] for spelling in self._spellings)
            return any(token.startswith(starts) for token in tokens)
        for words in self._spellings:
            if len(words) == 1:
                held = words[0] in tokens
            elif self._slop:
                held = within_slop(tokens, words, self._slop)
            else:
                held = next(adjacent_places(tokens, words), None) is not None
            if held:
                return True
        return False


def _ends_at(stop: int, low: str, end: int, edges: Collection[str]) -> bool:
    """Whether a token that stands before an offset ends there for sure."""
    after = low[stop]
    return after in edges or (after in _MIDDLES and (stop + 1 == end or low[stop + 1] in edges))


def _with_all(words: Sequence[str], text: Sentences) -> set[int]:
    """The sentences in which each of the words stands, within another one too."""
    numbers: set[int] | None = None
    for word in set(words):
        held: set[int] = set()
        at = text.low.find(word)
        while at >= 0:
            number = bisect_right(text.ends, at)
            held.add(number)
            at = text.low.find(word, text.ends[number])
        numbers = held if numbers is None else numbers & held
        if not numbers:
            break
    return numbers or set()


def adjacent_places(tokens: Sequence[str], words: tuple[str, ...]) -> Iterator[int]:
    """The positions at which the words stand beside each other, in order."""
    first, length = words[0], len(words)
    for at, token in enumerate(tokens):
        if token == first and tuple(tokens[at : at + length]) == words:
            yield at


def within_slop(tokens: Sequence[str], words: tuple[str, ...], slop: int) -> bool:
    """Whether distinct positions p_i of the words have max(p_i - i) - min(p_i - i) <= slop."""
    return next(loosened_places(tokens, words, slop), None) is not None


def loosened_places(
    tokens: Sequence[str], words: tuple[str, ...], slop: int
) -> Iterator[list[list[int]]]:
    """The ways in which a phrase with slop is matched: of each word the positions that it may have.

    A window of the width of the slop slides over the shifted positions p_i - i; within it the words
    are matched to distinct positions one by one, with exchange (augmenting paths) where two want
    the same one.
    """
    places = [[at for at, token in enumerate(tokens) if token == word] for word in words]
    if not all(places):
        return
    shifted = sorted({at - i for i, found in enumerate(places) for at in found})
    for low in shifted:
        options = [
            [at for at in found if low <= at - i <= low + slop] for i, found in enumerate(places)
        ]
        if all(options) and have_distinct(options):
            yield options

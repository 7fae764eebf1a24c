"""Where the words of a query occur in what a result shows: its titles and snippets.

Occurrences are looked for in the whole text, as the index has it, and then located in the snippet.
So a phrase may begin in one sentence and end in the next, and is never found across sentences that
are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arag_search.query import analysis
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.tree import Node, Phrase, TextLeaf, positive_leaves
from arag_search.search.occurrences import Mark, TextField, merged, spans


class Highlights(NamedTuple):
    """The marks of a hit, in order, none overlapping: offsets in code points of the first character
    and after the last."""

    title: tuple[Mark, ...]
    snippet: tuple[Mark, ...]

    def to_dict(self) -> dict[str, list[list[int]]]:
        """Return the marks in types of JSON."""
        return {
            "title": [list(mark) for mark in self.title],
            "snippet": [list(mark) for mark in self.snippet],
        }


class Shown(NamedTuple):
    """A sentence in a snippet: its number, where it is in the content without white space at its
    ends, and where it begins in the snippet."""

    number: int
    start: int
    end: int
    place: int


@dataclass(frozen=True, slots=True)
class Highlighter:
    """What to highlight for a query: the matches of leaves, and of substrings in any case.

    With ``by_sentence``, a match is within one sentence.
    """

    leaves: tuple[TextLeaf, ...] = ()
    substrings: tuple[str, ...] = ()
    by_sentence: bool = False

    @staticmethod
    def of_query(query: Node, *, by_sentence: bool) -> Highlighter:
        """Return the highlighter of a logical query: of its text leaves that are not excluded."""
        leaves = (leaf for leaf in positive_leaves(query) if isinstance(leaf, TextLeaf))
        return Highlighter(tuple(leaves), by_sentence=by_sentence)

    @staticmethod
    def of_keywords(keywords: Sequence[str], *, as_substrings: bool) -> Highlighter:
        """Return the highlighter of keywords, as words or as substrings."""
        if as_substrings:
            return Highlighter(substrings=tuple(keywords))
        return Highlighter(tuple(Phrase(word) for word in keywords if analysis.terms(word)))

    def highlights(
        self, title: str, content: str, ends: Sequence[int], sentences: Sequence[int]
    ) -> Highlights:
        """Return the marks in a title and in the snippet of the given sentences (0-based numbers).
        O(length of the texts x (leaves + substrings))."""
        shown = list(shown_sentences(content, ends, sentences))
        located: list[Mark] = []
        for start, end in self._content_pieces(ends, shown, len(content)):
            text = content[start:end]
            for first, last in self._spans(text, CONTENT):
                mark = _located(content, (start + first, start + last), shown, self._is_same)
                if mark is not None:
                    located.append(mark)
        return Highlights(
            tuple(merged(self._spans(title, TITLE))), tuple(merged(sorted(set(located))))
        )

    def _content_pieces(
        self, ends: Sequence[int], shown: Sequence[Shown], length: int
    ) -> list[Mark]:
        """Return the stretches of the content to look into, each by itself."""
        if not self.by_sentence:
            return [(0, length)] if shown else []
        return [
            (ends[sentence.number - 1] if sentence.number else 0, ends[sentence.number])
            for sentence in shown
        ]

    def _spans(self, text: str, field: TextField) -> list[Mark]:
        places = set(spans(text, self.leaves, field))
        if self.substrings:
            low, offsets = _lowered(text)
            for substring in self.substrings:
                places.update(_occurrences(substring.lower(), low, offsets))
        return sorted(places)

    def _is_same(self, first: str, second: str) -> bool:
        """Return whether two texts, which may differ in white space, match alike."""
        if self.substrings:
            return first.lower() == second.lower()
        return analysis.terms(first) == analysis.terms(second)


def shown_sentences(content: str, ends: Sequence[int], sentences: Sequence[int]) -> Iterator[Shown]:
    """Yield where the sentences of a snippet are, as ``join_sentences`` writes it."""
    place = 0
    expected = 0
    for number in sentences:
        if number != expected:
            place += len("... ")
        expected = number + 1
        start, end = ends[number - 1] if number else 0, ends[number]
        piece = content[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        if start < end:
            yield Shown(number, start, end, place)
            place += end - start + 1


def _located(
    content: str, span: Mark, shown: Sequence[Shown], is_same: Callable[[str, str], bool]
) -> Mark | None:
    """Return where a stretch of the content is in the snippet; None if it is not, or not whole."""
    start, end = span
    at = bisect_right(shown, start, key=lambda sentence: sentence.start) - 1
    if at < 0 or start >= shown[at].end:
        return None
    last = at
    while end > shown[last].end:
        last += 1
        if last == len(shown) or shown[last].number != shown[last - 1].number + 1:
            return None
    if end <= shown[last].start:
        return None
    mark = (
        shown[at].place + start - shown[at].start,
        shown[last].place + end - shown[last].start,
    )
    if at < last:  # joined by blanks, which must not cut a word
        joined = " ".join(
            content[max(start, sentence.start) : min(end, sentence.end)]
            for sentence in shown[at : last + 1]
        )
        if not is_same(joined, content[start:end]):
            return None
    return mark


def _lowered(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in lower case and, for each of its characters, the offset in the text."""
    low = text.lower()
    if len(low) == len(text):
        return low, range(len(text))
    return low, [at for at, character in enumerate(text) for _ in character.lower()]


def _occurrences(wanted: str, low: str, offsets: Sequence[int]) -> Iterator[Mark]:
    """Yield the places of a text, without overlaps, as the search counts them."""
    at = low.find(wanted)
    while wanted and at >= 0:
        end = at + len(wanted)
        yield offsets[at], offsets[end - 1] + 1
        at = low.find(wanted, end)

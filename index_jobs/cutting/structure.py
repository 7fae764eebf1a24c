"""The outline of a document over its sentences: where sentences end, what a passage may join, and
where a passage stands.

Units are made of lines, passages of sentences. So a sentence also ends where a unit begins or ends,
and after the line with its name. In code and blocks it ends after each line with a letter or digit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from arag_search.corpus import NO_OUTLINE, PATH_MARK, Outline, PassageOutline, PassageUnit, UnitKind

LEAST_TOKENS = 32
"""A shorter text, such as a heading alone, goes with what follows it."""

_HEADING_CHARACTERS = 200  # a longer line with a name, such as a row, may be several sentences
_SHARE_OF_PATH = 0.8  # of a passage that is in a unit of its path
_LINE_WITH_WORDS = re.compile(r"^.*\w", re.MULTILINE)


class Piece(NamedTuple):
    """A stretch of text that a passage holds as a whole, up to ``end``. ``tokens`` is the count of
    it by itself, or about that if it is not ``exact``."""

    end: int
    tokens: int
    exact: bool = True


def ends_of_lines(
    text: str, starts: Sequence[int], outline: Outline, ends: Sequence[int], code: bool
) -> list[int]:
    """Return the ends of sentences with the ends that the outline adds. ``ends`` were found without
    it. In blocks, and everywhere in ``code``, sentences are lines, and so is a heading. ``starts``
    are the starts of the lines."""
    starts = [*starts, len(text)]
    last = len(starts) - 1
    verbatim = [(0, len(text))] if code else []
    marks = {0, len(text)}
    for unit in outline:
        first, end = starts[min(unit.first, last)], starts[min(unit.end, last)]
        marks.update((first, end))
        if unit.name:
            below = starts[min(unit.first + 1, last)]
            marks.add(below)
            end = below if unit.kind != "block" and below - first <= _HEADING_CHARACTERS else end
        is_apart = not verbatim or first >= verbatim[-1][1]
        if is_apart and (unit.kind == "block" or end <= first + _HEADING_CHARACTERS):
            verbatim.append((first, end))
    merged: list[int] = []
    at = 0
    for first, end in verbatim:
        merged += ends[bisect_right(ends, at) : bisect_right(ends, first)]
        merged += (line.start() for line in _LINE_WITH_WORDS.finditer(text, first, end))
        at = end
    merged += ends[bisect_right(ends, at) :]
    ordered = sorted(marks.union(merged))
    kept: list[int] = []
    for start, end in pairwise(ordered):
        if not text[start:end].isspace():
            kept.append(end)
        elif kept:  # a blank belongs to the sentence before it
            kept[-1] = end
    return kept or [len(text)][: len(text)]


def line_starts(text: str) -> list[int]:
    """Return the offset at which each line of a text starts."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


@dataclass(slots=True)
class _Node:
    """A unit from its ``first`` sentence to before ``end``, with the units in it."""

    first: int
    end: int
    kind: UnitKind
    name: str = ""
    within: list[_Node] = field(default_factory=list["_Node"])


class Structure:
    """The units of a text over its sentences, which are numbered from 0."""

    def __init__(self, starts: Sequence[int], outline: Outline, sentences: Sequence[Piece]) -> None:
        """Take the starts of the lines of a text, its outline, and its sentences."""
        self._ends = [piece.end for piece in sentences]
        self._tokens = [0, *accumulate(piece.tokens for piece in sentences)]
        self._sentences = sentences
        self._starts = starts
        self._root = _Node(0, len(sentences), "section")
        self._named: list[_Node] = []
        in_lists = [0] * len(sentences)
        open_nodes = [self._root]
        for unit in outline:
            first = bisect_right(self._ends, self._offset_of(unit.first))
            end = bisect_left(self._ends, self._offset_of(unit.end)) + 1
            while open_nodes[-1].end <= first and len(open_nodes) > 1:
                open_nodes.pop()
            node = _Node(first, min(end, open_nodes[-1].end), unit.kind, unit.name)
            if node.first >= node.end:
                continue
            open_nodes[-1].within.append(node)
            open_nodes.append(node)
            if unit.name:
                self._named.append(node)
            if unit.kind == "index":
                for number in range(node.first, node.end):
                    in_lists[number] = sentences[number].tokens
        self._tokens_in_lists = [0, *accumulate(in_lists)]
        self._firsts = [node.first for node in self._named]

    def _offset_of(self, line: int) -> int:
        return self._starts[line] if line < len(self._starts) else self._ends[-1]

    def _count(self, first: int, end: int) -> int:
        return self._tokens[end] - self._tokens[first]

    def groups(self, target: int, most: int) -> Iterator[list[Piece]]:
        """Yield the pieces of each stretch of text that no passage reaches over, in order.

        A unit of at most ``target`` tokens is one piece. So is an entry or a block of at most
        ``most`` tokens without entries in it. What follows in one group may be joined.
        """
        yield from self._groups(self._root, 0, target, most)

    def _groups(self, node: _Node, first: int, target: int, most: int) -> Iterator[list[Piece]]:
        """Yield the groups of a unit from sentence ``first`` on, which may be before it."""
        group: list[Piece] = []
        at = start = first
        for unit in node.within:
            group += self._sentences[at : unit.first]
            tokens = self._count(unit.first, unit.end)
            if tokens <= target or (tokens <= most and _is_kept(unit)):
                group.append(Piece(self._ends[unit.end - 1], tokens, unit.end - unit.first == 1))
            else:
                if self._count(start, unit.first) >= LEAST_TOKENS:
                    yield group
                    start = unit.first
                yield from self._groups(unit, start, target, most)
                group, start = [], unit.end
            at = unit.end
        group += self._sentences[at : node.end]
        if group:
            yield group

    def of_passage(self, first: int, end: int, title: str, *, is_file: bool) -> PassageOutline:
        """Return the outline of a passage of these sentences, in a document with this title."""
        units = self._named[bisect_left(self._firsts, first) : bisect_left(self._firsts, end)]
        names = list(self._path(first, end))
        if names and names[0].casefold() == title.casefold():
            del names[0]
        outline = PassageOutline(
            PATH_MARK.join(names),
            self.line_of(first) if is_file else 0,
            tuple(
                PassageUnit(unit.first - first, min(unit.end, end) - first, unit.name)
                for unit in units
            ),
        )
        return outline if any(outline) else NO_OUTLINE

    def line_of(self, sentence: int) -> int:
        """Return the number (from 1) of the line in which a sentence begins."""
        return bisect_right(self._starts, self._ends[sentence - 1] if sentence else 0)

    def _path(self, first: int, end: int) -> Iterator[str]:
        """Yield the names of the units that hold nearly all of a passage, the outermost first."""
        tokens = self._count(first, end)
        middle = bisect_right(self._tokens, self._tokens[first] + tokens // 2) - 1
        node = self._root
        while node.within:
            at = bisect_right(node.within, middle, key=lambda unit: unit.first) - 1
            node = node.within[at]
            inside = self._count(max(first, node.first), min(end, max(first, node.end)))
            if at < 0 or inside < _SHARE_OF_PATH * tokens:
                return
            if node.name:
                yield node.name

    def is_index(self, first: int, end: int) -> bool:
        """Return whether nearly all of a passage is lists of links."""
        inside = self._tokens_in_lists[end] - self._tokens_in_lists[first]
        return 0 < inside >= _SHARE_OF_PATH * self._count(first, end)


def _is_kept(unit: _Node) -> bool:
    """Return whether a unit is one piece though it is long."""
    is_container = unit.kind in ("section", "index")
    return not is_container and all(inner.kind == "block" for inner in unit.within)

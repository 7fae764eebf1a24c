"""Groups of files of a folder that repeat others, such as the sources of pages beside the pages.

Files are compared by runs of their words, whatever their markup: each has a sketch, the smallest
hashes of the runs in its beginning, of which near-duplicates share a large part.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

MAX_FILES = 20_000
"""The number of files that are compared, the first of a folder. A sketch takes about 300 bytes."""
LEAST_FILES = 5
"""Smaller groups are not named."""
_CHARACTERS = 2_000
_LEAST_CHARACTERS = 2_000
_RUN_WORDS = 2
_HASHES = 32
_LEAST_HASHES = 8
_COMPARED = 12
_ALIKE = 0.3
_MOST = 0.7
_COMMON = 8
"""A run in the sketches of more files belongs to none of them, such as the words of a licence."""
_MAX_GROUPS = 3
_WORD = re.compile(r"[^\W_]+")
_DOT = re.compile(r"\.")


class RepeatedFiles(NamedTuple):
    """Files that repeat others: the pattern that leaves them out, their number, and an example with
    the file that it repeats."""

    pattern: str
    files: int
    example: str
    original: str

    def __str__(self) -> str:
        return (
            f"{self.files:,} files repeat others, such as {self.example} ({self.original}); leave "
            f"them out with --exclude '{self.pattern}'"
        )


class Repeats:
    """The sketches of the files that a folder has, by their ids."""

    def __init__(self) -> None:
        self._sketches: dict[str, array[int]] = {}

    def add(self, id: str, text: str) -> None:
        """Take a file into account, unless there are MAX_FILES, or it is short."""
        if len(self._sketches) < MAX_FILES and len(text) >= _LEAST_CHARACTERS:
            words = _WORD.findall(text[:_CHARACTERS].lower())
            # A part of the runs is as good, if it is chosen by what they are, and costs less.
            hashes = {
                crc32(" ".join(words[at : at + _RUN_WORDS]).encode("utf-8", "replace"))
                for at, word in enumerate(words)
                if not ord(word[0]) & 3
            }
            if len(hashes) >= _HASHES:
                self._sketches[id] = array("I", sorted(hashes)[:_HASHES])

    def groups(self) -> list[RepeatedFiles]:
        """Return the greatest groups, at most three. Of a group, nearly all files that its pattern
        leaves out repeat others that it keeps. O(files x hashes), apart from many equal files."""
        patterns = {id: frozenset(_patterns(id)) for id in self._sketches}
        totals = Counter(pattern for own in patterns.values() for pattern in own)
        pairs = [both for pair in self._pairs() for both in (pair, pair[::-1])]
        groups: list[RepeatedFiles] = []
        while len(groups) < _MAX_GROUPS:
            originals: dict[str, dict[str, str]] = {}  # of each copy that a pattern leaves out
            for copy, original in pairs:
                for pattern in patterns[copy] - patterns[original]:
                    originals.setdefault(pattern, {}).setdefault(copy, original)
            counts = {
                pattern: len(copies)
                for pattern, copies in originals.items()
                if len(copies) >= max(LEAST_FILES, _MOST * totals[pattern])
            }
            if not counts:
                break
            # The greatest, less what else it leaves out; of equal ones that of a folder.
            chosen = min(
                counts, key=lambda at: (totals[at] - 2 * counts[at], not at.endswith("/"), at)
            )
            example = next(iter(originals[chosen].items()))
            groups.append(RepeatedFiles(chosen, counts[chosen], *example))
            pairs = [pair for pair in pairs if not any(chosen in patterns[id] for id in pair)]
        return groups

    def _pairs(self) -> Iterator[tuple[str, str]]:
        by_hash: dict[int, str] = {}
        files = Counter(value for sketch in self._sketches.values() for value in sketch)
        own = {
            id: [value for value in sketch if files[value] <= _COMMON]
            for id, sketch in self._sketches.items()
        }
        for id, sketch in own.items():
            first = sketch[:_COMPARED]
            others = dict.fromkeys(by_hash[value] for value in first if value in by_hash)
            for other in others:
                if _similarity(sketch, own[other]) >= _ALIKE:
                    yield id, other
                    break
            else:
                for value in first:
                    by_hash.setdefault(value, id)


def _similarity(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the estimated Jaccard similarity of the runs of two files."""
    smallest = sorted({*first, *second})[: max(len(first), len(second), _LEAST_HASHES)]
    return len({*smallest}.intersection(first).intersection(second)) / len(smallest)


def _patterns(id: str) -> Iterator[str]:
    *folders, name = id.split("/")
    yield from (f"{folder}/" for folder in folders)
    yield from (f"*{name[dot.start() :]}" for dot in _DOT.finditer(name, 1))

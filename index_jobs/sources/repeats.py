"""Groups of files of a folder that repeat others, such as the sources of pages beside the pages.

Files are compared by runs of their words, whatever their markup: each has a sketch, the smallest
hashes of the runs in its beginning, of which near-duplicates share a large part.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
        pairs = list(self._pairs())
        groups: list[RepeatedFiles] = []
        while pairs and len(groups) < _MAX_GROUPS:
            repeated = {
                (pattern, copy)
                for id, other in pairs
                for copy, original in ((id, other), (other, id))
                for pattern in _patterns(copy)
                if not _matcher(pattern)(original)
            }
            counts = Counter(pattern for pattern, _ in repeated)
            chosen = next(filter(self._is_mostly_repeated(counts), _in_order(counts)), None)
            if chosen is None:
                break
            matches = _matcher(chosen)
            both = [*pairs, *((other, id) for id, other in pairs)]
            example = next(pair for pair in both if matches(pair[0]) and not matches(pair[1]))
            groups.append(RepeatedFiles(chosen, counts[chosen], *example))
            pairs = [pair for pair in pairs if not (matches(pair[0]) or matches(pair[1]))]
        return groups

    def _is_mostly_repeated(self, counts: Counter[str]) -> Callable[[str], bool]:
        def is_so(pattern: str) -> bool:
            if counts[pattern] < LEAST_FILES:
                return False
            return counts[pattern] >= _MOST * sum(map(_matcher(pattern), self._sketches))

        return is_so

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each file that is a near-duplicate of an earlier one, with that."""
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
    """Yield the patterns of --exclude that a file could be left out by: folders, and its ending."""
    *folders, name = id.split("/")
    yield from (f"{folder}/" for folder in dict.fromkeys(folders))
    dot = name.find(".", 1)
    if dot > 0:
        yield f"*{name[dot:]}"


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether ids are left out by a pattern."""
    if pattern.endswith("/"):
        return lambda id: f"/{pattern}" in f"/{id}"
    return lambda id: id.endswith(pattern[1:])


def _in_order(counts: Counter[str]) -> list[str]:
    """Return the patterns, the greatest first; of equal ones those of folders."""
    return sorted(counts, key=lambda at: (-counts[at], not at.endswith("/"), at))

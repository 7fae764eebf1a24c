"""The outline of a document, from the parts that a converter sees while it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from arag_search.corpus import MAX_NAME_CHARACTERS, MAX_OUTLINE_DEPTH, Outline, Unit, UnitKind

INDEX_LINES = 10
"""The lines that a list of links must have to be an index."""

TABLE_LINES = 10
"""A table of so many lines is a section whose name is its titles: they lead the path of each
passage with its rows."""

_CUT = " ..."


class Part(NamedTuple):
    """A unit as a converter sees it. See Unit.

    A part with a ``level`` above 0 is a heading; its ``end`` is not looked at. Its section ends
    before the next heading of this or a lower level, or with the part that it is in.
    """

    first: int
    end: int
    kind: UnitKind
    name: str = ""
    level: int = 0


class _Open(NamedTuple):
    """A part that has not ended; its place among the units, its level, and its end so far."""

    place: int
    level: int
    end: int


def outline_of(text: str, parts: Iterable[Part]) -> Outline:
    """Return the outline of a text. A part that reaches beyond the one in which it begins ends with
    it, and a part without text, or too deep, is left out."""
    ordered = sorted(parts, key=lambda part: (part.first, part.level > 0, -part.end))
    if not ordered:
        return ()
    begins, ends = _text_lines(text)
    total = len(begins)
    units: list[Unit] = []
    stack: list[_Open] = []
    for part in ordered:
        if not 0 <= part.first < total:
            continue
        while stack and (stack[-1].end <= part.first or stack[-1].level >= part.level > 0):
            last = stack.pop()
            if last.end > part.first:
                units[last.place] = units[last.place]._replace(end=part.first)
        if len(stack) == MAX_OUTLINE_DEPTH:
            continue
        outer = stack[-1].end if stack else total
        end = outer if part.level else min(part.end, outer)
        if end > part.first:
            stack.append(_Open(len(units), part.level, end))
            units.append(Unit(part.first, end, part.kind, name_of(part.name)))
    trimmed = (unit._replace(first=begins[unit.first], end=ends[unit.end]) for unit in units)
    return tuple(unit for unit in trimmed if unit.first < unit.end)


def shifted(outline: Outline, lines: int) -> Iterable[Part]:
    """Yield the units of an outline as parts of a text in which they stand further down."""
    for unit in outline:
        yield Part(unit.first + lines, unit.end + lines, unit.kind, unit.name)


def name_of(words: str) -> str:
    """Return words as a name: on one line, and cut after MAX_NAME_CHARACTERS."""
    name = " ".join(words[: 8 * MAX_NAME_CHARACTERS].split())
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    beginning = name[: MAX_NAME_CHARACTERS - len(_CUT)]
    return (beginning.rpartition(" ")[0] or beginning) + _CUT


def ends_by_indent(lines: list[str]) -> list[int]:
    """Return, for each line, the next line that is not blank and not further indented than it."""
    ends = [len(lines)] * len(lines)
    open_lines: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if bare := line.lstrip():
            indent = len(line) - len(bare)
            while open_lines and open_lines[-1][0] >= indent:
                ends[open_lines.pop()[1]] = number
            open_lines.append((indent, number))
    return ends


def _text_lines(text: str) -> tuple[list[int], list[int]]:
    """Return two lists. One has for each line the first line from there on that is not blank. The
    other has for each number of lines the end of their last line that is not blank."""
    blank = [not line or line.isspace() for line in text.split("\n")]
    ends = [0]
    for number, is_blank in enumerate(blank, 1):
        ends.append(ends[-1] if is_blank else number)
    begins = list(range(len(blank)))
    for number in range(len(blank) - 2, -1, -1):
        if blank[number]:
            begins[number] = begins[number + 1]
    return begins, ends

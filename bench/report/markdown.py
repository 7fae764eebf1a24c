"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def line(cells: Sequence[str]) -> str:
    """Return the line of a row."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def head(cells: Sequence[str]) -> list[str]:
    """Return the two lines that a table begins with."""
    return [line(cells), line(["---"] * len(cells))]


def table(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with this head and a blank line; nothing without rows."""
    return [*head(cells), *map(line, rows), ""] if rows else []

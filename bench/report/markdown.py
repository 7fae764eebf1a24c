"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with this head and a blank line; nothing without rows."""
    if not rows:
        return []
    lines = (head, ["---"] * len(head), *rows)
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return [*(f"| {' | '.join(line)} |" for line in cells), ""]

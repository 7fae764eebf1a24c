"""The lines of a reply that a tool writes, apart from the texts of passages in it."""

from __future__ import annotations

from arag_search.tools.replies.apart import MARK, marked
from arag_search.tools.tool import ToolResult

_TEXT = "\N{WHITE SQUARE}"
"""Stands for the text of a passage."""


def has_our_form(line: str) -> bool:
    """Return whether a line of text gets a mark."""
    return marked(line).startswith(MARK)


def own_lines(result: ToolResult) -> list[str]:
    """Return the lines of a reply that begin outside of the texts of passages. Those of lists of
    lines and below a refusal are left out: text cannot begin a line there."""
    if any(span.kind == "lines" for span in result.passages):
        return []
    pieces: list[str] = []
    done = 0
    for span in (span for span in result.passages if span.text_start < span.end):
        pieces.append(result.text[done : span.text_start])
        done = max(span.end, span.text_start)
    text = _TEXT.join([*pieces, result.text[done:]])
    lines = [line for line in text.split("\n") if line.strip(" .") and not line.startswith(_TEXT)]
    return lines[:1] if result.status == "error" else lines

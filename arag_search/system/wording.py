"""Counts in words, for messages and reports."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: ``1 chunk``, ``2,000 chunks``. The plural has an s, unless it
    is given."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"

"""Read the passages that tool results show from their text."""

from __future__ import annotations

from dataclasses import dataclass

from arag_search.agent.models.offline.names import plain
from arag_search.tools.reply_text import ShownPassage, continues, leaves_out, passages_in, total_of


@dataclass(frozen=True, slots=True)
class SeenPassage:
    """A passage as a result shows it. ``whole`` says that nothing of it is left out, ``continues``
    that something was shown before."""

    id: str
    title: str
    text: str
    whole: bool
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a tool. ``total`` is None if it gives none."""

    passages: tuple[SeenPassage, ...]
    total: int | None


def read_reply(text: str, *, whole: bool = False) -> Reply:
    """Read a result. ``whole`` is for results of chunk_read, which show passages in full. The
    passages that are nearest to a query without a match are no finds."""
    total = total_of(text)
    shown = [] if total == 0 else passages_in(text, of_read=whole)
    return Reply(tuple(_passage(passage, whole) for passage in shown), total)


def _passage(shown: ShownPassage, whole: bool) -> SeenPassage:
    text = plain(shown.text.replace("\n", " "))
    return SeenPassage(shown.id, shown.title, text, whole or not leaves_out(text), continues(text))

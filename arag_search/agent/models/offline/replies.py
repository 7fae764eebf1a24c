"""The text of tool results -> what they show."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arag_search.agent.models.offline.names import plain
from arag_search.tools.reply_text import ShownPassage, passages_in

_COUNT = re.compile(r"^(?:\d+|Passages?.*?) of (more than )?([\d,]+)(?: passages?)? for ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a result shows it. ``whole`` where nothing of it is left out."""

    id: str
    title: str
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answered. ``total`` is None where it says none."""

    passages: tuple[Passage, ...]
    total: int | None


def read_reply(text: str, *, whole: bool = False) -> Reply:
    """Read a result. ``whole`` is for those of chunk_read, which show passages in full."""
    lines = text.split("\n")
    count = _COUNT.match(lines[0])
    total = int(count.group(2).replace(",", "")) if count else None
    if lines[0].startswith(("No passage", "No sentence")):
        total = 0
    return Reply(tuple(_passage(one, whole) for one in passages_in(text, of_read=whole)), total)


def _passage(one: ShownPassage, whole: bool) -> Passage:
    text = plain(one.text.replace("\n", " "))
    return Passage(one.id, one.title, text, whole or "..." not in text)

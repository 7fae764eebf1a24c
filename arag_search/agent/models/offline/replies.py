"""The text of tool results -> what they show."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arag_search.agent.models.offline.names import plain

_HEADER = re.compile(r"^\[([^\]]+)\] ?(.*)$")
_PART = re.compile(r",? ?part \d+ of \d+$")
_COUNT = re.compile(r"^(?:\d+|Passages?.*?) of (more than )?([\d,]+)(?: passages?)? for ")
_FOOT = re.compile(r"^(?:More: offset=|Full text: chunk_read|Not shown for want of room|Note: "
                   r"|Unknown: |Shown up to sentence )")  # fmt: skip
_READ_BEFORE = re.compile(r"^This chunk has been read before\.?$")


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
    passages: list[Passage] = []
    header: tuple[str, str] | None = None
    body: list[str] = []
    for line in (*lines, "[end] "):
        match = _HEADER.match(line)
        if match is None:
            if header is not None and not _FOOT.match(line):
                body.append(line)
            continue
        if header is not None:
            passages.append(_passage(*header, body, whole))
        header, body = (match.group(1), match.group(2)), []
    return Reply(tuple(one for one in passages if not _READ_BEFORE.match(one.title)), total)


def _passage(chunk_id: str, title: str, body: list[str], whole: bool) -> Passage:
    if whole and body and re.match(r"^\((?:previous|next|[\w-]+): .*\)$", body[0]):
        del body[0]  # neighbours and metadata
    text = plain(" ".join(body))
    complete = whole or "..." not in text
    return Passage(chunk_id, _PART.sub("", title.removesuffix(" (shown before)")), text, complete)

"""The text of a tool result -> the passages that it shows, for those who have nothing but the text.

A line of the corpus that looks like a header of ours cannot be told from one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from arag_search.tools.chunk_read import READ_BEFORE
from arag_search.tools.search import SHOWN_BEFORE

_HEADER = re.compile(r"^\[([^\]]+)\] ?(.*)$")
_PART = re.compile(r",? ?part \d+ of \d+$")
_MORE = "More: offset="
_FOOT = re.compile(rf"^(?:{_MORE}|Full text: chunk_read|Not shown for want of room|Note: "
                   r"|Unknown: |Shown up to sentence )")  # fmt: skip
_ABOUT = re.compile(r"^\((?:previous|next|[\w-]+): .*\)$")


class ShownPassage(NamedTuple):
    """A passage as a reply shows it: its title without the part, and the text under it, empty where
    there is none, or where it is left out because it was shown before."""

    id: str
    title: str
    text: str


def passages_in(
    reply: str, *, of_read: bool = False, ids: Collection[str] | None = None
) -> list[ShownPassage]:
    """The passages in a reply, in its order, without those that chunk_read names because they were
    read before.

    ``of_read`` is for its replies, which say under a header what is known of a chunk. ``ids`` are
    those that the reply shows where they are known: then nothing else passes for a header.
    """
    found: list[ShownPassage] = []
    header: tuple[str, str] | None = None
    body: list[str] = []
    for line in (*reply.split("\n"), None):
        match = None if line is None else _HEADER.match(line)
        is_header = match is not None and (ids is None or match[1] in ids)
        if line is not None and not is_header:
            body.append(line)
            continue
        if header is not None and header[1] != READ_BEFORE:
            found.append(_passage(*header, body, of_read))
        if match is not None:
            header, body = (match[1], match[2]), []
    return found


def offers_more(reply: str) -> bool:
    """Whether a reply of a search says that there are further passages."""
    return reply.rpartition("\n")[2].startswith(_MORE)


def _passage(chunk_id: str, header: str, lines: list[str], of_read: bool) -> ShownPassage:
    title = _PART.sub("", header.removesuffix(SHOWN_BEFORE))
    if of_read and lines and _ABOUT.match(lines[0]):
        del lines[0]
    while lines and _FOOT.match(lines[-1]):
        del lines[-1]
    return ShownPassage(chunk_id, title, "\n".join(lines))

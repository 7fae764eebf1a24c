"""The text of a tool result -> the passages that it shows, for those who have nothing but the text.

A line of the corpus that looks like a header of ours cannot be told from one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from arag_search.tools.chunk_read import READ_BEFORE
from arag_search.tools.search import SHOWN_BEFORE

_HEADER = re.compile(r"^\[([^\]]+)\]")
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


class ReplyPart(NamedTuple):
    """A passage with all that a reply says of it: ``about`` is the line of chunk_read under the
    header, ``below`` are our lines after the text; empty where there are none."""

    id: str
    header: str
    title: str
    about: str
    text: str
    below: str

    @property
    def was_read_before(self) -> bool:
        """Whether the reply only says so."""
        return self.title == READ_BEFORE

    @property
    def was_shown_before(self) -> bool:
        """Whether the text is left out for that."""
        return self.header.endswith(SHOWN_BEFORE)


class ReplyParts(NamedTuple):
    """A reply, taken apart: what stands above the passages, which may be all of it, and these."""

    above: str
    passages: tuple[ReplyPart, ...]

    def joined(self) -> str:
        """The reply that was taken apart, but for empty lines where a text begins or ends."""
        lines = [self.above]
        for one in self.passages:
            lines += [one.header, one.about, one.text, one.below]
        return "\n".join(line for line in lines if line)


def reply_parts(
    reply: str, *, of_read: bool = False, ids: Collection[str] | None = None
) -> ReplyParts:
    """A reply, taken apart.

    ``of_read`` is for replies of chunk_read, which say under a header what is known of a chunk.
    ``ids`` are those that the reply shows where they are known: then nothing else passes for a
    header.
    """
    found: list[ReplyPart] = []
    above = ""
    header: tuple[str, str] | None = None
    body: list[str] = []
    for line in (*reply.split("\n"), None):
        id = None if line is None else _id_in(line, ids)
        if line is not None and id is None:
            body.append(line)
            continue
        if header is None:
            above = "\n".join(body)
        else:
            found.append(_part(*header, body, of_read))
        header, body = (id or "", line or ""), []
    return ReplyParts(above, tuple(found))


def passages_in(
    reply: str, *, of_read: bool = False, ids: Collection[str] | None = None
) -> list[ShownPassage]:
    """The passages in a reply, in its order, without those that chunk_read names because they were
    read before; taken apart as by ``reply_parts``."""
    parts = reply_parts(reply, of_read=of_read, ids=ids).passages
    return [ShownPassage(one.id, one.title, one.text) for one in parts if not one.was_read_before]


def offers_more(reply: str) -> bool:
    """Whether a reply of a search says that there are further passages."""
    return reply.rpartition("\n")[2].startswith(_MORE)


def id_in_header(line: str, ids: Collection[str]) -> str | None:
    """Which of the ids, which may hold brackets themselves, a line begins a passage with."""
    if not line.startswith("["):
        return None
    ends = (at for at, character in enumerate(line) if character == "]")
    found = (line[1:at] for at in ends if line[at + 1 : at + 2] in ("", " "))
    return next((id for id in found if id in ids), None)


def _id_in(line: str, ids: Collection[str] | None) -> str | None:
    if ids is not None:
        return id_in_header(line, ids)
    match = _HEADER.match(line)
    return None if match is None else match[1]


def _part(id: str, header: str, lines: list[str], of_read: bool) -> ReplyPart:
    title = _PART.sub("", header[len(id) + 2 :].removeprefix(" ").removesuffix(SHOWN_BEFORE))
    about = ""
    below: list[str] = []
    if of_read and lines and _ABOUT.match(lines[0]):
        about = lines.pop(0)
    while lines and _FOOT.match(lines[-1]):
        below.insert(0, lines.pop())
    return ReplyPart(id, header, title, about, "\n".join(lines), "\n".join(below))

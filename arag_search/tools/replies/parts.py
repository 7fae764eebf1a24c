"""Split a tool result at its passages. For rule-based models, which have only the text, also read
where they are from the text.

This is the only reader of replies. Only a line feed ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from arag_search.tokens import count_tokens
from arag_search.tools.passages.read import IN_BRACKETS, SHOWN_UP_TO, UNKNOWN
from arag_search.tools.replies.beside import BEST_FOR, IN_NO_SENTENCE, NEAREST, OTHER_TITLES
from arag_search.tools.replies.block import (
    ALL_SHOWN,
    LEFT_OUT,
    LOWERED,
    MATCHES_BEFORE,
    NO_TEXT,
    PARTLY_SHOWN,
    SAME,
    SHOWN_BEFORE,
    WHOLE_DOCUMENT,
    WHOLE_PART,
)
from arag_search.tools.replies.pointers import POINTED
from arag_search.tools.replies.spans import FURTHER, NOT_SHOWN, LeftOut, PassageSpan
from arag_search.tools.replies.writing import shown_title

NUDGE = "Note: the last "
"""The beginning of the line that an agent adds after steps that showed nothing new."""
CALLS_LEFT = "Note: tool calls left: "
"""The beginning of the line that an agent adds when few calls are left."""

_HEADER = re.compile(r"^\[(?!\[|page \d+\]$)([^\]\n]+)\].*$", re.MULTILINE)
"""The header of a passage, but not the line at which a page of a PDF begins."""
_PART = re.compile(r",? ?part \d+ of \d+$")
_RANK = rf"(?:cosine -?\d\.\d\d|{LOWERED})"
_WHOLE = rf"(?:{WHOLE_DOCUMENT}|{WHOLE_PART})"
_MARK = re.compile(
    rf" \((?:(?:{_WHOLE}|{NO_TEXT}|{PARTLY_SHOWN}|{ALL_SHOWN}|{_WHOLE}, {SHOWN_BEFORE}|"
    rf"(?P<before>{MATCHES_BEFORE}|{SHOWN_BEFORE}(?:, (?:{_WHOLE}|\d+ {LEFT_OUT}))?))"
    rf"(?:, {_RANK})?|{_RANK})\)$"
)
_LEFT_OUT = re.compile(rf"\(\d+ {LEFT_OUT}[,)]|\.\.\.")
_NUDGED = rf"(?:\n{NUDGE}\d+ steps showed nothing new[^\n]*)?(?:\n{CALLS_LEFT}\d+\.)?\Z"
_FOOT = re.compile(
    rf"(?:\n{NOT_SHOWN}\[[^\n]*\.)?(?P<named>(?:\n{POINTED}\[[^\n]*)*)"
    rf"(?:\n{FURTHER}\w+=\d+(?:/\d+)?\.)?{_NUDGED}"
)
_POINTER = re.compile(r'\[([^]\n]+)\] ([^][\n]*?)(?:: "([^\n]*)"|(?=; \[|\n|\Z))')
_READ_FOOT = re.compile(
    rf"(?:\n{SHOWN_UP_TO}\d+ of \d+\. Go on: chunk_ids [^\n]*)?"
    rf"(?:\n{NOT_SHOWN}chunk_ids \[[^\n]*\]\.)?"
    rf"(?:\n{UNKNOWN}[^\n]* {re.escape(IN_BRACKETS)})?{_NUDGED}"
)
_GO_ON = re.compile(rf"\n{SHOWN_UP_TO}\d+ of \d+\. Go on: chunk_ids [^\n]*\Z")
_MORE = re.compile(rf'^{FURTHER}(after|offset)="?(.*?)"?\.$', re.MULTILINE)
_BESIDE = re.compile(
    rf"(?:\n{SAME}\[.*\]\.)?(?:\n(?:{BEST_FOR}|{NEAREST}).*:|\n{re.escape(IN_NO_SENTENCE)}|\n{OTHER_TITLES})?\Z"
)
"""The lines of a search between the text of a passage and the next header."""
_ABOUT = re.compile(r"\((?:previous|next|[\w-]+): [^\n]*\)(?:\n|\Z)")


class ShownPassage(NamedTuple):
    """A passage in the form in which a reply shows it: its title without the part, and the text
    under it. The text is empty if there is none, or if it was shown before and left out."""

    id: str
    title: str
    text: str


def passages_under(output: str, ids: Sequence[str]) -> list[ShownPassage]:
    """Return the text under the ids of files in the output of a tool that records no places, such
    as ripgrep. Ids stand in ``id:2:text``, ``[id] 2: text``, or ``[id]`` above lines. Titles are
    empty. Output without an id is the text of the only file; if there are several, of none."""
    if not ids:
        return []
    either = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    mark = rf"^(?:\./)?\[?({either})(?:\]?$|[\]:-] ?\d+[:-] ?)"
    _, *marked = re.split(mark, output, flags=re.MULTILINE)
    if not marked and len(ids) == 1 and output:
        marked = [ids[0], output]
    pairs = zip(marked[::2], marked[1::2], strict=True)
    return [ShownPassage(id, "", text.strip("\n")) for id, text in pairs]


class ReplyPart(NamedTuple):
    """A passage with everything that a reply says about it. ``about`` is the line of chunk_read
    under the header, and ``below`` are the tool's lines after the text. Both may be empty."""

    id: str
    header: str
    title: str
    about: str
    text: str
    below: str
    left_out: LeftOut | None = None
    reference: str | None = None
    lines: tuple[int, int] | None = None


class ReplyParts(NamedTuple):
    """A split reply: the text above the passages, which may be all of it, and the passages."""

    above: str
    passages: tuple[ReplyPart, ...]

    def joined(self) -> str:
        """Return the reply before the split, except for empty lines at the beginning and the end of
        texts."""
        lines = [self.above]
        for part in self.passages:
            lines += [part.header, part.about, part.text, part.below]
        return "\n".join(line for line in lines if line)


def parts_of(reply: str, spans: Sequence[PassageSpan]) -> ReplyParts:
    """Split a reply at the passages in it. Pointers are below the last passage."""
    spans = [span for span in spans if span.kind != "pointer"]
    if not spans:
        return ReplyParts(reply, ())
    parts: list[ReplyPart] = []
    next_starts = (*(span.start for span in spans[1:]), len(reply) + 1)
    for span, next_start in zip(spans, next_starts, strict=True):
        header, _, about = reply[span.start : span.text_start].removesuffix("\n").partition("\n")
        parts.append(
            ReplyPart(
                id=span.id,
                header=header,
                title=shown_title(span.title),
                about=about,
                text=span.text_in(reply),
                below=reply[span.end + 1 : next_start - 1],
                left_out=span.left_out,
                reference=span.reference,
                lines=span.lines,
            )
        )
    return ReplyParts(reply[: max(spans[0].start - 1, 0)], tuple(parts))


def read_spans(reply: str, *, of_read: bool = False) -> tuple[PassageSpan, ...]:
    """Read the spans of the passages of a reply from its text.

    ``of_read`` is for replies of chunk_read, which have a line about the chunk under each header.
    """
    begins = [(header[1], header.start()) for header in _HEADER.finditer(reply)]
    foot = (_READ_FOOT if of_read else _FOOT).search(reply, begins[-1][1] if begins else 0)
    reply_end = foot.start() if foot is not None else len(reply)
    spans: list[PassageSpan] = []
    for at, (id, start) in enumerate(begins):
        end = begins[at + 1][1] - 1 if at + 1 < len(begins) else max(reply_end, start)
        spans.append(_span(reply, id, start, end, of_read))
    if foot is not None and not of_read:
        spans += [
            PassageSpan(pointer[1], pointer[2], pointer.start(), *_text_of(pointer), kind="pointer")
            for pointer in _POINTER.finditer(reply, *foot.span("named"))
        ]
    return tuple(spans)


def _text_of(pointer: re.Match[str]) -> tuple[int, int]:
    return pointer.span(3) if pointer[3] else (pointer.end(), pointer.end())


def passages_at(reply: str, spans: Sequence[PassageSpan]) -> list[ShownPassage]:
    """Return the passages of a reply at these spans."""
    return [ShownPassage(span.id, span.title, span.text_in(reply)) for span in spans]


def leaves_out(text: str) -> bool:
    """Return whether the text of a passage seems to leave out sentences that were never shown."""
    return _LEFT_OUT.search(text) is not None


def offers_more(reply: str) -> bool:
    """Return whether a reply of a search says that there are further passages."""
    return reply.rpartition("\n")[2].startswith(FURTHER)


def further_page(reply: str, spans: Sequence[PassageSpan]) -> dict[str, str | int] | None:
    """Return the argument that goes on after a reply with passages at these spans, as its line
    "More:" says; None without this line."""
    match = _MORE.search(reply, max((span.end for span in spans), default=0))
    if match is None:
        return None
    return {match[1]: int(match[2]) if match[1] == "offset" else match[2]}


def shown_tokens(reply: str, spans: Sequence[PassageSpan]) -> int:
    """Return how many o200k tokens of titles and texts of passages a reply shows."""
    return sum(
        count_tokens(shown_title(span.title)) + count_tokens(span.text_in(reply)) for span in spans
    )


def _span(reply: str, id: str, start: int, end: int, of_read: bool) -> PassageSpan:
    header_end = reply.find("\n", start, end)
    header_end = end if header_end < 0 else header_end
    header = reply[start + len(id) + 2 : header_end]
    mark = _MARK.search(header)
    left_out: LeftOut | None = "shown" if mark is not None and mark["before"] else None
    title = _PART.sub("", _MARK.sub("", header).removeprefix(" "))
    text_start = min(header_end + 1, end)
    if of_read and (about := _ABOUT.match(reply, text_start, end)):
        text_start = about.end()
    if of_read and (go_on := _GO_ON.search(reply, max(text_start - 1, header_end), end)):
        end = max(go_on.start(), text_start)
    if not of_read and (beside := _BESIDE.search(reply, header_end, end)):
        end = max(beside.start(), text_start)
    return PassageSpan(id, title, start, text_start, end, left_out=left_out)

"""The spans of passages in the text of a tool result, recorded by its writer, so that no reader
has to guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["hit", "nearest", "branch", "lines"]
LeftOut = Literal["shown", "same"]

_NUMBER = re.compile(r"^\d+: ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A passage in the text of a tool result.

    ``title`` is the passage's full title; the text shows its beginning. Offsets count characters of
    the text: the header begins at ``start``, the passage's own text reaches from ``text_start`` to
    ``end``, which are equal if none is shown. ``sentences`` are the numbers, from 1, of the
    sentences of which anything is shown; ``whole`` is whether nothing of the passage's text is
    missing. Both are None if a model parsed the span from a text, which does not contain them.
    ``left_out`` says why there is no text: the passage was "shown" before, or its text is nearly
    the "same" as that of the passage above it. ``kind`` is "nearest" or "branch" for a
    passage beside the hits of a search: one of those nearest to a query that matches nothing, or
    the best of a branch of an OR.

    A document tool names a document by its ``reference``, and shows the ``lines`` of the passage
    from the first to the last, 0-based. Several passages may follow one header, so a span may begin
    without one. In spans of kind "lines", every line begins with its number, which is not part of
    the text.
    """

    id: str
    title: str
    start: int
    text_start: int
    end: int
    sentences: tuple[int, ...] | None = None
    whole: bool | None = None
    left_out: LeftOut | None = None
    kind: Kind = "hit"
    reference: str | None = None
    lines: tuple[int, int] | None = None

    def text_in(self, reply: str) -> str:
        """Return the part of the passage's own text that the reply shows."""
        text = reply[self.text_start : self.end]
        return _NUMBER.sub("", text) if self.kind == "lines" else text


def clipped(spans: Sequence[PassageSpan], length: int) -> tuple[PassageSpan, ...]:
    """Return the spans in the first ``length`` characters of their text."""
    return tuple(
        span
        if span.end <= length
        else replace(span, text_start=min(span.text_start, length), end=length, whole=False)
        for span in spans
        if span.start < length
    )


def check_spans(spans: Sequence[PassageSpan], reply: str) -> None:
    """Raise ValueError unless the spans follow each other in the reply, and begin with headers
    where they are not of a document."""
    end = 0
    for span in spans:
        in_order = end <= span.start <= span.text_start <= span.end <= len(reply)
        has_header = span.reference is not None or reply.startswith(f"[{span.id}]", span.start)
        if not in_order or not has_header:
            raise ValueError(f"passage {span.id!r} is not at {span.start} in the tool's output")
        end = span.end

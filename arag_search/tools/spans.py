"""The spans of passages in the text of a tool result, recorded by its writer, so that no reader
has to guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["hit", "nearest", "branch"]
LeftOut = Literal["read", "shown", "same"]


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A passage in the text of a tool result.

    ``title`` is the passage's full title; the text shows its beginning. Offsets count characters
    of the text: the header begins at ``start``, the passage's own text reaches from
    ``text_start`` to ``end``, which are equal if none is shown. ``sentences`` are the numbers,
    from 1, of the sentences of which anything is shown; ``whole`` is whether nothing of the
    passage's text is missing. Both are None if the span was parsed from a text, which does not
    contain them. ``left_out`` says why there is no text: the passage was "read" or "shown"
    before, or its text is nearly the "same" as that of the passage above it. ``kind`` is "nearest"
    or "branch" for a passage beside the hits of a search: one of those nearest to a query that
    matches nothing, or the best of a branch of an OR.
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

    def text_in(self, reply: str) -> str:
        """Return the part of the passage's own text that the reply shows."""
        return reply[self.text_start : self.end]


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
    """Raise ValueError unless the spans follow each other in the reply and begin with headers."""
    end = 0
    for span in spans:
        in_order = end <= span.start <= span.text_start <= span.end <= len(reply)
        if not in_order or not reply.startswith(f"[{span.id}]", span.start):
            raise ValueError(f"passage {span.id!r} is not at {span.start} in the tool's output")
        end = span.end

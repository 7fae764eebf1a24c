"""The texts of a reply: ids, titles, headers and metadata as replies show them, and where passages
are in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from arag_search.corpus import MetadataValue
from arag_search.query.field_types import scalar_text
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.replies.apart import unmarked
from arag_search.tools.replies.writing import one_line, shown_id

Kind = Literal["hit", "nearest", "branch", "lines", "title", "pointer"]
LeftOut = Literal["shown", "same"]

_NUMBER = re.compile(r"^\d+(?::\d+)?: ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A passage in the text of a tool result. Offsets count characters of the text.

    - ``title``: the passage's full title; the text shows its beginning.
    - ``start``: where its header begins or, without a header of its own, where its lines begin.
      Several passages may follow one header.
    - ``text_start``, ``end``: the passage's own text. They are equal if none is shown.
    - ``sentences``: the numbers, from 1, of the sentences that are shown at least in part.
    - ``whole``: whether all of the passage's text is shown. It and ``sentences`` are None if a
      model parsed the span from a text, which does not contain them.
    - ``left_out``: why there is no text. "shown": shown before. "same": nearly the text of the
      passage above.
    - ``kind``: "nearest" (to a query that matches nothing) and "branch" (best of a branch of an OR)
      are beside the hits. A "pointer" is the passage of a name above it. In "lines", each line
      begins with its number, which is not part of the text. Elsewhere the marks of ``apart`` are no
      part.
    - ``reference``, ``lines``: the document's name for a document tool, and the first and last line
      of the passage, as an editor counts them.
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
        return _NUMBER.sub("", text) if self.kind == "lines" else unmarked(text)


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
        has_header = span.reference is not None or reply.startswith(
            f"[{shown_id(span.id)}]", span.start
        )
        if not in_order or not has_header:
            raise ValueError(f"passage {span.id!r} is not at {span.start} in the tool's output")
        end = span.end


FURTHER = "More: "
"""The beginning of the last line of a reply that goes on."""
NOT_SHOWN = "Not shown for want of room: "
"""The beginning of the line that names what was left out."""

_MAX_NAME_TOKENS = 40


def metadata_text(metadata: Mapping[str, MetadataValue]) -> str:
    """``year: 1678; lang: en, it``: the fields on one line, in their order."""
    return "; ".join(f"{name}: {value_text(value)}" for name, value in metadata.items())


def value_text(value: object) -> str:
    """Return the value of a metadata field, or its values, on one line."""
    return ", ".join(map(one_line, texts_of(value)))


def texts_of(value: object) -> list[str]:
    """Return the value of a metadata field, or its values, as texts; none if it is absent."""
    values = cast(Sequence[object], value if isinstance(value, tuple | list) else (value,))
    return [scalar_text(item) for item in values if item is not None]


def names(ids: Sequence[str], max_tokens: int, form: str = '"{}"') -> str:
    """Return as many ids as fit, over-long ones cut, then how many more there are."""
    written = [form.format(_shorten_name(id)) for id in ids]
    text = ", ".join(written)
    shown = len(written)
    while shown > 1 and count_tokens(text) > max_tokens:
        shown -= 1
        text = f"{', '.join(written[:shown])} and {len(written) - shown} more"
    return text


def _shorten_name(text: str) -> str:
    valid = text.encode("utf-8", "replace").decode("utf-8")  # a model may write half a character
    return cut_to(one_line(valid), _MAX_NAME_TOKENS)


def bounded(text: str, max_tokens: int) -> str:
    """Return a message of several lines, cut if it is too long; a corrected query at its end is
    kept."""
    if count_tokens(text) <= max_tokens:
        return text
    before, _, last = text.rpartition("\n")
    if last.startswith("Write: ") and count_tokens(last) < max_tokens // 2:
        return f"{cut_to(before, max_tokens - count_tokens(last) - 1)}\n{last}"
    return cut_to(text, max_tokens)

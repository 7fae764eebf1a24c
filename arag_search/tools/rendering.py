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
from arag_search.search.shown.writing import one_line, shown_id
from arag_search.tokens import count_tokens, cut_to

Kind = Literal["hit", "nearest", "branch", "lines", "title", "pointer"]
LeftOut = Literal["shown", "same"]

_NUMBER = re.compile(r"^\d+(?::\d+)?: ", re.MULTILINE)


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
    the best of a branch of an OR. A "pointer" is the passage of a name in one of those above it.

    A document tool names a document by its ``reference``, and shows the ``lines`` of the passage
    from the first to the last, as an editor counts them. Several passages may follow one header, so
    a span may begin without one. In spans of kind "lines", every line begins with its number, which
    is not part of the text.
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


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)
"""Ends of lines other than a line feed, other control characters, signs that turn the direction of
what follows (neither is white space), and tags, which nobody sees and models read."""

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
"""The code points that Unicode calls default ignorable, and the blank of braille."""
_IGNORABLE = re.compile(f"[{_UNSEEN}]")
_IGNORABLE_AT_START = re.compile(f"[^\\S\\n]*[{_UNSEEN}][{_UNSEEN}\\s]*")

_LIKE_OURS = re.compile(
    r"""[^\S\n]*(?P<line>
    \[(?!(?:page|slide|sheet|chapter)[ ][^\]\n]*\]\n)[^\]\n]+\]+(?:\s|\Z)
    |\((?:previous|next|[\w-]+):[ ][^\n]*\)\s*\Z
    |(?:All[ ]shown|Alone|Best[ ]|Go[ ]on|More|Named[ ]above|Nearest|Nearly|Not[ ]shown|Note
       |Other[ ]titles|Query[ ]not[ ]run|Shown[ ]up|Tool[ ]not[ ]run|Unknown|Write)[^\n]{0,60}?:
    |(?:This[ ]call[ ]was|Passages?[ ]\d|No[ ](?:passage|sentence)[ ](?:is|matches)
       |Only[ ][\d,]+[ ](?:document|passage)s?
       |Index[ ]in[ ]step|[\d,]+[ ]files?[ ](?:is|are)[ ]not)[ ]
    |[\d,]+[ ]of[ ](?:more[ ]than[ ])?[\d,]+[ ]passages?(?:[ ]for[ ]|,[ ]|\n|\Z)
    |[\d,]+[ ](?:nearest[ ])?(?:passage|sentence)s?(?:[ ]for[ ]|:[ ](?:\d|documents[ ])))""",
    re.VERBOSE,
)
"""A line that begins like one that a tool writes: a header, the neighbours of a passage, a
note, the first line of a reply."""

_FULL_WIDTH = {"[": "［", "(": "（", ":": "："}


def written_apart(text: str, spans: Sequence[PassageSpan]) -> str:
    """Return a reply in which no text of a passage can be taken for a line of the tool.

    Every character has its place as before. A line of a passage that begins like one of the tool
    continues the last line with text before it; in the first one, a sign of full width stands for
    its bracket or its colon, if it has one. What nobody sees is ignored in this comparison, and a
    blank at the beginning of a line. Only line feeds end lines. Lines with numbers, and
    the texts of pointers, which are within a line, need no care.
    """
    if not text.replace("\n", "").isprintable():
        text = _UNSAFE.sub(lambda sign: " " if sign[0].isspace() else "\ufffd", text)
    pieces: list[str] = []
    done = 0
    for span in spans:
        if span.kind in ("lines", "pointer") or span.text_start >= span.end:
            continue
        written = text[span.text_start : span.end].split("\n")
        lines = [_without_unseen_start(line) for line in written]
        if lines != written or any(_LIKE_OURS.match(_seen(line)) for line in lines):
            pieces += [text[done : span.text_start], _apart(lines)]
            done = span.end
    return "".join([*pieces, text[done:]])


def _without_unseen_start(line: str) -> str:
    unseen = None if line.isascii() else _IGNORABLE_AT_START.match(line)
    return line if unseen is None else f"{' ' * unseen.end()}{line[unseen.end() :]}"


def _seen(line: str) -> str:
    return line if line.isascii() else _IGNORABLE.sub("", line)


def _apart(lines: Sequence[str]) -> str:
    kept: list[str] = []
    filled = 0  # up to the last line with text
    for line in lines:
        seen = _seen(line)
        if match := _LIKE_OURS.match(seen + "\n" * (len(lines) > 1)):
            before = kept[filled - 1 :] if filled else []
            kept = kept[: len(kept) - len(before)]
            first = seen[match.start("line")]
            sign = first if first in _FULL_WIDTH else ":"
            line = line if before else line.replace(sign, _FULL_WIDTH[sign], 1)
            kept.append(" ".join([*before, line]))
        else:
            kept.append(line)
        filled = len(kept) if line.strip() else filled
    return "\n".join(kept)


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

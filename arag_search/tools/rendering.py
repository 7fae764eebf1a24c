"""Render hits and chunks as one text within a bound of tokens, with the spans of its passages.

The bound is hard. Every hit that is shown keeps at least one sentence. The longest snippets lose
their last sentences first, then sentences that are too long are cut, then hits are dropped from the
end and named. The writer of a reply records where its passages are, so that no reader has to guess.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from arag_search.corpus import MetadataValue
from arag_search.query.field_types import scalar_text
from arag_search.search.hits import join_sentences
from arag_search.search.shown.writing import one_line, shown_id, shown_title
from arag_search.tokens import CHARACTERS_PER_TOKEN, count_all, count_tokens, cut_to

Kind = Literal["hit", "nearest", "branch", "lines", "title"]
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


_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Ends of lines other than a line feed, other control characters, and signs that turn the direction
of what follows (neither is white space)."""

_LIKE_OURS = re.compile(
    r"""(?:[^\S\n]|[\u200b-\u200f\u2060\ufeff])*(?P<line>
    \[(?!(?:page|slide|sheet|chapter)[ ][^\]\n]*\]\n)[^\]\n]+\]+(?:\s|\Z)
    |\((?:previous|next|[\w-]+):[ ][^\n]*\)\s*\Z
    |(?:Alone|Best[ ]|Go[ ]on|More|Nearest|Nearly|Not[ ]shown|Note|Query[ ]not[ ]run
       |Shown[ ]up|Tool[ ]not[ ]run|Unknown|Write)[^\n]{0,60}?:
    |(?:This[ ]call[ ]was|Passages?[ ]\d|No[ ](?:passage|sentence)[ ](?:is|matches)
       |Only[ ][\d,]+[ ](?:document|passage)s?
       |[\d,]+[ ](?:of[ ][\d,]+[ ]|nearest[ ])?(?:passage|sentence)s?[ ]for)[ ])""",
    re.VERBOSE,
)
"""A line that begins like one that a tool writes: a header, the neighbours of a passage, a
note, the first line of a reply."""

_FULL_WIDTH = {"[": "［", "(": "（", ":": "："}


def written_apart(text: str, spans: Sequence[PassageSpan]) -> str:
    """Return a reply in which no text of a passage can be taken for a line of the tool.

    Every character has its place as before. A line of a passage that begins like one of the tool
    continues the last line with text before it; in the first one, a sign of full width stands for
    its bracket or its colon, if it has one. Only line feeds end lines. Lines with numbers need no
    care.
    """
    text = _UNSAFE.sub(lambda sign: " " if sign[0].isspace() else "\ufffd", text)
    pieces: list[str] = []
    done = 0
    for span in spans:
        if span.kind == "lines" or span.text_start >= span.end:
            continue
        lines = text[span.text_start : span.end].split("\n")
        if any(map(_LIKE_OURS.match, lines)):
            pieces += [text[done : span.text_start], _apart(lines)]
            done = span.end
    return "".join([*pieces, text[done:]])


def _apart(lines: Sequence[str]) -> str:
    kept: list[str] = []
    filled = 0  # up to the last line with text
    for line in lines:
        if match := _LIKE_OURS.match(line + "\n" * (len(lines) > 1)):
            before = kept[filled - 1 :] if filled else []
            kept = kept[: len(kept) - len(before)]
            first = line[match.start("line")]
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


NOT_SHOWN = "Not shown for want of room: "
"""The beginning of the line that names what was left out."""

LEAST_TOKENS = 16
"""The minimum to which the text of a hit is cut."""
_MAX_NAME_TOKENS = 40
_TOKENS_OF_CHARACTER = 4  # no more than its bytes
_SHARE_OF_NAMES = 8  # names of what was left out take at most an eighth of a reply

Frame = Callable[[Sequence["Block"]], tuple[str, str]]
"""The text above and below the hits, given those that are shown."""


@dataclass(slots=True)
class Block(ABC):
    """One passage or document in a reply: a header line, and sentences of which ``shown`` are
    written out.

    ``title`` is the passage's full title, of which the header shows the beginning. ``cut`` is
    the text to show instead if the only remaining sentence is too long. A block without
    sentences is its header alone. ``left_out`` says why a passage with text is shown as a header
    only.
    """

    id: str
    title: str
    header: str
    sentences: Sequence[str]
    shown: list[int]
    cut: str | None = None
    left_out: LeftOut | None = None

    @property
    def body(self) -> str:
        """The text under the header."""
        return self.cut if self.cut is not None else self.uncut_body

    @property
    def retrieved_title(self) -> str:
        """The title that counts as retrieved."""
        return shown_title(self.title)

    @property
    @abstractmethod
    def uncut_body(self) -> str:
        """The text to show, whole."""

    @property
    def ids(self) -> list[str]:
        """The ids of the hits that the block stands for."""
        return [self.id]

    def drop_after(self, dropped: Block) -> None:  # noqa: B027
        """Drop the hits of the block that come after those of another block, which was dropped."""

    @abstractmethod
    def spans(self, start: int) -> Iterator[PassageSpan]:
        """Yield the spans of the passages in a reply in which the header begins at ``start``."""

    def __str__(self) -> str:
        body = self.body
        return f"{self.header}\n{body}" if body else self.header


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


class Fitted(NamedTuple):
    """A reply, the blocks in it, and where each of them is."""

    text: str
    blocks: list[Block]
    spans: tuple[PassageSpan, ...]


def fit(frame: Frame, blocks: Sequence[Block], max_tokens: int, *, whole: bool = False) -> Fitted:
    """Return the reply and the blocks that are in it, which are changed in place.

    With ``whole``, blocks are shown unchanged or not at all, except for a single block that is too
    long. The frame is kept if it leaves room.
    """
    for block in blocks:
        _trim(block, max_tokens)
    ids = [id for block in blocks for id in block.ids]
    kept = list(blocks)
    shrink = _shrink_alone if whole else _shrink
    while True:
        above, below = _surroundings(frame, kept, ids, max_tokens)
        text = "\n".join([*above, *map(str, kept), *below])
        over = count_tokens(text) - max_tokens
        if over <= 0:
            return Fitted(text, kept, _spans(sum(len(line) + 1 for line in above), kept))
        if not kept:
            return Fitted(cut_to(text, max_tokens), kept, ())
        if not shrink(kept, over):
            dropped = kept.pop()
            for block in kept:
                block.drop_after(dropped)


def _trim(block: Block, max_tokens: int) -> None:
    # What could not be shown even if the block were alone is counted once.
    characters = sum(len(block.sentences[number]) for number in block.shown)
    if characters * _TOKENS_OF_CHARACTER <= max_tokens:
        return
    used = 0
    for at, number in enumerate(block.shown):
        used += count_tokens(block.sentences[number][: CHARACTERS_PER_TOKEN * max_tokens])
        if used > max_tokens:
            del block.shown[max(at, 1) :]
            break
    if used > max_tokens and len(block.shown) == 1:
        block.cut = cut_to(block.body, max_tokens)


def _surroundings(
    frame: Frame, kept: Sequence[Block], ids: Sequence[str], max_tokens: int
) -> tuple[list[str], list[str]]:
    head, foot = frame(kept)
    below: list[str] = []
    shown = {id for block in kept for id in block.ids}
    dropped = [id for id in ids if id not in shown]
    if dropped:
        shown_ids = [shown_id(id) for id in dropped]
        named = names(shown_ids, max_tokens // _SHARE_OF_NAMES, "[{}]")
        below.append(f"{NOT_SHOWN}{named}.")
    return [head] if head else [], [*below, foot] if foot else below


def _spans(start: int, blocks: Sequence[Block]) -> tuple[PassageSpan, ...]:
    spans: list[PassageSpan] = []
    for block in blocks:
        spans.extend(block.spans(start))
        start += len(str(block)) + 1
    return tuple(spans)


def _shrink(blocks: Sequence[Block], over: int) -> bool:
    """Shorten bodies by about ``over`` tokens in all; return False, without a change, if that is
    impossible."""
    lengths = [count_tokens(block.body) for block in blocks]
    target = sum(lengths) - over
    if target < sum(map(_least_tokens, blocks)):
        return False
    costs = [[count_tokens(block.sentences[n]) for n in block.shown] for block in blocks]
    changed = False
    while sum(lengths) > target:
        longest = max(
            (at for at, block in enumerate(blocks) if len(block.shown) > 1 and block.cut is None),
            key=lambda at: lengths[at],
            default=None,
        )
        if longest is None:
            break
        blocks[longest].shown.pop()
        lengths[longest] -= costs[longest].pop()
        changed = True
    return _level_lengths(blocks, target) or changed


def _least_tokens(block: Block) -> int:
    shortest = block.body if block.cut else join_sentences(block.sentences, block.shown[:1])
    return min(count_tokens(shortest), LEAST_TOKENS)


def _level_lengths(blocks: Sequence[Block], target: int) -> bool:
    """Cut the longest bodies to the same length, so that all together have ``target`` tokens.

    Returns whether any was cut.
    """
    lengths = [count_tokens(block.body) for block in blocks]
    level = max(lengths)
    while level > LEAST_TOKENS and sum(min(length, level) for length in lengths) > target:
        level -= 1
    for block, length in zip(blocks, lengths, strict=True):
        if length > level:
            block.cut = cut_to(block.body, level)
    return level < max(lengths)


def _shrink_alone(blocks: Sequence[Block], over: int) -> bool:
    with_text = [block for block in blocks if block.body]
    if len(with_text) != 1:
        return False
    length = count_tokens(with_text[0].body)
    if length - over < LEAST_TOKENS:
        return False
    with_text[0].cut = cut_to(with_text[0].body, length - over)
    return True


def bounded(text: str, max_tokens: int) -> str:
    """Return a message of several lines, cut if it is too long; a corrected query at its end is
    kept."""
    if count_tokens(text) <= max_tokens:
        return text
    before, _, last = text.rpartition("\n")
    if last.startswith("Write: ") and count_tokens(last) < max_tokens // 2:
        return f"{cut_to(before, max_tokens - count_tokens(last) - 1)}\n{last}"
    return cut_to(text, max_tokens)


def retrieved_tokens(blocks: Sequence[Block]) -> int:
    """Return the tokens of titles and text in the blocks."""
    return count_all(text for block in blocks for text in (block.retrieved_title, block.body))

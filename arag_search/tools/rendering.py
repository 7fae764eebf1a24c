"""Hits and chunks -> one text within a bound of tokens.

The bound is hard. Every hit that is shown keeps at least one sentence; the longest snippets lose
their last sentences first, then sentences that are too long are cut, then hits are dropped from the
end, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arag_search.corpus import split_at
from arag_search.results import join_sentences
from arag_search.tokens import FAR, count_tokens, cut_to

MAX_TITLE_TOKENS = 40
LEAST_TOKENS = 16
"""The text of a hit is not cut to less."""
_MAX_NAME_TOKENS = 40
_SHARE_OF_NAMES = 8  # names of what was left out take at most an eighth of a reply

Frame = Callable[[int], tuple[str, str]]
"""What stands above and below the hits, given how many of them are shown."""


@dataclass(slots=True)
class Block:
    """One passage in a reply: a header line, and sentences of which ``shown`` are written out.

    ``title`` is as the header shows it. ``cut`` is the text to show instead where the only sentence
    left is too long. A block without sentences is its header alone.
    """

    id: str
    title: str
    header: str
    sentences: Sequence[str]
    shown: list[int]
    cut: str | None = None

    @property
    def body(self) -> str:
        """The text under the header."""
        return self.cut if self.cut is not None else join_sentences(self.sentences, self.shown)

    def __str__(self) -> str:
        body = self.body
        return f"{self.header}\n{body}" if body else self.header


def block(
    chunk_id: str,
    title: str,
    part: int,
    parts: int,
    content: str,
    sentence_ends: tuple[int, ...],
    shown: Sequence[int],
) -> Block:
    """A passage under ``[id] title, part i of n``."""
    header = header_line(chunk_id, title, part, parts)
    sentences = split_at(content, sentence_ends)
    return Block(chunk_id, shown_title(title), header, sentences, list(shown))


def header_line(chunk_id: str, title: str, part: int, parts: int) -> str:
    """``[881.2] Antonio Vivaldi, part 2 of 3``; the part only where there are several."""
    name = shown_title(title)
    pieces = [name] if name else []
    if parts > 1:
        pieces.append(f"part {part} of {parts}")
    return f"[{chunk_id}] {', '.join(pieces)}".rstrip()


def shown_title(title: str) -> str:
    """The title on one line, at most MAX_TITLE_TOKENS long."""
    return cut_to(one_line(title), MAX_TITLE_TOKENS)


def one_line(text: str) -> str:
    """The text without line breaks, so that it cannot pass for another line of the reply."""
    return " ".join(text.split())


def names(ids: Sequence[str], max_tokens: int, form: str = '"{}"') -> str:
    """The ids in a row, over-long ones cut, as many as fit; then how many more there are."""
    written = [form.format(_named(one)) for one in ids]
    text = ", ".join(written)
    shown = len(written)
    while shown > 1 and count_tokens(text) > max_tokens:
        shown -= 1
        text = f"{', '.join(written[:shown])} and {len(written) - shown} more"
    return text


def _named(text: str) -> str:
    valid = text.encode("utf-8", "replace").decode("utf-8")  # a model may write half a character
    return cut_to(one_line(valid), _MAX_NAME_TOKENS)


def fit(
    frame: Frame, blocks: Sequence[Block], max_tokens: int, *, whole: bool = False
) -> tuple[str, list[Block]]:
    """The reply and the blocks that stand in it, which are changed in place.

    ``whole`` shows blocks as they are or not at all, but for one that is alone and too long. The
    frame is kept where it leaves room.
    """
    for one in blocks:
        _trim(one, max_tokens)
    kept = list(blocks)
    shrink = _shrink_alone if whole else _shrink
    while True:
        text = _joined(frame, kept, blocks[len(kept) :], max_tokens)
        over = count_tokens(text) - max_tokens
        if over <= 0:
            return text, kept
        if not kept:
            return cut_to(text, max_tokens), kept
        if not shrink(kept, over):
            kept.pop()


def _trim(one: Block, max_tokens: int) -> None:
    """Take off what could not be shown if the block were alone, so that it is not counted again."""
    used = 0
    for at, number in enumerate(one.shown):
        used += count_tokens(one.sentences[number][: FAR * max_tokens])
        if used > max_tokens:
            del one.shown[max(at, 1) :]
            break
    if used > max_tokens and len(one.shown) == 1:
        one.cut = cut_to(one.body, max_tokens)


def _joined(frame: Frame, kept: Sequence[Block], dropped: Sequence[Block], max_tokens: int) -> str:
    head, foot = frame(len(kept))
    lines = [head, *map(str, kept)]
    if dropped:
        named = names([one.id for one in dropped], max_tokens // _SHARE_OF_NAMES, "[{}]")
        lines.append(f"Not shown for want of room: {named}.")
    return "\n".join(line for line in (*lines, foot) if line)


def _shrink(blocks: Sequence[Block], over: int) -> bool:
    """Shorten bodies by about ``over`` tokens in all; False, and no change, where they cannot."""
    lengths = [count_tokens(one.body) for one in blocks]
    target = sum(lengths) - over
    if target < sum(map(_least, blocks)):
        return False
    costs = [[count_tokens(one.sentences[n]) for n in one.shown] for one in blocks]
    changed = False
    while sum(lengths) > target:
        longest = max(
            (at for at, one in enumerate(blocks) if len(one.shown) > 1 and one.cut is None),
            key=lambda at: lengths[at],
            default=None,
        )
        if longest is None:
            break
        blocks[longest].shown.pop()
        lengths[longest] -= costs[longest].pop()
        changed = True
    return _level(blocks, target) or changed


def _least(one: Block) -> int:
    """Tokens of the shortest text that the block may have."""
    shortest = one.body if one.cut else join_sentences(one.sentences, one.shown[:1])
    return min(count_tokens(shortest), LEAST_TOKENS)


def _level(blocks: Sequence[Block], target: int) -> bool:
    """Cut the longest bodies to one length, such that all together have ``target`` tokens; whether
    any was cut."""
    lengths = [count_tokens(one.body) for one in blocks]
    level = max(lengths)
    while level > LEAST_TOKENS and sum(min(length, level) for length in lengths) > target:
        level -= 1
    for one, length in zip(blocks, lengths, strict=True):
        if length > level:
            one.cut = cut_to(one.body, level)
    return level < max(lengths)


def _shrink_alone(blocks: Sequence[Block], over: int) -> bool:
    """Cut the one block with text by ``over`` tokens; False where there are several, or no room."""
    with_text = [one for one in blocks if one.body]
    if len(with_text) != 1:
        return False
    length = count_tokens(with_text[0].body)
    if length - over < LEAST_TOKENS:
        return False
    with_text[0].cut = cut_to(with_text[0].body, length - over)
    return True


def bounded(text: str, max_tokens: int) -> str:
    """A message of several lines, cut where it is too long; a mended query at its end is kept."""
    if count_tokens(text) <= max_tokens:
        return text
    before, _, last = text.rpartition("\n")
    if last.startswith("Write: ") and count_tokens(last) < max_tokens // 2:
        return f"{cut_to(before, max_tokens - count_tokens(last) - 1)}\n{last}"
    return cut_to(text, max_tokens)


def retrieved_tokens(blocks: Sequence[Block]) -> int:
    """Tokens of titles and text in the blocks."""
    return sum(count_tokens(one.title) + count_tokens(one.body) for one in blocks)

"""Several blocks are fitted to a bound of tokens.

The bound is hard. Every hit that is shown keeps at least one sentence. The longest texts lose their
last sentences first, then sentences that are too long are cut, then hits are dropped from the end
and named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from arag_search.engines.hits import join_sentences
from arag_search.tokens import CHARACTERS_PER_TOKEN, count_tokens, count_with, cut_to
from arag_search.tools.replies.apart import cut_marked
from arag_search.tools.replies.block import Block
from arag_search.tools.replies.spans import NOT_SHOWN, PassageSpan, names
from arag_search.tools.replies.writing import shown_id

LEAST_TOKENS = 16
"""The minimum to which the text of a hit is cut."""
_TOKENS_OF_CHARACTER = 4  # no more than its bytes
_SHARE_OF_NAMES = 8  # names of what was left out take at most an eighth of a reply

Frame = Callable[[Sequence[Block]], tuple[str, str]]
"""The text above and below the hits, given the blocks that are shown."""


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
        texts = list(map(str, kept))
        text = "\n".join([*above, *texts, *below])
        starts = accumulate([len(part) + 1 for part in (*above, *texts)], initial=0)
        placed = kept, list(starts)[len(above) :], list(map(len, texts))
        over = count_with(text, map(Block.place, *placed)) - max_tokens
        if over <= 0:
            return Fitted(text, kept, tuple(chain.from_iterable(map(Block.spans, *placed))))
        if not kept:
            return Fitted(cut_to(text, max_tokens), kept, ())
        if not shrink(kept, over):
            dropped = kept.pop()
            for block in kept:  # nor name copies that came after it
                block.same = [other for other in block.same if other.at < dropped.at]


def _trim(block: Block, max_tokens: int) -> None:
    # What could not be shown even if the block were alone is counted once.
    characters = sum([len(block.sentences[number]) for number in block.shown])
    if characters * _TOKENS_OF_CHARACTER <= max_tokens:
        return
    used = 0
    for at, number in enumerate(block.shown):
        used += count_tokens(block.sentences[number][: CHARACTERS_PER_TOKEN * max_tokens])
        if used > max_tokens:
            del block.shown[max(at, 1) :]
            break
    if used > max_tokens and len(block.shown) == 1:
        block.cut = cut_marked(block.body, max_tokens)


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
            block.cut = cut_marked(block.body, level)
    return level < max(lengths)


def _shrink_alone(blocks: Sequence[Block], over: int) -> bool:
    with_text = [block for block in blocks if block.body]
    if len(with_text) != 1:
        return False
    return _level_lengths(with_text, count_tokens(with_text[0].body) - over)

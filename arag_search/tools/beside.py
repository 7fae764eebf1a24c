"""Passages beside the hits of a search, each under a line that says why it is there: the nearest
ones if nothing matches, and the best ones of branches without a hit on the page."""

from __future__ import annotations

from arag_search.search.results import SearchResult
from arag_search.tokens import cut_to
from arag_search.tools.base import ReadSet
from arag_search.tools.marked import MarkedBlock, marked_block, whole_lengths

MAX_INTRO_TOKENS = 100
IN_NO_SENTENCE = "In no single sentence, but in these passages:"
BEST_FOR = "Best for "
NEAREST = "Nearest, without "


def blocks_beside(
    result: SearchResult, read_set: ReadSet, whole_up_to: int | None
) -> list[MarkedBlock]:
    """Return the passages beside the hits, in the order in which they are shown."""
    blocks: list[MarkedBlock] = []
    lacks: tuple[str, ...] | None = None
    lengths = whole_lengths([near.hit for near in result.nearest], whole_up_to)
    for near, length in zip(result.nearest, lengths, strict=True):
        block = marked_block(near.hit, 0, read_set, whole_up_to=length)
        block.kind = "nearest"
        if near.lacks != lacks:
            missing = " and ".join(near.lacks)
            block.intro = _intro(f"{NEAREST}{missing}") if near.lacks else IN_NO_SENTENCE
        lacks = near.lacks
        blocks.append(block)
    for other in result.unheard:
        block = marked_block(other.hit, 0, read_set, whole_up_to=whole_up_to)
        block.kind = "branch"
        block.intro = _intro(f"{BEST_FOR}{other.branch}")
        blocks.append(block)
    return blocks


def branch_counts(result: SearchResult) -> str:
    """Return the line with the counts of the parts of a query; empty if there are none."""
    counts = "; ".join(map(str, result.branches))
    return f"Alone: {counts}." if counts else ""


def _intro(text: str) -> str:
    return f"{cut_to(' '.join(text.split()), MAX_INTRO_TOKENS)}:"

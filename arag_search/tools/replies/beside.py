"""The parts of a reply beside the hits of a search: passages, other titles, and counts of parts of
a query. The passages are the nearest if nothing matches, and the best of branches without a hit."""

from __future__ import annotations

from collections.abc import Sequence

from arag_search.query import analysis
from arag_search.query.fields import TITLE
from arag_search.query.problems import shortened
from arag_search.search.advice.told import ClauseCount, count_text
from arag_search.search.asked import Keywords
from arag_search.search.results import SearchResult
from arag_search.tokens import cut_to
from arag_search.tools.replies.block import SHOWN_BEFORE, Block
from arag_search.tools.replies.chosen import block_of, passages_of
from arag_search.tools.replies.writing import shown_title
from arag_search.tools.tool import ReadSet

MAX_INTRO_TOKENS = 100
MAX_PART_CHARACTERS = 40
IN_NO_SENTENCE = "In no single sentence, but in these passages:"
BEST_FOR = "Best for "
NEAREST = "Nearest, without "
OTHER_TITLES = "Other titles:"
PER_KEYWORD = "Passages per keyword: "


def blocks_beside(result: SearchResult, read_set: ReadSet, whole_up_to: int | None) -> list[Block]:
    """Return the passages beside the hits, in the order in which they are shown."""
    blocks: list[Block] = []
    lacks: tuple[str, ...] | None = None
    of_part = whole_up_to and not result.hits and whole_up_to  # only a snippet beside hits
    nearest = passages_of(result.nearest, of_part)
    for near, passage in zip(result.nearest, nearest, strict=True):
        block = block_of(passage, 0, read_set)
        if block.left_out == "shown":
            continue
        block.kind = "nearest"
        if near.lacks != lacks:
            missing = " and ".join(near.lacks)
            block.intro = _intro(f"{NEAREST}{missing}") if near.lacks else IN_NO_SENTENCE
        lacks = near.lacks
        blocks.append(block)
    others = passages_of(result.unrepresented, whole_up_to)
    for other, passage in zip(result.unrepresented, others, strict=True):
        block = block_of(passage, 0, read_set)
        block.kind = "branch"
        block.intro = _intro(f"{BEST_FOR}{other.branch}")
        blocks.append(block)
    return blocks


def list_other_titles(result: SearchResult, blocks: Sequence[Block]) -> None:
    """Show other passages by their titles alone, if the query is only the exact title of the first
    hit. Passages with this title stay as they are."""
    query = None if result.highlighter is None else result.highlighter.query
    if query is None or query.field != TITLE or not result.hits or result.offset:
        return
    wanted = analysis.terms(query.typed)
    if query.kind not in ("word", "phrase") or analysis.terms(result.hits[0].title) != wanted:
        return
    others = [block for block in blocks if analysis.terms(block.title) != wanted]
    for block in others:
        block.shown, block.kind, block.left_out, block.whole = [], "title", None, None
    if others:
        others[0].intro = OTHER_TITLES


def branch_counts(result: SearchResult, shown: int, read_set: ReadSet) -> str:
    """Return the line with the counts of all keywords, or of the parts of a query that find less
    than the passages ``shown``. It is empty if there are none. It names the parts whose matches
    have all been shown, here or before."""
    seen = {id for id in read_set.seen if read_set.seen[id] and read_set.is_kept}
    if isinstance(result.asked, Keywords):
        counts = ", ".join(_count(part, seen) for part in result.branches)
        return f"{PER_KEYWORD}{counts}." if counts else ""
    nowhere = [part.clause for part in result.branches if part.leaf and not part.count]
    few = [
        part
        for part in result.branches
        if (part.count < shown or part.titles) and not {part.clause, *part.lacks} & {*nowhere}
    ]
    counts, whole = list[str](), list[str]()
    for part in few:
        is_shown = 0 < part.count == len(part.matches) and seen.issuperset(part.titles)
        (whole if is_shown else counts).append(_count(part, seen))
    if nowhere:
        counts.append(f"{', '.join(nowhere)} {'occurs' if len(nowhere) == 1 else 'occur'} nowhere")
    kinds = {"Alone": counts, "All shown": whole}
    apart = ". " if any(": " in text for text in counts) else "; "
    return " ".join(f"{kind}: {apart.join(texts)}." for kind, texts in kinds.items() if texts)


def _count(part: ClauseCount, seen: set[str]) -> str:
    clause = shortened(part.clause, MAX_PART_CHARACTERS)
    if part.lacks and clause != part.clause:  # what failed is not cut off
        clause = f"(... AND {' AND '.join(part.lacks)})"
    text = f"{clause} {count_text(part.count)}"
    if 0 < part.count == len(part.matches) and part.matches.issubset(seen):
        return f"{clause}: {'' if part.count == 1 else f'all {part.count} '}{SHOWN_BEFORE}"
    titles = dict.fromkeys(title for id, title in part.titles.items() if title and id not in seen)
    if not titles:
        return text
    also = "" if len(titles) == part.count else "also "
    return f"{text}: {also}{'; '.join(map(shown_title, titles))}"


def _intro(text: str) -> str:
    return f"{cut_to(' '.join(text.split()), MAX_INTRO_TOKENS)}:"

"""What a search shows of its passages, and beside them: the nearest ones if nothing matches, and
the best ones of branches without a hit on the page, under a line that says why they are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from arag_search.corpus import split_at
from arag_search.engines.hits import Hit
from arag_search.query import analysis
from arag_search.query.fields import TITLE
from arag_search.query.forms import normal_terms
from arag_search.query.problems import shortened
from arag_search.search.advice.told import ClauseCount, count_text
from arag_search.search.results import SearchResult
from arag_search.tokens import count_tokens, count_up_to, cut_to
from arag_search.tools.replies.block import (
    Block,
    NearCopy,
    passage_block,
    without_visible,
)
from arag_search.tools.replies.writing import header_line, shown_title
from arag_search.tools.tool import ReadSet

SNIPPET_TOKENS = 48
"""A snippet is extended by the sentences after its matches up to this many o200k tokens."""
SHORT_TOKENS = 32
ENTRY_TOKENS = 200
NAMED_TOKENS = 256
NAMED_SENTENCES = 9
NAMED_ROOM = 384
ALIKE = 0.85
"""Texts whose word runs have at least this Jaccard similarity are near copies."""
_RUN_WORDS = 4
_COPIED_WORDS = 50
_COMPARED_CHARACTERS = 20_000
_MAX_SAME_TOKENS = 200

_NAME = re.compile(r"\W*([A-Z][^\W\d_]{2,})\b")
_PRONOUNS = frozenset({
    "he", "she", "it", "they", "his", "her", "hers", "its", "their", "theirs", "him", "them",
    "this", "that", "these", "those", "there", "such",
    "er", "sie", "es", "ihr", "ihre", "sein", "seine", "dieser", "diese", "dieses", "dort",
    "il", "elle", "ils", "elles", "son", "sa", "ses", "leur", "leurs", "ce", "cet", "cette", "ces",
    "él", "ella", "ellos", "ellas", "su", "sus", "este", "esta", "esto", "ese", "esa", "eso",
    "lui", "lei", "loro", "suo", "sua", "questo", "questa", "ele", "ela", "eles", "elas", "seu",
    "он", "она", "оно", "они", "его", "её", "их", "этот", "эта", "это", "эти",
})  # fmt: skip
"""Words that refer to something named before, in several languages."""


class Passage(NamedTuple):
    """A hit with its sentences, whether it is short enough to be shown whole, and its near copies,
    None if it is one itself."""

    hit: Hit
    sentences: Sequence[str]
    fits: bool
    copies: Sequence[NearCopy] | None = ()


def nothing_of_a_copy(passage: Passage) -> list[int] | None:
    """Show nothing of a near copy of a passage above it but an id in a line."""
    return [] if passage.copies is None else None


def sentences_that_match(passage: Passage) -> list[int] | None:
    """Show those that match in a search at sentence granularity, whose hits have no other text."""
    return None if all(passage.sentences) else sorted(set(passage.hit.sentences))


def whole_passage(passage: Passage) -> list[int] | None:
    """Show a passage whole that is short enough, or asked for so."""
    return list(range(len(passage.sentences))) if passage.fits else None


def snippet(passage: Passage) -> list[int] | None:
    """Show of any other the best sentences for the query, and what SNIPPET adds to them."""
    chosen = set(passage.hit.sentences)
    if chosen:
        for add in SNIPPET:
            chosen.update(add(passage, chosen))
        if is_headless(passage.sentences, min(chosen), passage.hit.title):
            chosen.add(min(chosen) - 1)
    return sorted(chosen)


RULES = (nothing_of_a_copy, sentences_that_match, whole_passage, snippet)
"""What is shown of a passage: the first rule that gives numbers of sentences decides, and those
that are still visible are left out. Measured in bench/studies/replay.md."""


def after_the_title(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the next sentence, if the chosen ones say no more than the title."""
    known = set(analysis.terms(passage.hit.title))
    texts = (passage.sentences[number] for number in chosen)
    if any(not known.issuperset(analysis.terms(text)) for text in texts):
        return ()
    return range(max(chosen) + 1, min(max(chosen) + 2, len(passage.sentences)))


def second_if_named(passage: Passage, _: Collection[int]) -> Iterable[int]:
    """Add the second sentence of a passage whose title the query names."""
    return (1,) if passage.hit.is_named and len(passage.sentences) > 1 else ()


def below_names(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the sentences below the names of units that are chosen, ENTRY_TOKENS at most and not into
    another unit."""
    sentences, units = passage.sentences, passage.hit.outline.units
    openings = {unit.first for unit in units}
    added: set[int] = set()
    room = ENTRY_TOKENS
    for unit in units:
        word = unit.name.rpartition(" ")[2]
        within = range(unit.first, unit.end)
        named = next((n for n in within if word in sentences[n]), unit.first)  # below comments
        for below in within[named + 1 - unit.first :] if named in chosen else ():
            room -= count_tokens(sentences[below])
            if below in openings or room < 0:
                break
            added.add(below)
    return added


def following(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the sentence after each of these, in the same unit, if it begins with a pronoun, or as
    long as the snippet has at most SNIPPET_TOKENS."""
    sentences, unit_of = passage.sentences, passage.hit.outline.unit_of
    after = [n + 1 for n in sorted(chosen) if n + 1 < len(sentences) and n + 1 not in chosen]
    after = [number for number in after if unit_of(number) == unit_of(number - 1)]
    added = {number for number in after if begins_with_pronoun(sentences[number])}
    if len(added) == len(after):
        return added
    room = SNIPPET_TOKENS
    for number in dict.fromkeys((*chosen, *added, *after)):
        if (tokens := count_up_to(sentences[number], room)) is None:
            break
        room -= tokens
        added.add(number)
    return added


SNIPPET: Sequence[Callable[[Passage, Collection[int]], Iterable[int]]] = (
    after_the_title,
    second_if_named,
    below_names,
    following,
)
"""What is added to a snippet, in this order."""


def is_headless(sentences: Sequence[str], first: int, title: str) -> bool:
    """Return whether the first sentence of a snippet begins with the last name of somebody whom the
    sentence before it names in full, and the title does not; or with a pronoun, after a short one.
    """
    if first and begins_with_pronoun(sentences[first]):
        return count_up_to(sentences[first - 1], SHORT_TOKENS) is not None
    name = _NAME.match(sentences[first])
    if not first or name is None or name[1] in title:
        return False
    return re.search(rf"[A-Z][\w.]* {name[1]}\b", sentences[first - 1]) is not None


def begins_with_pronoun(sentence: str) -> bool:
    """Return whether the first word of a sentence refers to something before it."""
    words = sentence.split(maxsplit=1)
    return bool(words) and words[0].strip("\"'“‘«(,").lower() in _PRONOUNS


def passages_of(hits: Sequence[Hit], whole_up_to: int | None) -> list[Passage]:
    """Return hits with what the rules ask. A passage fits if it has at most as many o200k tokens as
    ``whole_up_to``, None for any number; if the query names its title, at most NAMED_TOKENS in at
    most NAMED_SENTENCES, as long as all that fit above it leave so much of NAMED_ROOM."""
    room = NAMED_ROOM
    passages: list[Passage] = []
    for hit in hits:
        fits = whole_up_to is None
        if whole_up_to:
            is_named = hit.is_named and len(hit.sentence_ends) <= NAMED_SENTENCES
            most = max(min(NAMED_TOKENS, room) if is_named else 0, whole_up_to)
            tokens = count_up_to(hit.content, most)
            fits = tokens is not None
            room -= tokens or 0
        passages.append(Passage(hit, split_at(hit.content, hit.sentence_ends), fits))
    return passages


def block_of(passage: Passage, at: int, read_set: ReadSet) -> Block:
    """Return a passage with what the rules show of it. ``at`` is its place among the hits."""
    hit = passage.hit
    header = header_line(hit.id, hit.title, hit.part, hit.parts, hit.outline)
    same = list(passage.copies or ())
    block = passage_block(hit, header, passage.sentences, at=at, same=same, outline=hit.outline)
    numbers = next(numbers for rule in RULES if (numbers := rule(passage)) is not None)
    return without_visible(block, numbers, read_set)


def blocks_of(result: SearchResult, read_set: ReadSet, whole_up_to: int | None) -> list[Block]:
    """Return the blocks of hits, in order. A near copy has none; the passage beside it names it."""
    passages = with_copies(passages_of(result.hits, whole_up_to), result.typed_in)
    return [
        block_of(passage, at, read_set)
        for at, passage in enumerate(passages)
        if passage.copies is not None
    ]


class _Text:
    """The words of a passage, and their runs, read when they are compared."""

    def __init__(self, passage: Passage) -> None:
        self.hit = passage.hit

    @cached_property
    def words(self) -> list[str]:
        return normal_terms(self.hit.content[:_COMPARED_CHARACTERS], "")

    @cached_property
    def folded(self) -> list[str]:
        text = " ".join(self.words)
        return self.words if text.isascii() else text.casefold().split()

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(self.folded)

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        # A text of fewer words is similar only to itself.
        return frozenset(zip(*(self.folded[start:] for start in range(_RUN_WORDS)), strict=False))

    def copies(self, other: _Text) -> bool:
        """Return whether this is nearly the same text as another one."""
        if not self.words or not (len(self.words) >= _COPIED_WORDS or self._is_of_page(other)):
            return False
        if self.words == other.words:
            return True
        # A word that only one of them has is in a run that only this one has, with three more.
        most = _RUN_WORDS * (1 - ALIKE) * min(len(self.folded), len(other.folded))
        apart = len(self.kinds) + len(other.kinds) - 2 * len(self.kinds & other.kinds)
        if ALIKE * apart > most:
            return False
        shared = len(self.runs & other.runs)
        return shared > 0 and shared >= ALIKE * len(self.runs | other.runs)

    def _is_of_page(self, other: _Text) -> bool:
        mine, its = (hit.id.rpartition("/")[2].partition(".")[0] for hit in (self.hit, other.hit))
        return mine == its and analysis.terms(self.hit.title) == analysis.terms(other.hit.title)


def with_copies(passages: Sequence[Passage], typed_in: Callable[[Hit], int]) -> list[Passage]:
    """Return passages with their near copies. The first passage has them, or the first of those
    with most of what was typed (``typed_in``).

    Texts are compared by their words alone, so that other markup of a page is no difference. A few
    words that different pages share are no copy: short texts are compared only with those of the
    same page, by its title and the name of its file. O(passages^2) comparisons of
    sets of at most as many runs as a text has words.
    """
    texts = list(map(_Text, passages))
    copies: dict[int, list[NearCopy]] = {}
    for at, text in enumerate(texts):
        above = copies if text.hit.content else ()
        original = next((place for place in above if text.copies(texts[place])), None)
        copies[at] = []
        if original is not None:
            first, second = original, at
            if typed_in(text.hit) > typed_in(texts[original].hit):
                first, second = second, first
            hit = texts[second].hit
            named = [*copies[original], NearCopy(hit.id, hit.title, second)]
            if _can_be_named(named):
                del copies[second]
                copies[first] = named
    return [passage._replace(copies=copies.get(at)) for at, passage in enumerate(passages)]


def _can_be_named(copies: Sequence[NearCopy]) -> bool:
    ids = ", ".join(copy.id for copy in copies)
    return "\n" not in copies[-1].id and count_tokens(ids) <= _MAX_SAME_TOKENS


MAX_INTRO_TOKENS = 100
MAX_PART_CHARACTERS = 40
IN_NO_SENTENCE = "In no single sentence, but in these passages:"
BEST_FOR = "Best for "
NEAREST = "Nearest, without "
OTHER_TITLES = "Other titles:"


def blocks_beside(result: SearchResult, read_set: ReadSet, whole_up_to: int | None) -> list[Block]:
    """Return the passages beside the hits, in the order in which they are shown."""
    blocks: list[Block] = []
    lacks: tuple[str, ...] | None = None
    of_part = whole_up_to and not result.hits and whole_up_to  # only a snippet beside hits
    nearest = passages_of(result.nearest, of_part)
    for near, passage in zip(result.nearest, nearest, strict=True):
        block = block_of(passage, 0, read_set)
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
    """Leave only the titles of what a search for a title alone finds beside the passages that have
    exactly this title, if the first has it."""
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


def branch_counts(result: SearchResult, shown: int) -> str:
    """Return the line with the counts of the parts of a query that find less than the passages
    ``shown``; empty if there are none."""
    nowhere = [part.clause for part in result.branches if part.leaf and not part.count]
    few = [
        part
        for part in result.branches
        if (part.count < shown or part.titles) and not {part.clause, *part.lacks} & {*nowhere}
    ]
    counts = [_count(part) for part in few if not part.is_shown]
    whole = [_count(part) for part in few if part.is_shown]
    if nowhere:
        counts.append(f"{', '.join(nowhere)} {'occurs' if len(nowhere) == 1 else 'occur'} nowhere")
    kinds = {"Alone": counts, "All shown": whole}
    return " ".join(f"{kind}: {'; '.join(texts)}." for kind, texts in kinds.items() if texts)


def _count(part: ClauseCount) -> str:
    clause = shortened(part.clause, MAX_PART_CHARACTERS)
    if part.lacks and clause != part.clause:  # what failed is not cut off
        clause = f"(... AND {' AND '.join(part.lacks)})"
    text = f"{clause} {count_text(part.count)}"
    if not part.titles:
        return text
    also = "" if len(part.titles) == part.count else "also "
    return f"{text}: {also}{', '.join(map(shown_title, part.titles))}"


def _intro(text: str) -> str:
    return f"{cut_to(' '.join(text.split()), MAX_INTRO_TOKENS)}:"

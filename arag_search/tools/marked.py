"""Passages that say how much of them is shown: all of it, some sentences, or none because they were
shown before. Passages beside the hits of a search come under a line that says why they are there:
the nearest ones if nothing matches, and the best ones of branches without a hit on the page.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from arag_search.corpus import NO_OUTLINE, Chunk, PassageOutline, split_at
from arag_search.query import analysis
from arag_search.query.problems import shortened
from arag_search.search.feedback import ClauseCount, count_text
from arag_search.search.hits import SearchHit
from arag_search.search.results import SearchResult
from arag_search.search.shown.writing import header_line, shown_id, shown_title
from arag_search.tokens import count_tokens, count_up_to, cut_to
from arag_search.tools.base import ReadSet
from arag_search.tools.rendering import Block, Kind, LeftOut, PassageSpan

WHOLE_DOCUMENT = "whole document"
WHOLE_PART = "whole part"
SHOWN_BEFORE = "shown before"
PARTLY_SHOWN = "partly shown before"
LEFT_OUT = "left out"
NO_TEXT = "no text"
LOWERED = "lowered"
SAME = "Nearly the same text: "
"""The beginning of the line with the ids of near-duplicates of the passage above it."""

SNIPPET_TOKENS = 48
"""A snippet is extended by the sentences after its matches up to this many o200k tokens."""
UNIT_MARK = "> "
"""The beginning of the line with the name of the unit of the sentence below it."""
SAME_TEXT = "same"
"""Stands in a list for the text of the line above it."""
ENTRY_TOKENS = 200
LINE_TOKENS = 40
NAMED_TOKENS = 256
NAMED_SENTENCES = 9
NAMED_ROOM = 384
"""What is shown of a passage. The first rule that applies decides:

1. A near copy of a passage above it is an id in a line.
2. Sentences that are still visible are left out.
3. A search at sentence granularity shows the sentences that match.
4. A passage is whole if the preset shows whole passages, or if it has at most as many tokens as
   the preset says; if the query names its title, at most NAMED_TOKENS in at most NAMED_SENTENCES,
   as long as all whole passages above it leave so much of NAMED_ROOM.
5. Otherwise it is the snippet: the best sentences for the query, and the next one if they
   say no more than the title; of a passage whose title the query names, the second sentence
   too; of a sentence in a unit of the outline, the name of the unit; of such a name, the text
   below it, up to ENTRY_TOKENS; and the sentence after each of these if it begins with a pronoun,
   or fits SNIPPET_TOKENS, but no name of another unit.

Measured with ``python -m bench replies``."""
ALIKE = 0.85
"""Texts whose word runs have at least this Jaccard similarity are near-duplicates."""
_RUN_WORDS = 4
_CLAUSE_END = re.compile(r"[.!?:;][)\]\"'”]* ")
_COPIED_WORDS = 50
_COMPARED_CHARACTERS = 20_000
_MAX_SAME_TOKENS = 200

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


class NearDuplicate(NamedTuple):
    """A hit whose text is nearly that of another one, and its place among the hits, from 0."""

    id: str
    title: str
    at: int


@dataclass(slots=True)
class MarkedBlock(Block):
    """One passage whose header and gaps say what they leave out.

    ``before`` are the numbers (0-based) of the sentences that were shown earlier, ``about`` is a
    line between header and text, ``intro`` one above the header, ``rank`` says why the passage has
    its rank, ``whole`` what it is if nothing is left out, ``at`` is the place of the passage among
    the hits, ``same`` its near-duplicates, which share a line below it.
    """

    before: frozenset[int] = frozenset()
    about: str = ""
    intro: str = ""
    rank: str = ""
    kind: Kind = "hit"
    at: int = 0
    same: list[NearDuplicate] = field(default_factory=list[NearDuplicate])
    whole: str = WHOLE_DOCUMENT
    outline: PassageOutline = NO_OUTLINE

    @property
    def uncut_body(self) -> str:
        """The sentences to show, as in the passage, with a count at each gap."""
        return "".join(text for _, text in self._pieces())

    @property
    def is_whole(self) -> bool:
        """Whether all of the passage's text is shown here."""
        complete = self.left_out is None and len(self.shown) == len(self.sentences)
        return complete and self.cut is None

    def shown_sentences(self) -> tuple[int, ...]:
        """Return the numbers, from 1, of the sentences of which anything is shown."""
        return tuple(number + 1 for number in self.shown)

    @property
    def mark(self) -> str:
        """What the header says about the text below it; empty if the gaps say it."""
        return ", ".join(part for part in (self._shown_mark(), self.rank) if part)

    def _shown_mark(self) -> str:
        if not self.sentences:
            return "" if self.kind == "title" else NO_TEXT
        if self.left_out == "shown":
            new = len(self.sentences) - len(self.before)
            return f"{SHOWN_BEFORE}, {new} {LEFT_OUT}" if new else SHOWN_BEFORE
        marks = [self.whole] if self.is_whole else []
        if self.before.issuperset(self.shown):
            marks.append(SHOWN_BEFORE)
        elif not self.before.isdisjoint(self.shown):
            marks.append(PARTLY_SHOWN)
        return ", ".join(marks)

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.same_lines()])

    def lines(self) -> list[str]:
        """Return the header and, if there is any, the text."""
        header = f"{self.header} ({self.mark})" if self.mark else self.header
        return [line for line in (self.intro, header, self.about, self.body) if line]

    def same_lines(self) -> list[str]:
        """Return the line of the near-duplicates, if there are any."""
        if not self.same:
            return []
        return [f"{SAME}{', '.join(f'[{shown_id(other.id)}]' for other in self.same)}."]

    @property
    def ids(self) -> list[str]:
        """The ids of the passage and of its near-duplicates."""
        return [self.id, *(other.id for other in self.same)]

    def drop_after(self, dropped: Block) -> None:
        """Drop the near-duplicates that come after a passage that was dropped."""
        if isinstance(dropped, MarkedBlock):
            self.same = [other for other in self.same if other.at < dropped.at]

    def spans(self, start: int) -> Iterator[PassageSpan]:
        """Yield the spans of the passage and its near-duplicates in a reply in which its header
        begins at ``start``."""
        end = start + len("\n".join(self.lines()))
        yield PassageSpan(
            id=self.id,
            title=self.title,
            start=start + len(self.intro) + bool(self.intro),
            text_start=end - len(self.body),
            end=end,
            sentences=self.shown_sentences(),
            whole=self.is_whole,
            left_out=self.left_out,
            kind=self.kind,
        )
        place = end + 1 + len(SAME)
        for other in self.same:
            end = place + len(other.id) + 2
            yield PassageSpan(other.id, other.title, place, end, end, (), False, "same")
            place = end + 2

    def _pieces(self) -> Iterator[tuple[int | None, str]]:
        """Yield the parts of the text: sentences with their numbers, and gaps with None."""
        shown, last = self.shown, len(self.sentences) - 1
        expected = 0
        name = ""
        for at, number in enumerate(shown):
            unit = self.outline.unit_of(number)
            before, name = name, unit.name if unit else ""
            if number > expected:
                is_new = unit is not None and unit.first < number and name != before
                then = f"\n{UNIT_MARK}{name}\n" if is_new else " "
                yield None, f"{' ' if at else ''}{self._gap(range(expected, number))}{then}"
            text = self.sentences[number]
            follows = shown[at + 1] if at + 1 < len(shown) else None
            text = text if at and number == expected else text.lstrip()
            yield number, text if follows == number + 1 else text.rstrip()
            expected = number + 1
        if shown and expected <= last:
            yield None, f" {self._gap(range(expected, last + 1))}"

    def _gap(self, numbers: range) -> str:
        before = len(self.before.intersection(numbers))
        counts = [(len(numbers) - before, LEFT_OUT), (before, SHOWN_BEFORE)]
        return f"({', '.join(f'{count} {why}' for count, why in counts if count)})"


def are_whole(hits: Sequence[SearchHit], whole_up_to: int | None) -> list[bool]:
    """Return for each hit whether it is shown whole: rule 4. ``whole_up_to`` is in o200k tokens,
    None for any number."""
    if not whole_up_to:
        return [whole_up_to is None] * len(hits)
    room = NAMED_ROOM
    wholes: list[bool] = []
    for hit in hits:
        tokens = count_up_to(hit.content, max(NAMED_TOKENS, whole_up_to))
        is_named = hit.is_named and len(hit.sentence_ends) <= NAMED_SENTENCES
        is_whole = tokens is not None and (tokens <= whole_up_to or (is_named and tokens <= room))
        wholes.append(is_whole)
        room -= tokens if tokens is not None and is_whole else 0
    return wholes


def marked_block(hit: SearchHit, at: int, read_set: ReadSet, *, whole: bool) -> MarkedBlock:
    """Return a hit with its sentences to show, without those that are still visible.
    ``whole`` shows all of them.
    """
    sentences = split_at(hit.content, hit.sentence_ends)
    before = _seen_before(hit.id, sentences, read_set)
    header = header_line(hit.id, hit.title, hit.part, hit.parts, hit.outline)
    chosen = _chosen(hit, sentences, whole=whole)
    block = _block(hit.id, hit.title, header, sentences, chosen, before, read_set, at=at)
    block.outline = hit.outline
    block.whole = WHOLE_PART if hit.parts > 1 else WHOLE_DOCUMENT
    return block


def _seen_before(id: str, sentences: Sequence[str], read_set: ReadSet) -> frozenset[int]:
    seen = read_set.seen.get(id)
    if not seen:
        return frozenset()
    return frozenset(n for n, text in enumerate(sentences) if text and checksum(text) in seen)


def _block(
    id: str,
    title: str,
    header: str,
    sentences: Sequence[str],
    chosen: Sequence[int],
    before: frozenset[int],
    read_set: ReadSet,
    *,
    about: str = "",
    at: int = 0,
) -> MarkedBlock:
    shown = [number for number in chosen if not (read_set.is_kept and number in before)]
    left_out: LeftOut | None = "shown" if chosen and not shown else None
    return MarkedBlock(
        id, title, header, sentences, shown, left_out=left_out, before=before, about=about, at=at
    )


def note_seen(block: Block, read_set: ReadSet) -> None:
    """Record the sentences that a block shows in full."""
    texts = [block.sentences[number] for number in block.shown]
    if block.cut is not None:
        texts = [text for text in texts if text.strip() in block.cut]
    read_set.seen.setdefault(block.id, set()).update(map(checksum, texts))


def marked_part(
    chunk: Chunk, header: str, about: str, wanted: range | None, read_set: ReadSet
) -> MarkedBlock:
    """Return the wanted sentences (0-based) of a chunk, or all, without those that are still
    visible."""
    sentences = chunk.sentences()
    before = _seen_before(chunk.id, sentences, read_set)
    chosen = [
        n for n in (range(len(sentences)) if wanted is None else wanted) if n < len(sentences)
    ]
    block = _block(chunk.id, chunk.title, header, sentences, chosen, before, read_set, about=about)
    block.whole = WHOLE_PART if chunk.parts > 1 else WHOLE_DOCUMENT
    return block


def checksum(sentence: str) -> int:
    """Return a checksum that distinguishes the sentences of a passage, without surrounding white
    space."""
    return zlib.crc32(sentence.strip().encode("utf-8", "replace"))


def _chosen(hit: SearchHit, sentences: Sequence[str], *, whole: bool) -> list[int]:
    # Rules 3 to 5.
    has_all = all(sentences)
    if has_all and whole:
        return list(range(len(sentences)))
    chosen = set(hit.sentences)
    if not has_all or not chosen:
        return sorted(chosen)
    if not _has_text(hit.title, [sentences[number] for number in chosen]):
        chosen |= set(range(max(chosen) + 1, min(max(chosen) + 2, len(sentences))))
    if hit.is_named and len(sentences) > 1:
        chosen.add(1)
    openings = {unit.first for unit in hit.outline.units}
    chosen |= _entries(hit.outline, sentences, chosen, openings)
    after = [n + 1 for n in sorted(chosen) if n + 1 < len(sentences) and n + 1 not in chosen]
    unit_of = hit.outline.unit_of
    after = [number for number in after if unit_of(number) == unit_of(number - 1)]
    chosen.update(n for n in after if begins_with_pronoun(sentences[n]))
    room = SNIPPET_TOKENS - sum(count_tokens(sentences[number]) for number in chosen)
    for number in after:
        room -= 0 if number in chosen else count_tokens(sentences[number])
        if room < 0:
            break
        chosen.add(number)
    return sorted(chosen)


def _entries(
    outline: PassageOutline,
    sentences: Sequence[str],
    chosen: Iterable[int],
    openings: Container[int],
) -> set[int]:
    """Return the sentences below the names of units that are chosen, ENTRY_TOKENS at most and not
    into another unit."""
    added: set[int] = set()
    room = ENTRY_TOKENS
    for unit in outline.units:
        word = unit.name.rpartition(" ")[2]
        within = range(unit.first, unit.end)
        named = next((n for n in within if word in sentences[n]), unit.first)  # below comments
        for below in within[named + 1 - unit.first :] if named in chosen else ():
            room -= count_tokens(sentences[below])
            if below in openings or room < 0:
                break
            added.add(below)
    return added


class ListBlock(MarkedBlock):
    """A hit in a list: its sentences as the form of reply writes them, a line for each."""

    __slots__ = ("written",)

    written: Sequence[str]

    @property
    def uncut_body(self) -> str:
        return "\n".join(self.written)


def list_blocks(result: SearchResult) -> list[MarkedBlock]:
    """Return the hits of a list in its order."""
    at = {hit.id: number for number, hit in enumerate(result.hits)}
    blocks: list[MarkedBlock] = []
    for hit, header, intro, shown, lines in result.asked.form.entries(
        result.hits, result.first_match
    ):
        sentences = split_at(hit.content, hit.sentence_ends)
        block = ListBlock(hit.id, hit.title, header, sentences, list(shown), at=at[hit.id])
        block.kind = "lines" if lines else "title"
        block.intro, block.written = intro, lines
        blocks.append(block)
    return blocks


def _has_text(title: str, sentences: Iterable[str]) -> bool:
    """Return whether sentences have words besides those of the title."""
    known = set(analysis.terms(title))
    return any(not known.issuperset(analysis.terms(sentence)) for sentence in sentences)


def begins_with_pronoun(sentence: str) -> bool:
    """Return whether the first word of a sentence refers to something before it."""
    words = sentence.split(maxsplit=1)
    return bool(words) and words[0].strip("\"'“‘«(,").lower() in _PRONOUNS


def join_near_duplicates(blocks: Sequence[MarkedBlock]) -> list[MarkedBlock]:
    """Return the blocks without near-duplicates of earlier ones, which name them instead.

    Texts are compared by their words alone, so that other markup of a page is no difference. A
    sentence or a few words that different pages share is no duplicate: short texts are compared
    only with those of the same page, by its title and the name of its file. O(blocks^2) comparisons
    of sets of at most as many runs as a text has words.
    """
    kept: list[tuple[MarkedBlock, object, str, frozenset[tuple[str, ...]]]] = []
    for block in blocks:
        words = analysis.terms("".join(block.sentences)[:_COMPARED_CHARACTERS])
        text = " ".join(words)
        runs = _runs(text)
        is_long = len(block.sentences) > 1 and len(words) >= _COPIED_WORDS
        page = block.id.rpartition("/")[2].partition(".")[0], analysis.terms(block.title)
        original = next(
            (
                other
                for other, its_page, known, its in kept
                if (is_long or page == its_page) and text and _are_alike(text, runs, known, its)
            ),
            None,
        )
        if original is None or not _fits(original, block):
            kept.append((block, page, text, runs))
        else:
            original.same.append(NearDuplicate(block.id, block.title, block.at))
    return [block for block, _, _, _ in kept]


def _fits(original: MarkedBlock, block: MarkedBlock) -> bool:
    ids = [*(other.id for other in original.same), block.id]
    return "\n" not in block.id and count_tokens(", ".join(ids)) <= _MAX_SAME_TOKENS


def _are_alike(
    text: str, runs: frozenset[tuple[str, ...]], other: str, its: frozenset[tuple[str, ...]]
) -> bool:
    if text == other:
        return True
    shorter, longer = sorted((len(runs), len(its)))
    if not shorter or shorter < ALIKE * longer:
        return False
    return len(runs & its) >= ALIKE * len(runs | its)


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    # A text of fewer words is similar only to itself.
    words = text.casefold().split()
    return frozenset(zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False))


MAX_INTRO_TOKENS = 100
MAX_PART_CHARACTERS = 40
IN_NO_SENTENCE = "In no single sentence, but in these passages:"
BEST_FOR = "Best for "
NEAREST = "Nearest, without "


def blocks_beside(
    result: SearchResult, read_set: ReadSet, whole_up_to: int | None
) -> list[MarkedBlock]:
    """Return the passages beside the hits, in the order in which they are shown."""
    blocks: list[MarkedBlock] = []
    lacks: tuple[str, ...] | None = None
    wholes = are_whole([near.hit for near in result.nearest], whole_up_to)
    for near, whole in zip(result.nearest, wholes, strict=True):
        block = marked_block(near.hit, 0, read_set, whole=whole)
        block.kind = "nearest"
        if near.lacks != lacks:
            missing = " and ".join(near.lacks)
            block.intro = _intro(f"{NEAREST}{missing}") if near.lacks else IN_NO_SENTENCE
        lacks = near.lacks
        blocks.append(block)
    wholes = are_whole([other.hit for other in result.unrepresented], whole_up_to)
    for other, whole in zip(result.unrepresented, wholes, strict=True):
        block = marked_block(other.hit, 0, read_set, whole=whole)
        block.kind = "branch"
        block.intro = _intro(f"{BEST_FOR}{other.branch}")
        blocks.append(block)
    return blocks


def branch_counts(result: SearchResult) -> str:
    """Return the line with the counts of the parts of a query; empty if there are none."""
    nowhere = [part.clause for part in result.branches if part.leaf and not part.count]
    counts = [_count(part) for part in result.branches if part.count or not part.leaf]
    if nowhere:
        counts.append(f"{', '.join(nowhere)} {'occurs' if len(nowhere) == 1 else 'occur'} nowhere")
    return f"Alone: {'; '.join(counts)}." if counts else ""


def _count(part: ClauseCount) -> str:
    text = f"{shortened(part.clause, MAX_PART_CHARACTERS)} {count_text(part.count)}"
    if not part.titles:
        return text
    also = "" if len(part.titles) == part.count else "also "
    return f"{text}: {also}{', '.join(map(shown_title, part.titles))}"


def _intro(text: str) -> str:
    return f"{cut_to(' '.join(text.split()), MAX_INTRO_TOKENS)}:"

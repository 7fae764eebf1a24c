"""A passage in a reply, or a document with some of its passages: lines above, text, and what they
say about what is left out. Blocks record where their passages are, so that no reader has to guess.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from arag_search.corpus import NO_OUTLINE, Chunk, PassageOutline
from arag_search.engines.hits import Hit, join_sentences
from arag_search.tokens import CUT_MARK, count_all
from arag_search.tools.replies.apart import marked, unmarked
from arag_search.tools.replies.copies import NearCopy
from arag_search.tools.replies.spans import Kind, LeftOut, PassageSpan
from arag_search.tools.replies.writing import shown_id, shown_title
from arag_search.tools.tool import ReadSet

WHOLE_DOCUMENT = "whole document"
WHOLE_PART = "whole part"
SHOWN_BEFORE = "shown before"
MATCHES_BEFORE = "what matches was shown before"
PARTLY_SHOWN = "partly shown before"
LEFT_OUT = "left out"
ALL_SHOWN = "all shown now"
NO_TEXT = "no text"
LOWERED = "lowered"
SAME = "Nearly the same text: "
"""The beginning of the line with the ids of near copies of the passage above it."""
UNIT_MARK = "> "
"""The beginning of the line with the name of the unit of the sentence below it."""


class Paragraph(NamedTuple):
    """The text of one passage in a block, after a ``label``. ``sentences`` are the numbers, from 1,
    of the sentences that are shown at least in part. ``whole`` is whether they are all of its text.
    ``lines`` are the lines of the document, as in a PassageSpan."""

    id: str
    text: str
    sentences: tuple[int, ...]
    whole: bool
    label: str = ""
    lines: tuple[int, int] | None = None


@dataclass(slots=True)
class Block:
    """One passage or document in a reply: a header line, and sentences. ``write`` writes the
    sentences ``shown`` as the paragraphs of passages.

    - ``title``: the full title. The header shows its beginning.
    - ``retrieved_title``: the part of the title that counts as retrieved.
    - ``left_out``: why a passage with text is shown as a header only.
    - ``whole``: the header's word for a block without gaps. None: it has no word.
    - ``before``: the numbers (from 0) of the sentences that were shown earlier.
    - ``about``: a line between header and text. ``intro``: a line above the header.
    - ``rank``: why the passage has its rank. ``at``: its place among the hits.
    - ``same``: its near copies, which share a line below it.
    - ``by_sentence``: whether only its matching sentences are shown.
    - ``reference``: the name of a document.
    - ``cut``: the text to show instead if the only remaining sentence is too long.
    - ``partial``: the numbers of the sentences of which only a part is written.
    """

    id: str
    title: str
    header: str
    sentences: Sequence[str]
    shown: list[int]
    write: Callable[[Block], list[Paragraph]]
    retrieved_title: str = ""
    left_out: LeftOut | None = None
    whole: str | None = None
    before: frozenset[int] = frozenset()
    about: str = ""
    intro: str = ""
    rank: str = ""
    kind: Kind = "hit"
    at: int = 0
    same: list[NearCopy] = field(default_factory=list[NearCopy])
    outline: PassageOutline = NO_OUTLINE
    by_sentence: bool = False
    reference: str | None = None
    cut: str | None = None
    partial: frozenset[int] = frozenset()
    _written: tuple[int, list[Paragraph], str] = (-1, [], "")

    def paragraphs(self) -> list[Paragraph]:
        """Return the paragraphs of the sentences to show, before any cut."""
        if self._written[0] != len(self.shown):  # sentences are only ever taken off the end
            written = self.write(self)
            if self.kind != "lines":  # whose lines begin with numbers
                written = [p if p.label else p._replace(text=marked(p.text)) for p in written]
            text = "\n".join([label + text for _, text, _, _, label, _ in written])
            self._written = len(self.shown), written, text
        return self._written[1]

    @property
    def body(self) -> str:
        """The text under the header."""
        if self.cut is not None:
            return self.cut
        self.paragraphs()
        return self._written[2]

    @property
    def ids(self) -> list[str]:
        """The ids of the hits that the block stands for."""
        return [self.id, *(other.id for other in self.same)]

    @property
    def is_whole(self) -> bool:
        """Whether all of the passage's text is shown here."""
        complete = self.left_out is None and len(self.shown) == len(self.sentences)
        return complete and self.cut is None and not self.partial

    @property
    def complete(self) -> set[int]:
        """The numbers of the sentences of which nothing is missing here."""
        if self.cut is None:
            return {*self.shown} - self.partial
        text, end, numbers = unmarked(self.cut), 0, set[int]()
        for number in self.shown:  # in their order, so that none is taken for a part of another
            sentence = self.sentences[number].strip()
            if (at := text.find(sentence, end)) < 0:
                break
            end = at + len(sentence)
            numbers.add(number)
        return numbers - self.partial

    def above(self) -> str:
        """Return the lines above the text."""
        mark = ", ".join([part for part in (self._mark(), self.rank) if part])
        header = f"{self.header} ({mark})" if mark else self.header
        return "\n".join([line for line in (self.intro, header, self.about) if line])

    def below(self) -> str:
        """Return the line of the near copies; empty if there are none."""
        if not self.same:
            return ""
        return f"{SAME}{', '.join(f'[{shown_id(other.id)}]' for other in self.same)}."

    def __str__(self) -> str:
        return "\n".join([text for text in (self.above(), self.body, self.below()) if text])

    def place(self, start: int, length: int) -> tuple[int, int]:
        """Return where the text begins and ends in a reply, as ``spans`` does."""
        stop = start + length - len(self.below()) - bool(self.same)
        return stop - len(self.body), stop

    def spans(self, start: int, length: int) -> Iterator[PassageSpan]:
        """Yield the spans of the passages, and of near copies, in a reply in which the block has
        its ``length`` from ``start`` on."""
        begin = start + len(self.intro) + bool(self.intro)
        place, stop = self.place(start, length)
        text_stop = stop
        if self.cut is not None and self.reference is not None:
            text_stop = place + len(self.cut.removesuffix(CUT_MARK).rstrip())
        for id, text, sentences, whole, label, lines in self.paragraphs():
            end = min(place + len(label) + len(text), stop)
            if self.cut is not None and (end == stop or self.reference is None):
                end = text_stop
            yield PassageSpan(
                id=id,
                title=self.title,
                start=min(begin, end),
                text_start=min(place + len(label), end),
                end=end,
                sentences=sentences,
                whole=whole and self.cut is None,
                left_out=self.left_out,
                kind=self.kind,
                reference=self.reference,
                lines=lines,
            )
            place = begin = place + len(label) + len(text) + 1
            if place > stop:
                break
        place = stop + 1 + len(SAME)
        for other in self.same:
            end = place + len(other.id) + 2
            yield PassageSpan(other.id, other.title, place, end, end, (), False, "same")
            place = end + 2

    def _mark(self) -> str:
        """Return what the header says about the text below it; empty if the gaps say it."""
        if self.whole is None:
            return ""
        if not self.sentences:
            return "" if self.kind == "title" else NO_TEXT
        if self.left_out == "shown":
            new = len(self.sentences) - len(self.before)
            if new and self.by_sentence:
                return MATCHES_BEFORE
            return f"{SHOWN_BEFORE}, {new} {LEFT_OUT}" if new else SHOWN_BEFORE
        marks = [self.whole] if self.is_whole else []
        if self.before.issuperset(self.shown):
            marks.append(SHOWN_BEFORE)
        elif not self.before.isdisjoint(self.shown):
            marks.append(PARTLY_SHOWN)
        elif self.before and len(self.before | self.complete) == len(self.sentences):
            marks.append(ALL_SHOWN)
        return ", ".join(marks)


def passage_block(
    passage: Hit | Chunk, header: str, sentences: Sequence[str], **fields: Any
) -> Block:
    """Return the block of a passage whose header and gaps say what they leave out. None of its
    sentences is chosen yet."""
    whole = WHOLE_PART if passage.parts > 1 else WHOLE_DOCUMENT
    title = shown_title(passage.title)
    start = (passage.id, passage.title, header, sentences)
    return Block(*start, [], with_gaps, retrieved_title=title, whole=whole, **fields)


def one_paragraph(block: Block, text: str) -> list[Paragraph]:
    """Return a text as the only paragraph of a block, with the sentences that it shows."""
    sentences = tuple([number + 1 for number in block.shown])
    complete = len(block.shown) == len(block.sentences) and not block.partial
    return [Paragraph(block.id, text, sentences, block.left_out is None and complete)]


def joined(block: Block) -> list[Paragraph]:
    """Write sentences with ``...`` for others that are left out."""
    return one_paragraph(block, join_sentences(block.sentences, block.shown))


def with_gaps(block: Block) -> list[Paragraph]:
    """Write sentences as in the passage, with a count at each gap, and the name of the unit that
    the sentence after it is in."""
    shown, sentences = block.shown, block.sentences
    pieces: list[str] = []
    expected = 0
    name = ""
    for at, number in enumerate(shown):
        unit = block.outline.unit_of(number) if block.outline.units else None
        before, name = name, unit.name if unit else ""
        text = sentences[number]
        if number > expected:
            is_new = unit is not None and unit.first < number and name != before
            then = f"\n{UNIT_MARK}{name}\n" if is_new else " "
            pieces += [" " if at else "", _gap(block, expected, number), then]
        if not at or number > expected:
            text = text.lstrip()
        expected = number + 1
        is_last = at + 1 == len(shown) or shown[at + 1] != expected
        pieces.append(text.rstrip() if is_last else text)
    if shown and expected < len(sentences):
        pieces += [" ", _gap(block, expected, len(sentences))]
    return one_paragraph(block, "".join(pieces))


def _gap(block: Block, start: int, end: int) -> str:
    before = len(block.before.intersection(range(start, end))) if block.before else 0
    counts = ((end - start - before, LEFT_OUT), (before, SHOWN_BEFORE))
    return f"({', '.join([f'{count} {why}' for count, why in counts if count])})"


def without_visible(
    block: Block, chosen: Sequence[int], read_set: ReadSet, *, again: bool = False
) -> Block:
    """Give a block the chosen sentences, and return it. Sentences that are still visible are left
    out, unless they are wanted ``again``."""
    if seen := read_set.seen.get(block.id):
        block.before = frozenset(
            n for n, text in enumerate(block.sentences) if text and checksum(text) in seen
        )
    hidden = block.before if read_set.is_kept and not again else ()
    block.shown = [number for number in chosen if number not in hidden]
    block.left_out = "shown" if chosen and not block.shown else None
    return block


def note_seen(block: Block, read_set: ReadSet) -> None:
    """Record the sentences that a block shows in full."""
    read_set.note(block.id, [checksum(block.sentences[number]) for number in block.complete])


def checksum(sentence: str) -> int:
    """Return a checksum that distinguishes the sentences of a passage, without surrounding white
    space."""
    return zlib.crc32(sentence.strip().encode("utf-8", "replace"))


def retrieved_tokens(blocks: Sequence[Block]) -> int:
    """Return the tokens of titles and text in the blocks."""
    return count_all(text for block in blocks for text in (block.retrieved_title, block.body))

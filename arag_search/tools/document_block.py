"""A document in the reply of a search: its reference, its metadata, and pieces of its text with
their line numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from arag_search.corpus import split_at
from arag_search.search.lines import DocumentLines
from arag_search.search.results import SearchHit
from arag_search.search.snippets import MAX_SENTENCES, sentences_with
from arag_search.tokens import CUT_MARK, count_up_to
from arag_search.tools.base import ReadSet
from arag_search.tools.document_tool import reference_line
from arag_search.tools.marked import SHOWN_BEFORE, checksum
from arag_search.tools.references import Reference
from arag_search.tools.rendering import Block
from arag_search.tools.spans import PassageSpan

_LONG_TOKENS = 100
"""A longer sentence, such as a table, is shown by its lines with most words of the query."""
_GAP = "... "


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, or a line of a long one: its number in the passage (from 0), its offsets in the
    document, its text, and whether it was shown before."""

    number: int
    start: int
    end: int
    text: str
    is_whole: bool
    is_seen: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A passage of a document in a reply: the units to show, in order, out of ``sentences``.
    ``lines`` is None if the document has changed since the search."""

    id: str
    units: Sequence[_Unit]
    sentences: int
    lines: DocumentLines | None
    start: int
    number: str

    def label(self, units: Sequence[_Unit]) -> str:
        """Return which lines the units are in."""
        if self.lines is None:
            return f"{self.number}: "
        first, last = self.lines_of(units)
        return f"line {first}: " if first == last else f"lines {first}-{last}: "

    def lines_of(self, units: Sequence[_Unit]) -> tuple[int, int]:
        """Return the first and the last line of units."""
        assert self.lines is not None
        return self.lines.line_at(units[0].start), self.lines.line_at(max(units[-1].end - 1, 0))


def part_of(
    lines: DocumentLines, hit: SearchHit, query: str, *, short: bool, seen: Collection[int]
) -> Part:
    """Return the part of a hit to show: its snippet or, if ``short``, one sentence of it. ``seen``
    are the checksums of sentences that were shown before."""
    sentences = split_at(hit.content, hit.sentence_ends)
    chosen = list(hit.sentences)
    most = 1 if short else MAX_SENTENCES
    if len(chosen) > most:
        best = sentences_with(query, hit.content, hit.sentence_ends)
        chosen = [number for number in best if number in chosen][:most] or chosen[:most]
    start = lines.start_of(hit.id)
    is_known = start is not None and lines.text.startswith(hit.content, start)
    origin = start if start is not None and is_known else 0
    units: list[_Unit] = []
    for number in chosen:
        begin = origin + (hit.sentence_ends[number - 1] if number else 0)
        units += _units(lines if is_known else None, query, number, sentences[number], begin, seen)
    return Part(
        hit.id,
        units,
        len(sentences),
        lines if is_known else None,
        origin,
        f"part {hit.part} of {hit.parts}",
    )


def _units(
    lines: DocumentLines | None,
    query: str,
    number: int,
    sentence: str,
    begin: int,
    seen: Collection[int],
) -> list[_Unit]:
    """Return a sentence as a unit, or the best lines of a long one."""
    is_seen = checksum(sentence) in seen
    start = begin + len(sentence) - len(sentence.lstrip())
    end = start + len(sentence.strip())
    if lines is None or end <= start or count_up_to(sentence, _LONG_TOKENS) is not None:
        return [_Unit(number, start, end, sentence.strip(), True, is_seen)]
    first, last = lines.lines_between(start, end)
    places = [
        (max(lines.starts[at], start), min(lines.ends[at], end)) for at in range(first, last + 1)
    ]
    texts = [lines.text[line_start:line_end] for line_start, line_end in places]
    ends: list[int] = []
    for text in texts:
        ends.append((ends[-1] if ends else 0) + len(text) + 1)
    best = sentences_with(query, "\n".join([*texts, ""]), tuple(ends))
    return [_Unit(number, *places[at], texts[at].strip(), len(texts) == 1, is_seen) for at in best]


@dataclass(slots=True)
class DocumentBlock(Block):
    """A document in a reply: its header has two lines, and each passage of it one paragraph.

    With ``hides``, text that was shown before is left out.
    """

    reference: Reference = field(kw_only=True)
    parts: Sequence[Part] = ()
    units: Sequence[tuple[int, _Unit]] = ()

    @staticmethod
    def of(
        reference: Reference, about: str, parts: Sequence[Part], *, hides: bool
    ) -> DocumentBlock:
        """Return a document with all units of its parts that are to be shown."""
        units = [(at, unit) for at, part in enumerate(parts) for unit in part.units]
        shown = [at for at, (_, unit) in enumerate(units) if not (hides and unit.is_seen)]
        title = reference_line(reference)
        if any(unit.is_seen for _, unit in units):
            title += f" ({SHOWN_BEFORE})" if not shown else ""
        return DocumentBlock(
            reference.id,
            reference.title,
            f"{title}\n{about}",
            [unit.text for _, unit in units],
            shown,
            left_out="shown" if units and not shown else None,
            reference=reference,
            parts=parts,
            units=units,
        )

    @property
    def uncut_body(self) -> str:
        """The paragraphs of the passages, each with its lines."""
        return "\n".join(label + text for _, label, text in self._paragraphs())

    def shown_passages(self) -> list[str]:
        """Return the ids of the passages of which anything is shown, or was before."""
        if self.left_out == "shown":
            return [part.id for part in self.parts]
        return [self.parts[at].id for at, _, _ in self._paragraphs()]

    def note_seen(self, read_set: ReadSet) -> None:
        """Record the sentences that are shown whole."""
        if self.cut is None:
            for number in self.shown:
                at, unit = self.units[number]
                if unit.is_whole:
                    read_set.seen.setdefault(self.parts[at].id, set()).add(checksum(unit.text))

    def spans(self, start: int) -> Iterator[PassageSpan]:
        """Yield the spans of the passages in a reply in which the header begins at ``start``."""
        place = start + len(self.header) + 1
        end_of_all = start + len(str(self))
        begin = start
        for at, label, text in self._paragraphs():
            part = self.parts[at]
            units = self._shown_of(at)
            end = min(place + len(label) + len(text), end_of_all)
            if self.cut is not None and end == end_of_all:
                end = start + len(str(self).removesuffix(CUT_MARK).rstrip())
            numbers = tuple(dict.fromkeys(unit.number + 1 for unit in units))
            yield PassageSpan(
                id=part.id,
                title=self.title,
                start=min(begin, end),
                text_start=min(place + len(label), end),
                end=end,
                sentences=numbers,
                whole=self.cut is None
                and len(numbers) == part.sentences
                and all(unit.is_whole for unit in units),
                reference=self.reference.id,
                lines=part.lines_of(units) if part.lines is not None else None,
            )
            place += len(label) + len(text) + 1
            begin = place
            if place > end_of_all:
                return

    def _shown_of(self, part: int) -> list[_Unit]:
        shown = (self.units[number] for number in self.shown)
        return [unit for at, unit in shown if at == part]

    def _paragraphs(self) -> Iterator[tuple[int, str, str]]:
        """Yield the place of each passage of which anything is shown, its label and its text."""
        for at, part in enumerate(self.parts):
            units = self._shown_of(at)
            if units:
                yield at, part.label(units), _text(part, units)


def _text(part: Part, units: Sequence[_Unit]) -> str:
    """Return the text of units on one line, with ``...`` for gaps before and between them."""
    text, expected = "", part.start
    for unit in units:
        if unit.start > expected + 2:  # more than blanks between
            text += f" {_GAP}" if text else _GAP
        elif text:
            text += " "
        text += " ".join(unit.text.split())
        expected = unit.end
    return text

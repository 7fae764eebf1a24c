"""The numbered lines of documents: what ``open`` shows, and where ``find`` looks.

Lines are computed from the passages of a document and from ``fold_characters`` of the manifest. So
they are the same in every call, run and engine. Long ones are folded into pieces. Within the
program, pieces are counted from 0. Tools show an editor's lines, from 1, and columns of pieces that
do not begin a line. AgenticRAG, section 3.3, counts from 0.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from arag_search.corpus import Chunk, MetadataValue, nfc, typed_id
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.regexes import MAX_QUERY_S, places, stopwatch
from arag_search.query.typography import APOSTROPHES
from arag_search.search.reading.documents import IndexDocument, documents_with_ids
from arag_search.search.state import IndexState

MAX_KEPT_DOCUMENTS = 64
"""The most documents whose lines are kept for an open index."""
MAX_KEPT_CHARACTERS = 20_000_000
"""The most characters of all documents whose lines are kept."""

_LINE = re.compile(r"^.*", re.MULTILINE)
_PAGE = re.compile(r"\[page (\d{1,9})\]")
_Key = tuple[ResolvedPlan | None, str]
_APOSTROPHES = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))


@dataclass(frozen=True)
class DocumentLines:
    """A document as lines, or pieces of long ones.

    ``starts``, ``ends``: the offsets in ``text`` of each piece. The line feed between two pieces,
    or the blank at which a long line was folded, is in neither.
    ``passages``: the ids of the passages.
    ``paths``: where the passages stand in the outline of the document.
    ``passage_starts``: their offsets, and then the length of the text.
    ``sentence_ends``: offsets in each passage.
    ``mark``: tells versions of the document apart.
    """

    doc_id: str
    title: str
    metadata: Mapping[str, MetadataValue]
    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    passages: Sequence[str]
    paths: Sequence[str]
    passage_starts: Sequence[int]
    sentence_ends: Sequence[tuple[int, ...]]
    mark: tuple[int, str]

    @staticmethod
    def of(document: IndexDocument, fold_characters: int) -> DocumentLines:
        """Return the lines of a document. A line of more than ``fold_characters`` is folded at the
        last blank before the limit, or at the limit without one. O(its length)."""
        text = document.text
        starts, ends = _line_places(text, fold_characters)
        chunks = document.chunks
        return DocumentLines(
            document.id,
            document.title,
            document.metadata,
            text,
            starts,
            ends,
            [chunk.id for chunk in chunks],
            [chunk.outline.path for chunk in chunks],
            list(accumulate((len(chunk.content) for chunk in chunks), initial=0)),
            [chunk.sentence_ends for chunk in chunks],
            _mark(chunks[0]),
        )

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def count(self) -> int:
        """The number of lines, as an editor counts them."""
        return self._numbers[-1][0] if self._numbers else 0

    def place(self, piece: int) -> tuple[int, int]:
        """Return the line and the column, from 1, at which a piece begins in an editor."""
        return self._numbers[piece]

    def name(self, first: int, last: int | None = None) -> str:
        """Return the place of a piece in an editor, or of several: ``71``, or ``71:201-73``."""
        places = (
            self._numbers[at] for at in dict.fromkeys((first, first if last is None else last))
        )
        return "-".join(f"{line}:{column}" if column > 1 else f"{line}" for line, column in places)

    def piece_at(self, line: int, column: int = 1) -> int:
        """Return the piece that holds a place of an editor, or the last one before it; -1 in a
        document without lines. O(log pieces)."""
        return bisect_right(self._numbers, (line, column)) - 1

    def line(self, number: int) -> str:
        """Return the text of a piece, without its end."""
        return self.text[self.starts[number] : self.ends[number]]

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds an offset. O(log lines)."""
        return max(bisect_right(self.starts, offset) - 1, 0)

    def lines_between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the last line of a part of the text."""
        return self.line_at(start), self.line_at(max(end - 1, start))

    def start_of(self, passage: str) -> int | None:
        """Return the offset of a passage; None if the document has none with this id."""
        at = self._positions.get(passage)
        return None if at is None else self.passage_starts[at]

    def lines_of_sentences(self, passage: str, numbers: Sequence[int]) -> tuple[int, int] | None:
        """Return the first and the last line of sentences of a passage, by their numbers (0-based,
        ascending). Without numbers, it is the whole passage. The result is None if this version of
        the document does not have them."""
        if passage not in self._positions:
            return None
        at = self._positions[passage]
        start, ends = self.passage_starts[at], self.sentence_ends[at]
        first, last = (numbers[0], numbers[-1]) if numbers else (0, len(ends) - 1)
        if last >= len(ends):
            return None
        begin, end = start + (ends[first - 1] if first else 0), start + (ends[last] if ends else 0)
        shown = self.text[begin:end]
        begin += len(shown) - len(shown.lstrip())
        return self.lines_between(begin, begin + len(shown.strip()))

    def page_at(self, number: int) -> int | None:
        """Return the page of a PDF that an editor's line is on, by the line ``[page 61]`` at or
        before it; None if there is none. O(lines before it)."""
        for at in range(self.piece_at(number), -1, -1):
            if page := _PAGE.fullmatch(self.line(at)):
                return int(page[1])
        return None

    def path(self, number: int) -> str:
        """Return the path of the passage in which a piece begins. O(log passages)."""
        return self.paths[self.passages_of(number, number)[0]]

    def passages_of(self, first: int, last: int) -> range:
        """Return the places in ``passages`` of the passages that lines cover. O(log passages)."""
        start, end = self.starts[first], max(self.ends[last], self.starts[first] + 1)
        begin = bisect_right(self.passage_starts, start) - 1
        return range(begin, max(bisect_left(self.passage_starts, end), begin + 1))

    def sentences_within(self, at: int, start: int, end: int) -> tuple[int, ...]:
        """Return the numbers, from 1, of the sentences of a passage of which a part of the text
        shows anything."""
        begin = self.passage_starts[at]
        ends = self.sentence_ends[at]
        first = bisect_right(ends, start - begin)
        last = bisect_left(ends, end - begin)
        return tuple(range(first + 1, min(last + 1, len(ends)) + 1))

    def occurrences(self, pattern: str) -> list[tuple[int, int]]:
        """Return the places of a pattern in the text, which do not overlap.

        Case is ignored (full case folding), runs of white space match each other and so do both
        apostrophes; nothing else is special. Both texts are in NFC. O(length of the text).
        """
        words = nfc(pattern).translate(_APOSTROPHES).casefold().split()
        if not words:
            return []
        folded, ends = self._folded
        wanted = re.compile(r"\s+".join(map(re.escape, words)))
        places = (match.span() for match in wanted.finditer(folded))
        if ends is None:
            return list(places)
        return [(bisect_right(ends, start), bisect_left(ends, end) + 1) for start, end in places]

    def matches(self, pattern: str, ignore_case: bool) -> list[tuple[int, int]]:
        """Return the places that a pattern matches in the text. Raises SlowPatternError if that
        takes longer than MAX_QUERY_S."""
        return places(pattern, ignore_case, self.text, stopwatch(), MAX_QUERY_S)

    @cached_property
    def _numbers(self) -> list[tuple[int, int]]:
        """The line and the column, from 1, of each piece."""
        numbers: list[tuple[int, int]] = []
        begin = 0
        for start in self.starts:
            is_new = start == 0 or self.text[start - 1] == "\n"
            begin = start if is_new else begin
            numbers.append(((numbers[-1][0] if numbers else 0) + is_new, start - begin + 1))
        return numbers

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {id: at for at, id in enumerate(self.passages)}

    @cached_property
    def _folded(self) -> tuple[str, list[int] | None]:
        """The text without case, and the offset in it of the end of each character; None where
        every character is folded to one."""
        plain = self.text.translate(_APOSTROPHES)
        folded = plain.casefold()
        if len(folded) == len(plain):  # folding never shortens
            return folded, None
        return folded, list(accumulate(len(character.casefold()) for character in plain))


def document_lines(state: IndexState, doc_ids: Sequence[str]) -> list[DocumentLines | None]:
    """Return the numbered lines of each document, or None if the scope does not hold it.

    The lines of the last documents are cached. Cached lines are checked against the current first
    passage of the document, all in one request; other documents are read in another request.
    """
    cache = (state.whole or state).once(_LinesCache)
    scope, ids = state.scope, list(dict.fromkeys(map(typed_id, doc_ids)))
    kept = {id: lines for id in ids if (lines := cache.get((scope, id))) is not None}
    firsts = state.engine.read([lines.passages[0] for lines in kept.values()], scope)
    for (id, lines), first in zip(list(kept.items()), firsts, strict=True):
        # A document that is written again gets other ordinals.
        if first is None or lines.mark != _mark(first):
            del kept[id]
    missing = [id for id in ids if id not in kept]
    for document in documents_with_ids(state, missing, scope):
        lines = DocumentLines.of(document, state.manifest.fold_characters)
        kept[document.id] = lines
        cache.put((scope, document.id), lines)
    return [kept.get(typed_id(id)) for id in doc_ids]


class _LinesCache:
    """The lines of the documents that were used last. Threads may share it. An index and its parts
    share it, too: each finds only lines from its own scope."""

    def __init__(self, _: IndexState) -> None:
        self._kept: OrderedDict[_Key, DocumentLines] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> DocumentLines | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: _Key, lines: DocumentLines) -> None:
        """Keep the lines of a document, and drop the documents that were used longest ago."""
        with self._lock:
            replaced = self._kept.pop(key, None)
            self._kept[key] = lines
            self._characters += len(lines.text) - (len(replaced.text) if replaced else 0)
            while len(self._kept) > 1 and (
                len(self._kept) > MAX_KEPT_DOCUMENTS or self._characters > MAX_KEPT_CHARACTERS
            ):
                self._characters -= len(self._kept.popitem(last=False)[1].text)


def _mark(first: Chunk) -> tuple[int, str]:
    return first.ordinal, first.content


def _line_places(text: str, fold_characters: int) -> tuple[list[int], list[int]]:
    """Return the starts and the ends of lines. A line feed at the end of the text begins none."""
    starts: list[int] = []
    ends: list[int] = []
    lines = (line.span() for line in _LINE.finditer(text) if line.start() < len(text))
    for start, end in lines:
        while end - start > fold_characters:
            cut = text.rfind(" ", start + 1, start + fold_characters + 1)
            starts.append(start)
            ends.append(cut if cut > 0 else start + fold_characters)
            start = ends[-1] + (cut > 0)
        if start < end or start == 0 or text[start - 1] == "\n":  # not the rest of a folded line
            starts.append(start)
            ends.append(end)
    return starts, ends

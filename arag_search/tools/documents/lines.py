"""The base of the document tools: from a reference to the lines of its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from arag_search.errors import NotServedError, VectorsNotFoundError, VectorsNotNamedError
from arag_search.search.index import Index
from arag_search.search.reading.lines import DocumentLines
from arag_search.tokens import CUT_MARK, count_tokens, cut_to
from arag_search.tools.conversation import Reference, References, ShownReference
from arag_search.tools.replies.spans import PassageSpan
from arag_search.tools.replies.writing import one_line, shown_heading, shown_title
from arag_search.tools.tool import Mistake, ReadSet, Status, Tool, ToolResult
from arag_search.vectors.base import VectorUnit

REFERENCE_ID = "The document: an id as searches show it in brackets, such as turn0search3."
_SHOWN_CHARACTERS = 60


class DocumentTool(Tool):
    """A tool for one document at a time. A reference is a name, not a permission: the document is
    looked up in the scope of the index at every call."""

    def document(self, id: str, references: References) -> tuple[Reference, DocumentLines]:
        """Return the reference with this id and the lines of its document. Raises Mistake."""
        reference = named_reference(id, references)
        lines = self.index.document_lines([reference.doc_id])[0]
        if lines is None:
            raise Mistake(
                f"The document of [{reference.id}] is no longer there. Search again, or go on "
                "without it."
            )
        return reference, lines

    def is_guarded(self, read_set: ReadSet) -> bool:
        """Return whether lines that are visible in an opened window are named, not shown."""
        return self.preset.loop_guards and read_set.is_kept


def vector_units(index: Index) -> frozenset[VectorUnit]:
    """Return the units of the vectors of an index; empty if it has none. Raises the errors of
    opening existing vectors."""
    try:
        return frozenset(index.open_vectors().vectors.units)
    except (NotServedError, VectorsNotFoundError, VectorsNotNamedError):
        return frozenset()


def named_reference(id: str, references: References) -> Reference:
    """Return the reference with this id. Raises Mistake if there is none."""
    if (named := references.get(id)) is not None:
        return named
    known = [reference.id for reference in references]
    shown = one_line(id)[:_SHOWN_CHARACTERS]
    if not known:
        raise Mistake(
            f"There is no reference {shown}: no search has shown a document. Search first."
        )
    span = known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"
    raise Mistake(f"There is no reference {shown}. Known: {span}; ids stand in brackets.")


def reference_line(reference: Reference, path: str = "") -> str:
    """``[turn0search3] 3M annual report > Risks``: the first line of a document in a reply.
    ``path`` is the path of the first passage shown."""
    return f"[{reference.id}] {shown_heading(shown_title(reference.title), path)}".rstrip()


class ShownLines(NamedTuple):
    """Consecutive lines of a document in a reply, each with its number before it. ``start`` is the
    offset of the first number, and ``stop`` the offset of the end. If the ``last`` line is cut,
    ``stop`` is before its end."""

    start: int
    first: int
    last: int
    stop: int

    @staticmethod
    def of(lines: DocumentLines, texts: Sequence[str], start: int, first: int) -> ShownLines:
        """Return the place of lines that stand in a reply as ``cut_lines`` leaves them."""
        last = first + len(texts) - 1
        is_cut = texts[-1] != numbered(lines, last, last)[0]
        stop = start + len("\n".join(texts)) - (len(CUT_MARK) if is_cut else 0)
        return ShownLines(start, first, last, stop)


def line_spans(
    lines: DocumentLines, reference: Reference, shown: Sequence[ShownLines]
) -> list[PassageSpan]:
    """Return the spans of the passages in lines of a reply."""
    spans: list[PassageSpan] = []
    for start, first, last, stop in shown:
        places = _Places(lines, start, first, last)
        end_of_run = lines.ends[last]
        for at in lines.passages_of(first, last):
            begin = max(lines.passage_starts[at], lines.starts[first])
            end = min(lines.passage_starts[at + 1], end_of_run)
            if end < begin:
                continue
            first_line, last_line = lines.lines_between(begin, end)
            text_start = start if begin == lines.starts[first] else places(begin)
            text_start, text_end = min(text_start, stop), min(places(end), stop)
            spans.append(
                PassageSpan(
                    id=lines.passages[at],
                    title=reference.title,
                    start=text_start,
                    text_start=text_start,
                    end=max(text_end, text_start),
                    sentences=lines.sentences_within(at, begin, end),
                    whole=(begin, end) == (lines.passage_starts[at], lines.passage_starts[at + 1])
                    and places(end) <= stop,
                    kind="lines",
                    reference=reference.id,
                    lines=(
                        lines.place(max(first_line, first))[0],
                        lines.place(min(last_line, last))[0],
                    ),
                )
            )
    return spans


def lines_result(
    text: str,
    status: Status,
    reference: Reference,
    spans: Sequence[PassageSpan],
    retrieved_tokens: int,
) -> ToolResult:
    """Return the result that shows lines of a document."""
    ids = tuple(dict.fromkeys(span.id for span in spans))
    return ToolResult(
        text=text,
        status=status,
        ids=ids,
        retrieved_tokens=retrieved_tokens,
        passages=tuple(spans),
        references=(ShownReference(reference.id, reference.doc_id, ids),),
    )


class _Places:
    def __init__(self, lines: DocumentLines, start: int, first: int, last: int) -> None:
        self._lines = lines
        self._first = first
        self._starts: list[int] = []
        for number in range(first, last + 1):
            start += len(f"{lines.name(number)}: ")
            self._starts.append(start)
            start += lines.ends[number] - lines.starts[number] + 1

    def __call__(self, offset: int) -> int:
        """Return the place in the reply of the character at an offset of the document. For the
        blank or line feed after a line, return the end of the line."""
        number = self._lines.line_at(offset)
        number = min(max(number, self._first), self._first + len(self._starts) - 1)
        within = min(offset, self._lines.ends[number]) - self._lines.starts[number]
        return self._starts[number - self._first] + max(within, 0)


def numbered(lines: DocumentLines, first: int, last: int) -> list[str]:
    """Return lines with their numbers."""
    return [f"{lines.name(number)}: {lines.line(number)}" for number in range(first, last + 1)]


def cut_lines(texts: Sequence[str], max_tokens: int) -> list[str]:
    """Return as many lines as fit, at least one, which is cut if it alone is too long."""
    used = 0
    for at, text in enumerate(texts):
        used += count_tokens(text) + 1
        if used > max_tokens:
            return list(texts[:at]) or [cut_to(text, max_tokens)]
    return list(texts)

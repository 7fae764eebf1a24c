"""open: the tool of AgenticRAG that shows a window of a document's lines (section 3.3)."""

from __future__ import annotations

import time
from dataclasses import replace

from pydantic import Field

from arag_search.search.index import Index
from arag_search.search.lines import DocumentLines
from arag_search.tokens import count_tokens
from arag_search.tools.base import (
    FULL_TEXT_RESULT_TOKENS,
    Arguments,
    ReadSet,
    ToolResult,
    ToolSettings,
    Window,
    error_result,
)
from arag_search.tools.document_settings import DocumentSettings
from arag_search.tools.document_tool import (
    REFERENCE_ID,
    DocumentTool,
    ShownLines,
    cut_lines,
    line_spans,
    numbered,
    reference_line,
)
from arag_search.tools.index_description import described
from arag_search.tools.references import Reference, ShownReference


class OpenArguments(Arguments):
    """The arguments of open."""

    reference_id: str = Field(min_length=1, description=REFERENCE_ID)
    line_number: int = Field(0, ge=0, description="The first line to show.")


class OpenLines(DocumentTool):
    """A tool that shows a window of lines, with their numbers.

    ``guarded`` answers a window that is still visible as a whole with the step that shows it.
    """

    name = "open"
    arguments = OpenArguments

    def __init__(
        self,
        index: Index,
        settings: DocumentSettings,
        *,
        max_result_tokens: int = FULL_TEXT_RESULT_TOKENS,
        guarded: bool = False,
    ) -> None:
        super().__init__(
            index,
            settings,
            description=described(self.name, index).replace(
                "<open_lines>", f"{settings.open_lines:,}"
            ),
            max_result_tokens=max_result_tokens,
        )
        self.guarded = guarded

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> OpenLines:
        return cls(
            index,
            settings.documents or DocumentSettings(),
            max_result_tokens=settings.max_result_tokens,
            guarded=settings.loop_guards and settings.reproduces is None,
        )

    def _call(self, arguments: OpenArguments, read_set: ReadSet) -> ToolResult:
        started = time.perf_counter()
        named = self.document(arguments.reference_id, read_set.references)
        if isinstance(named, ToolResult):
            return named
        reference, lines = named
        first = arguments.line_number
        if first and first >= len(lines):
            last = f"its last line is {len(lines) - 1}" if len(lines) else "it has no lines"
            return error_result(
                f"Tool not run: line_number is {first}. The document [{reference.id}] has "
                f"{len(lines)} lines; {last}."
            )
        wanted = min(first + self.settings.open_lines, len(lines)) - 1
        result, last = self._window(reference, lines, first, wanted, started)
        above = read_set.window(reference.id, first, last)
        if self.guarded and read_set.is_kept and above is not None:
            return _above(above, reference, first, last, started)
        if last >= first:
            read_set.windows.append(Window(reference.id, first, last, read_set.step))
            reference.note(id for _, _, ids in result.references for id in ids)
        return result

    def _window(
        self, reference: Reference, lines: DocumentLines, first: int, wanted: int, started: float
    ) -> tuple[ToolResult, int]:
        """Return the reply with the lines from ``first`` to ``wanted`` that fit, and the last."""
        name = reference_line(reference)
        longest = _viewing(first, wanted, len(lines) + 1, True, self.max_result_tokens)
        room = self.max_result_tokens - count_tokens(f"{name}\n{longest}\n")
        texts = cut_lines(numbered(lines, first, wanted), room)
        while True:
            last = first + len(texts) - 1
            is_cut = last < wanted or (bool(texts) and texts[-1] != numbered(lines, last, last)[0])
            head = f"{name}\n{_viewing(first, last, len(lines), is_cut, self.max_result_tokens)}"
            text = "\n".join([head, *texts])
            tokens = count_tokens(text)
            if tokens <= self.max_result_tokens or len(texts) <= 1:
                break
            texts.pop()
        shown = [ShownLines(len(head) + 1, first, last, len(text))] if texts else []
        spans = line_spans(lines, reference, shown)
        if spans:  # the header belongs to the first
            spans[0] = replace(spans[0], start=0)
        ids = tuple(span.id for span in spans)
        result = ToolResult(
            text=text,
            status="ok" if texts else "empty",
            ids=ids,
            total=None,
            total_is_exact=True,
            retrieved_tokens=count_tokens("\n".join(texts)),
            result_tokens=tokens,
            milliseconds=(time.perf_counter() - started) * 1000,
            passages=tuple(spans),
            references=(ShownReference(reference.id, reference.doc_id, ids),),
        )
        return result, last


def _viewing(first: int, last: int, count: int, is_cut: bool, max_tokens: int) -> str:
    """Return the line that says which lines are shown, and how to see more."""
    if not count:
        return "The document has no text."
    cut = f" (cut at {max_tokens:,} tokens)" if is_cut else ""
    more = f" More: line_number {last + 1}." if last + 1 < count else ""
    lines = "1 line" if count == 1 else f"{count} lines"
    return f"Viewing lines [{first}-{last}] of {lines}{cut}.{more}"


def _above(
    window: Window, reference: Reference, first: int, last: int, started: float
) -> ToolResult:
    """Return the reply for lines that are still visible."""
    text = f"[{reference.id}]: lines {first}-{last} are above, in step {window.step}."
    milliseconds = (time.perf_counter() - started) * 1000
    shown = ShownReference(reference.id, reference.doc_id, ())
    return ToolResult(
        text, "ok", (), None, True, 0, count_tokens(text), milliseconds, references=(shown,)
    )

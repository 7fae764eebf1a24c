"""open: the tool of AgenticRAG that shows a window of a document's lines (section 3.3)."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from arag_search.search.reading.lines import DocumentLines
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens
from arag_search.tools.conversation import Reference
from arag_search.tools.documents.lines import (
    REFERENCE_ID,
    DocumentTool,
    ShownLines,
    cut_lines,
    line_spans,
    lines_result,
    numbered,
    reference_line,
)
from arag_search.tools.tool import Arguments, Mistake, ReadSet, ToolResult, Window


class OpenArguments(Arguments):
    """The arguments of open."""

    reference_id: str = Field(min_length=1, description=REFERENCE_ID)
    line_number: int = Field(1, ge=1, description="The first line to show.")
    column: int = Field(1, ge=1, description="Where to begin in that line, if it is long.")


class OpenLines(DocumentTool):
    """A tool that shows a window of lines, with their numbers."""

    name = "open"
    arguments = OpenArguments

    most_lines: int = 1_800

    def _description(self) -> str:
        return super()._description().replace("<open_lines>", f"{self.most_lines:,}")

    def _call(self, arguments: OpenArguments, read_set: ReadSet) -> ToolResult:
        reference, lines = self.document(arguments.reference_id, read_set.references)
        if arguments.line_number > max(lines.count, 1):
            raise Mistake(
                f"Tool not run: line_number is {arguments.line_number}. The last line of the "
                f"document [{reference.id}] is {lines.count}."
            )
        first = max(lines.piece_at(arguments.line_number, arguments.column), 0)
        wanted = min(first + self.most_lines, len(lines)) - 1
        result, last = self._window(reference, lines, first, wanted)
        above = read_set.window(reference.id, first, last)
        if self.is_guarded(read_set) and above is not None:
            shown = f"lines {lines.name(first, last)}"
            text = f"[{reference.id}]: {shown} are above, in step {above.step}."
            return lines_result(text, "ok", reference, (), 0)
        if last >= first:
            name = lines.name(first, last)
            read_set.windows.append(Window(reference.id, first, last, name, read_set.step))
            reference.note(result.ids)
        return result

    def _window(
        self, reference: Reference, lines: DocumentLines, first: int, wanted: int
    ) -> tuple[ToolResult, int]:
        name = reference_line(reference, lines.path(first) if first else "")
        longest = self._viewing(lines, first, wanted, True)
        room = self.max_result_tokens - count_tokens(f"{name}\n{longest}\n")
        texts = cut_lines(numbered(lines, first, wanted), room)
        while True:
            last = first + len(texts) - 1
            is_cut = last < wanted or (bool(texts) and texts[-1] != numbered(lines, last, last)[0])
            head = f"{name}\n{self._viewing(lines, first, last, is_cut)}"
            text = "\n".join([head, *texts])
            if count_tokens(text) <= self.max_result_tokens or len(texts) <= 1:
                break
            texts.pop()
        shown = [ShownLines.of(lines, texts, len(head) + 1, first)] if texts else []
        spans = line_spans(lines, reference, shown)
        if spans:  # the header belongs to the first
            spans[0] = replace(spans[0], start=0)
        status = "ok" if texts else "empty"
        retrieved = count_tokens("\n".join(texts))
        return lines_result(text, status, reference, spans, retrieved), last

    def _viewing(self, lines: DocumentLines, first: int, last: int, is_cut: bool) -> str:
        if not lines.count:
            return "The document has no text."
        cut = f" (cut at {self.max_result_tokens:,} tokens)" if is_cut else ""
        more = ""
        if last + 1 < len(lines):
            line, _, column = lines.name(last + 1).partition(":")
            more = f" More: line_number {line}{column and f', column {column}'}."
        count = counted(lines.count, "line")
        return f"Viewing lines [{lines.name(first, last)}] of {count}{cut}.{more}"

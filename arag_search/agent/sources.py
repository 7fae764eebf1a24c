"""The sources of an answer, as a reader can look them up: title, file, page and lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from arag_search.agent.record import Record
from arag_search.corpus import MetadataValue
from arag_search.search.index import Index
from arag_search.tools.conversation import FORM
from arag_search.tools.replies.writing import one_line, shown_title

_REFERENCE = re.compile(rf"\[({FORM.pattern})\]")


@dataclass(frozen=True, slots=True)
class Source:
    """A document that an answer cites.

    ``file`` and ``path`` are the document's metadata with these names. ``lines`` are the first and
    last line of the part that was shown last. ``page`` is the page of a PDF on which that part
    begins. Unknown values are None. ``link`` leads to the place: ``path#page=61``, or ``path:20``
    for a text.
    """

    reference: str
    doc_id: str
    score: float
    title: str
    file: str | None = None
    path: str | None = None
    page: int | None = None
    lines: tuple[int, int] | None = None

    @property
    def link(self) -> str | None:
        """The place in the file, or None."""
        target = self.path or self.file
        if target is None:
            return None
        if self.page is not None:
            return f"{target}#page={self.page}"
        return target if self.lines is None else f"{target}:{self.lines[0]}"

    @property
    def name(self) -> str:
        """Title, file, page and lines, on one line."""
        parts = [self.title or self.doc_id]
        if self.file and self.file != self.title:
            parts.append(self.file)
        if self.page is not None:
            parts.append(f"page {self.page}")
        if self.lines is not None:
            first, last = self.lines
            parts.append(f"line {first}" if first == last else f"lines {first}-{last}")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the source in types of JSON."""
        return {**asdict(self), "link": self.link}


def sources_of(record: Record, index: Index, previous: Sequence[Record] = ()) -> list[Source]:
    """Return the sources of an answer, best first. ``previous`` are the earlier records of the
    conversation, in which lines may have been shown. A document that no longer exists is named by
    its id."""
    shown = _lines_shown([*previous, record])
    documents = index.document_lines([cited.doc_id for cited in record.citations])
    sources: list[Source] = []
    for cited, document in zip(record.citations, documents, strict=True):
        lines = shown.get(cited.reference)
        if document is None:
            sources.append(Source(cited.reference, cited.doc_id, cited.score, ""))
            continue
        sources.append(
            Source(
                cited.reference,
                cited.doc_id,
                cited.score,
                shown_title(document.title),
                _text(document.metadata.get("file")),
                _text(document.metadata.get("path")),
                None if lines is None else document.page_at(lines[0]),
                lines,
            )
        )
    return sources


def with_titles(text: str, sources: Sequence[Source]) -> str:
    """Return a text with references replaced by the names of their documents."""
    names = {source.reference: source.name for source in sources}
    return _REFERENCE.sub(lambda match: f"[{names.get(match[1], match[1])}]", text)


def _lines_shown(records: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Return, by reference, the lines that were shown last; for a window, all of its lines."""
    shown: dict[str, tuple[int, int]] = {}
    for record in records:
        for step in record.trajectory:
            in_step: dict[str, tuple[int, int]] = {}
            for span in step.passages:
                if span.reference is None or span.lines is None:
                    continue
                known = in_step.get(span.reference)
                if known is None or span.kind == "lines":
                    first = span.lines[0] if known is None else known[0]
                    in_step[span.reference] = (first, span.lines[1])
            shown |= in_step
    return shown


def _text(value: MetadataValue | None) -> str | None:
    return None if value is None or isinstance(value, tuple) else one_line(str(value))

"""Word documents: their paragraphs, lists, tables and notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from index_jobs.sources.converters.archives import converter, document_of_parts, joined, parsed_xml
from index_jobs.sources.converters.numbering import BULLET, Numbering, W, value_of
from index_jobs.sources.converters.office.runs import LEFT_OUT, SeenText, Styles
from index_jobs.sources.converters.outline import TABLE_LINES, Part
from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_LIST = re.compile(r"list (?:bullet|number|paragraph).*", re.IGNORECASE)
_TITLE = "Title"


def _word_document(file: IO[bytes]) -> ConvertedDocument:
    """Return a file as one document. Deleted text of tracked changes, comments, headers and footers
    are left out."""
    from docx import Document

    word: Any = Document(file)
    roots = {
        relation.reltype.rpartition("/")[2]: parsed_xml(relation.target_part.blob)
        for relation in word.part.rels.values()
        if relation.reltype.endswith(("/numbering", "/footnotes", "/endnotes"))
        and not relation.is_external
    }
    text = WordText(Styles(word.styles.element), roots.pop("numbering", None))
    text.add(word.element.body)
    for notes in roots.values():
        for note in notes:
            if note.get(f"{W}type") is None:  # the others are lines between text and notes
                text.add(note)
    whole = "\n\n".join(text.paragraphs).strip()
    title = sensible_title(word.core_properties.title) or text.title or text.first_heading
    return document_of_parts(title, whole, text.parts, [word.element.body])


convert = converter("a Word document", _word_document)


class WordText:
    """The paragraphs of a document. Items of a list and rows of a table share a paragraph."""

    def __init__(self, styles: Styles, lists: Element | None) -> None:
        self.paragraphs: list[str] = []
        self.parts: list[Part] = []
        self._lines = 0  # those of the paragraphs so far, with a blank line after each
        self.title = ""
        self.first_heading = ""
        self._styles = styles
        self._numbering = Numbering(lists, styles.chain)
        self._seen = SeenText(styles, self._numbering)
        self._in_list = False

    def add(self, container: Element) -> None:
        """Add the paragraphs and tables of the body, or of an element in it."""
        for element in container:
            if element.tag == f"{W}p":
                self._add_paragraph(element)
            elif element.tag == f"{W}tbl":
                self._in_list = False
                if rows := self._rows(element):
                    if len(rows) >= TABLE_LINES:
                        end = self._lines + len(rows)
                        self.parts.append(Part(self._lines, end, "section", rows[0]))
                    for number, row in enumerate(rows[1:], self._lines + 1):
                        name = row.partition(" | ")[0]
                        self.parts.append(Part(number, number + 1, "entry", name))
                    self._append("\n".join(rows))
            elif element.tag not in LEFT_OUT:
                self.add(element)

    def _add_paragraph(self, element: Element) -> None:
        properties = element.find(f"{W}pPr")
        label = self._numbering.label(properties)
        id = value_of(properties, "pStyle")
        text = self._seen.of(element, id).strip()
        if not text:
            return
        style = self._styles.names.get(id, id)
        is_item = bool(_LIST.fullmatch(style))
        if heading := _HEADING.fullmatch(style):
            level = int(heading[1])
            self.first_heading = self.first_heading or " ".join(text.split())
            text = f"{label} {text}" if label.strip(BULLET) else text
            self.parts.append(Part(self._lines, 0, "section", text, level))
            text = f"{'#' * level} {text}"
        elif style == _TITLE:
            self.title = self.title or " ".join(text.split())
            text = f"# {text}"
        elif label or is_item:
            text = f"{label or BULLET} {text}"
            is_item |= properties is not None and properties.find(f"{W}numPr") is not None
        if is_item:
            first = self._lines - (1 if self._in_list else 0)
            self.parts.append(Part(first, first + text.count("\n") + 1, "entry"))
        self._append(text, joined=is_item and self._in_list)
        self._in_list = is_item

    def _append(self, text: str, *, joined: bool = False) -> None:
        if joined:
            self.paragraphs[-1] += f"\n{text}"
        else:
            self.paragraphs.append(text)
            self._lines += 1
        self._lines += text.count("\n") + 1

    def _rows(self, table: Element) -> list[str]:
        rows = (
            joined(" ".join(self._seen.of(cell).split()) for cell in _children(row, "tc"))
            for row in _children(table, "tr")
        )
        return list(filter(None, rows))


def _children(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, also those in content controls and tracked insertions."""
    for child in element:
        if child.tag == f"{W}{name}":
            yield child
        elif child.tag not in LEFT_OUT:
            yield from _children(child, name)

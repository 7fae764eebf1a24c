"""Word documents (.docx): headings, paragraphs, lists, tables, text boxes and notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from index_jobs.sources.converters.archives import Element, check_archive, parsed_xml
from index_jobs.sources.converters.base import (
    ConvertedDocument,
    check_length,
    reading,
    sensible_title,
)
from index_jobs.sources.formats import Fields

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_VALUE = f"{_W}val"
_LEFT_OUT = frozenset(
    (f"{_W}del", f"{_W}moveFrom", f"{_W}pPr", f"{_W}rPr", f"{_COMPATIBLE}Fallback")
)
"""Deleted text, properties, and fallbacks for programs without text boxes."""

_WRITTEN = {
    f"{_W}tab": "\t",
    f"{_W}br": "\n",
    f"{_W}cr": "\n",
    f"{_W}noBreakHyphen": "-",
    f"{_W}ptab": "\t",
}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_LIST = re.compile(r"list (?:bullet|number|paragraph).*", re.IGNORECASE)
_NOTES = ("/footnotes", "/endnotes")
_TITLE = "Title"


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Deleted text of tracked changes, comments, headers and
    footers are left out. See Converter."""
    kind = "a Word document"
    check_archive(path, where, kind)
    with path.open("rb") as file, reading(kind, where):
        document = _document(file, where)
    yield document


def _document(file: IO[bytes], where: str) -> ConvertedDocument:
    from docx import Document

    word: Any = Document(file)
    text = _WordText(_style_names(word.styles.element))
    text.add(word.element.body)
    for relation in word.part.rels.values():
        if relation.reltype.endswith(_NOTES) and not relation.is_external:
            for note in parsed_xml(relation.target_part.blob):
                if note.get(f"{_W}type") is None:  # the others are lines between text and notes
                    text.add(note)
    whole = "\n\n".join(text.paragraphs).strip()
    check_length(len(whole), where)
    title = sensible_title(word.core_properties.title) or text.title or text.first_heading
    return ConvertedDocument("", title, whole)


def _style_names(styles: Element) -> dict[str, str]:
    """Return the names of styles by their ids: ids are in the language of the author."""
    names: dict[str, str] = {}
    for style in styles.iter(f"{_W}style"):
        name = style.find(f"{_W}name")
        names[str(style.get(f"{_W}styleId"))] = "" if name is None else str(name.get(_VALUE))
    return names


class _WordText:
    """The paragraphs of a document. Items of a list and rows of a table share a paragraph."""

    def __init__(self, styles: Mapping[str, str]) -> None:
        self.paragraphs: list[str] = []
        self.title = ""
        self.first_heading = ""
        self._styles = styles
        self._in_list = False

    def add(self, container: Element) -> None:
        """Add the paragraphs and tables of the body, or of an element in it."""
        for element in container:
            if element.tag == f"{_W}p":
                self._add_paragraph(element)
            elif element.tag == f"{_W}tbl":
                self._in_list = False
                if rows := _rows(element):
                    self.paragraphs.append("\n".join(rows))
            elif element.tag not in _LEFT_OUT:
                self.add(element)

    def _add_paragraph(self, element: Element) -> None:
        text = _text_of(element).strip()
        if not text:
            return
        style, is_item = self._style(element)
        if heading := _HEADING.fullmatch(style):
            self.first_heading = self.first_heading or " ".join(text.split())
            text = f"{'#' * int(heading[1])} {text}"
            is_item = False
        elif style == _TITLE:
            self.title = self.title or " ".join(text.split())
            text = f"# {text}"
        if is_item and self._in_list:
            self.paragraphs[-1] += f"\n- {text}"
        else:
            self.paragraphs.append(f"- {text}" if is_item else text)
        self._in_list = is_item

    def _style(self, paragraph: Element) -> tuple[str, bool]:
        """Return the name of a paragraph's style, and whether it is an item of a list."""
        properties = paragraph.find(f"{_W}pPr")
        if properties is None:
            return "", False
        style = properties.find(f"{_W}pStyle")
        name = "" if style is None else self._styles.get(str(style.get(_VALUE)), "")
        is_item = properties.find(f"{_W}numPr") is not None or bool(_LIST.fullmatch(name))
        return name, is_item


def _rows(table: Element) -> list[str]:
    """Return the rows of a table as lines, with bars between cells."""
    rows: list[str] = []
    for row in _children(table, "tr"):
        cells = [" ".join(_text_of(cell).split()) for cell in _children(row, "tc")]
        if any(cells):
            rows.append(" | ".join(cells))
    return rows


def _children(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, also those in content controls and tracked insertions."""
    for child in element:
        if child.tag == f"{_W}{name}":
            yield child
        elif child.tag not in _LEFT_OUT:
            yield from _children(child, name)


def _text_of(element: Element) -> str:
    pieces: list[str] = []
    _collect(element, pieces)
    return "".join(pieces)


def _collect(element: Element, pieces: list[str]) -> None:
    """Append the text below an element. The parser bounds the depth of elements."""
    for child in element:
        tag = child.tag
        if tag in (f"{_W}t", _MATH_TEXT):
            pieces.append(child.text or "")
        elif tag in _WRITTEN:
            pieces.append(_WRITTEN[tag])
        elif tag not in _LEFT_OUT:
            is_paragraph = tag in (f"{_W}p", f"{_W}tc")  # of a text box or a table in a cell
            pieces.append("\n" * is_paragraph)
            _collect(child, pieces)
            pieces.append("\n" * is_paragraph)

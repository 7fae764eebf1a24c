"""Word documents, slide decks, workbooks, and archives that hold XML.

Nothing outside of an archive is read: external entities, links and macros are ignored. What it may
unpack to is bounded by the process that converts it.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from zipfile import BadZipFile, ZipFile

from arag_search.errors import SourceError
from index_jobs.sources.converters.outline import Part, outline_of
from index_jobs.sources.converters.registry import (
    ConvertedDocument,
    reading,
    sensible_title,
)
from index_jobs.sources.lines.files import Fields, readable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

_USUAL_FORMS = (
    (
        re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/"),
        rb"http://schemas.openxmlformats.org/\1/2006/",
    ),
    (re.compile(rb"""<Relationship\s[^>]*Target=["'](?:\.\./)*/?NULL["'][^>]*/>"""), b""),
    *(
        (
            re.compile(
                rb"vnd\.(?:%s|openxmlformats-officedocument\.%s)\.[\w.]+\.main\+xml" % (own, kind)
            ),
            b"vnd.openxmlformats-officedocument.%s.%s.main+xml" % (kind, main),
        )
        for own, kind, main in (
            (b"ms-word", b"wordprocessingml", b"document"),
            (b"ms-powerpoint", b"presentationml", b"presentation"),
        )
    ),
)
"""What libraries do not read, and what they read instead: names of Strict Open XML, relations to
nothing, which some programs write, and types of templates, slide shows and files with macros."""

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_FLAG = 1


@contextmanager
def opened_archive(path: Path, where: str, kind: str) -> Generator[ZipFile]:
    """Open a zip archive; ``kind`` is such as "an EPUB book". Raises SourceError if the file is not
    an archive, or is encrypted."""
    with readable(where), path.open("rb") as file:
        if file.read(len(_OLE)) == _OLE:
            raise SourceError(
                "The file is encrypted, or in the old format of Office.",
                where=where,
                allowed=f"{kind} without a password",
                do="Save it again, without a password and in the current format.",
            )
        try:
            archive = ZipFile(file)
        except (BadZipFile, NotImplementedError, ValueError) as error:
            raise SourceError(
                f"The file cannot be read as {kind} ({error}).", where=where, do="Fetch it again."
            ) from error
        with archive:
            if any(entry.flag_bits & _ENCRYPTED_FLAG for entry in archive.infolist()):
                raise SourceError(
                    "The file is encrypted.",
                    where=where,
                    allowed=f"{kind} without a password",
                    do="Save it without a password.",
                )
            yield archive


@contextmanager
def office_file(path: Path, where: str, kind: str) -> Generator[IO[bytes]]:
    """Open a file of Office for a library, after ``opened_archive`` has checked it.

    Parts in forms that libraries do not read get the usual ones, in memory. Raises SourceError.
    """
    with opened_archive(path, where, kind) as archive, reading(kind, where):
        names = archive.namelist()
        about = [name for name in names if name.endswith((".rels", "[Content_Types].xml"))]
        file: IO[bytes]
        if all(_usual(data) == data for data in map(archive.read, about)):
            file = path.open("rb")
        else:
            file = BytesIO()
            with ZipFile(file, "w") as mended:
                for name in names:
                    data = archive.read(name)
                    is_xml = name.endswith((".xml", ".rels"))
                    mended.writestr(name, _usual(data) if is_xml else data)
            file.seek(0)
    with file:
        yield file


def _usual(data: bytes) -> bytes:
    for other, usual in _USUAL_FORMS:
        data = other.sub(usual, data)
    return data


def parsed_xml(data: bytes) -> Element:
    """Return the root of an XML document; entities that it declares are not expanded. Raises the
    errors of lxml."""
    library: Any = import_module("lxml.etree")
    parser = library.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return cast("Element", library.fromstring(data, parser))


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MATH_TEXT = f"{_MATH}t"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/"
_UNREAD = {
    f"{_DRAWING}chart}}chart": "charts",
    f"{_DRAWING}diagram}}relIds": "diagrams of SmartArt",
    f"{_W}altChunk": "embedded documents",
}
"""Elements with text that is not read, with their names for reports."""

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


def convert_word(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Deleted text of tracked changes, comments, headers and
    footers are left out. See Converter."""
    kind = "a Word document"
    with office_file(path, where, kind) as file, reading(kind, where):
        document = _word_document(file)
    yield document


def _word_document(file: IO[bytes]) -> ConvertedDocument:
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
    title = sensible_title(word.core_properties.title) or text.title or text.first_heading
    unread = _unread_parts([word.element.body], _UNREAD)
    outline = outline_of(whole, text.parts)
    return ConvertedDocument("", title, whole, unread=unread, outline=outline)


def _unread_parts(roots: Sequence[Element], names: Mapping[str, str]) -> dict[str, int]:
    pairs = ((root, *pair) for root in roots for pair in names.items())
    return dict(Counter(shown for root, name, shown in pairs for _ in root.iter(name)))


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
        self.parts: list[Part] = []
        self._lines = 0  # those of the paragraphs so far, with a blank line after each
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
                    for number, row in enumerate(rows[1:], self._lines + 1):
                        name = row.partition(" | ")[0]
                        self.parts.append(Part(number, number + 1, "entry", name))
                    self._append("\n".join(rows))
            elif element.tag not in _LEFT_OUT:
                self.add(element)

    def _add_paragraph(self, element: Element) -> None:
        text = _paragraph_text(element).strip()
        if not text:
            return
        style, is_item = self._style(element)
        if heading := _HEADING.fullmatch(style):
            level = int(heading[1])
            self.first_heading = self.first_heading or " ".join(text.split())
            self.parts.append(Part(self._lines, 0, "section", text, level))
            text = f"{'#' * level} {text}"
            is_item = False
        elif style == _TITLE:
            self.title = self.title or " ".join(text.split())
            text = f"# {text}"
        if is_item:
            text = f"- {text}"
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

    def _style(self, paragraph: Element) -> tuple[str, bool]:
        properties = paragraph.find(f"{_W}pPr")
        if properties is None:
            return "", False
        style = properties.find(f"{_W}pStyle")
        name = "" if style is None else self._styles.get(str(style.get(_VALUE)), "")
        is_item = properties.find(f"{_W}numPr") is not None or bool(_LIST.fullmatch(name))
        return name, is_item


def _rows(table: Element) -> list[str]:
    rows: list[str] = []
    for row in _children(table, "tr"):
        cells = [" ".join(_paragraph_text(cell).split()) for cell in _children(row, "tc")]
        if line := _joined(cells):
            rows.append(line)
    return rows


def _children(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, also those in content controls and tracked insertions."""
    for child in element:
        if child.tag == f"{_W}{name}":
            yield child
        elif child.tag not in _LEFT_OUT:
            yield from _children(child, name)


def _paragraph_text(element: Element) -> str:
    pieces: list[str] = []
    _collect(element, pieces)
    return "".join(pieces)


def _collect(element: Element, pieces: list[str]) -> None:
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


def convert_slides(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Every slide begins with a line ``[slide N]``. See
    Converter."""
    kind = "a slide deck"
    with office_file(path, where, kind) as file, reading(kind, where):
        document = _slide_document(file)
    yield document


def _slide_document(file: IO[bytes]) -> ConvertedDocument:
    from pptx import Presentation

    deck: Any = Presentation(file)
    title = sensible_title(deck.core_properties.title)
    slides: list[str] = []
    parts: list[Part] = []
    lines = 0
    for number, slide in enumerate(deck.slides, 1):
        blocks = [f"[slide {number}]", *_blocks(slide.shapes)]
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            notes = _slide_text(frame)
            blocks += [f"Notes: {notes}"] if notes else []
        if not title and slide.shapes.title is not None:
            title = sensible_title(slide.shapes.title.text_frame.text)
        slides.append("\n".join(blocks))
        parts.append(Part(lines, 0, "section", f"slide {number}", 1))
        lines += slides[-1].count("\n") + 2
    formulas = {f"{_MATH}oMath": "formulas"}
    unread = _unread_parts([slide.element for slide in deck.slides], _UNREAD | formulas)
    text = "\n\n".join(slides)
    return ConvertedDocument("", title, text, unread=unread, outline=outline_of(text, parts))


def _blocks(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _blocks(shape.shapes)
        elif shape.has_text_frame:
            if text := _slide_text(shape.text_frame):
                yield text
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                cells = [" ".join(cell.text_frame.text.split()) for cell in row.cells]
                if line := _joined(cells):
                    yield line


def _slide_text(frame: Any) -> str:
    text = _unescaped(frame.text).replace("\v", "\n")
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def convert_workbook(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Every sheet begins with a line ``[sheet Name]``, and has a
    line for each row, with bars between cells. See Converter."""
    kind = "a workbook"
    with office_file(path, where, kind) as file, reading(kind, where), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions, which are not read
        document = _sheet_document(file, where)
    yield document


def _sheet_document(file: IO[bytes], where: str) -> ConvertedDocument:
    from openpyxl import load_workbook

    workbook: Any = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    try:
        title = sensible_title(workbook.properties.title)
        lines: list[str] = []
        parts: list[Part] = []
        for sheet in workbook.worksheets:
            lines += [""] * bool(lines)
            parts.append(Part(len(lines), 0, "section", sheet.title, 1))
            lines.append(f"[sheet {sheet.title}]")
            sheet.reset_dimensions()  # the declared size of a sheet is often wrong
            for row in sheet.iter_rows(values_only=True):
                if line := _joined(_shown(value) for value in row if value is not None):
                    lines.append(line)
    finally:
        workbook.close()
    if not lines:
        raise SourceError("The workbook has no sheets of cells.", where=where)
    text = "\n".join(lines)
    return ConvertedDocument("", title, text, outline=outline_of(text, parts))


def _joined(cells: Iterable[str]) -> str:
    """Return the line of a row: without empty cells, of which a small file can have millions."""
    return " | ".join(filter(None, cells))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else value.isoformat(" ")
    return " ".join(_unescaped(str(value)).split())


def _unescaped(text: str) -> str:
    """Return text without the escapes of characters that XML cannot hold (``_x000D_``)."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)

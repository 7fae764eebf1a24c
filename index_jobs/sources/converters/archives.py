"""Archives that hold XML: files of Office, and books.

Nothing outside of an archive is read: external entities, links and macros are ignored. The process
that converts an archive bounds the size of its content.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from zipfile import BadZipFile, ZipFile

from arag_search.errors import SourceError
from index_jobs.sources.converters.outline import TABLE_LINES, Part, outline_of
from index_jobs.sources.converters.registry import ConvertedDocument, Converter, reading
from index_jobs.sources.converters.symbols import UNKNOWN
from index_jobs.sources.lines.files import Fields, readable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

_OFFICE = b"openxmlformats-officedocument."
_MAIN = rb"vnd\.(?:%s|openxmlformats-officedocument\.%s)\.[\w.]+\.main\+xml"
_USUAL_FORMS = (
    (rb"http://purl\.oclc\.org/ooxml/(\w+)/", rb"http://schemas.openxmlformats.org/\1/2006/"),
    (rb"""<Relationship\s[^>]*Target=["'](?:\.\./)*/?NULL["'][^>]*/>""", b""),
    (
        _MAIN % (b"ms-word", b"wordprocessingml"),
        b"vnd.%swordprocessingml.document.main+xml" % _OFFICE,
    ),
    (
        _MAIN % (b"ms-powerpoint", b"presentationml"),
        b"vnd.%spresentationml.presentation.main+xml" % _OFFICE,
    ),
)
"""Forms that libraries do not read, each with the form to read instead. They are names of Strict
Open XML, relations to nothing, and types of templates, slide shows and files with macros."""

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_FLAG = 1
_MANIFEST, _SEALED = "META-INF/manifest.xml", b"encryption-data"  # of OpenDocument


@contextmanager
def opened_archive(path: Path, where: str, kind: str) -> Generator[ZipFile]:
    """Open a zip archive; ``kind`` is such as "an EPUB book". Raises SourceError if the file is not
    an archive, or is encrypted."""
    with readable(where), path.open("rb") as file:
        encrypted = SourceError(
            "The file is encrypted, or in the old format of Office.",
            where=where,
            allowed=f"{kind} without a password",
            do="Save it again, without a password and in the current format.",
        )
        if file.read(len(_OLE)) == _OLE:
            raise encrypted
        try:
            archive = ZipFile(file)
        except (BadZipFile, NotImplementedError, ValueError) as error:
            raise SourceError(
                f"The file cannot be read as {kind} ({error}).", where=where, do="Fetch it again."
            ) from error
        with archive:
            with reading(kind, where):
                sealed = _MANIFEST in archive.NameToInfo and _SEALED in archive.read(_MANIFEST)
            if sealed or any(entry.flag_bits & _ENCRYPTED_FLAG for entry in archive.infolist()):
                raise encrypted
            yield archive


def _usual_file(path: Path, archive: ZipFile) -> IO[bytes]:
    """Open a file of Office for a library. Parts in forms that libraries do not read get the usual
    ones, in memory."""
    names = archive.namelist()
    about = [name for name in names if name.endswith((".rels", "[Content_Types].xml"))]
    if all(_usual(data) == data for data in map(archive.read, about)):
        return path.open("rb")
    file = BytesIO()
    with ZipFile(file, "w") as mended:
        for name in names:
            data = archive.read(name)
            is_xml = name.endswith((".xml", ".rels"))
            mended.writestr(name, _usual(data) if is_xml else data)
    file.seek(0)
    return file


def _usual(data: bytes) -> bytes:
    for other, usual in _USUAL_FORMS:
        data = re.sub(other, usual, data)
    return data


def parsed_xml(data: bytes) -> Element:
    """Return the root of an XML document; entities that it declares are not expanded. Raises the
    errors of lxml."""
    library: Any = import_module("lxml.etree")
    parser = library.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return cast("Element", library.fromstring(data, parser))


_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/"
_UNREAD = {
    f"{_DRAWING}chart}}chart": "charts",
    f"{_DRAWING}diagram}}relIds": "diagrams of SmartArt",
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}altChunk": "embedded documents",
    "repeated": "cells and rows repeated too often",
}
"""Elements with text that is not read, with their names for reports."""

_UNKNOWN_SYMBOLS = "symbols of unknown meaning"


def converter(kind: str, document_of: Callable[[IO[bytes]], ConvertedDocument]) -> Converter:
    """Return a converter that yields a file of Office as one document."""

    def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
        # Libraries warn about styles and extensions, which are not read.
        with (
            warnings.catch_warnings(action="ignore"),
            opened_archive(path, where, kind) as archive,
            reading(kind, where),
            _usual_file(path, archive) as file,
        ):
            document = document_of(file)
        yield document

    return convert


def document_of_parts(
    title: str, text: str, parts: Iterable[Part], roots: Iterable[Element] = ()
) -> ConvertedDocument:
    """Return a document. Elements below ``roots`` that are not read are counted, by their names."""
    unread = Counter(
        shown for root in roots for name, shown in _UNREAD.items() for _ in root.iter(name)
    )
    unread += Counter({_UNKNOWN_SYMBOLS: text.count(UNKNOWN)})
    return ConvertedDocument("", title, text, unread=unread, outline=outline_of(text, parts))


def sectioned_document(
    title: str, kind: str, sections: Iterable[tuple[str, Iterable[str]]], roots: Iterable[Element]
) -> ConvertedDocument:
    """Return slides or sheets, with their names and lines, as a document. Each begins with a line
    such as ``[sheet Name]``. Sheets have titles above their rows."""
    lines: list[str] = []
    parts: list[Part] = []
    for name, content in sections:
        lines += [""] * bool(lines)
        parts.append(
            Part(len(lines), 0, "section", name if kind == "sheet" else f"{kind} {name}", 1)
        )
        lines.append(f"[{kind} {name}]")
        first = len(lines)
        lines += filter(None, content)
        is_table = kind == "sheet" and len(lines) - first >= TABLE_LINES
        if is_table and not any(map(str.isdigit, lines[first])):
            parts.append(Part(first, len(lines), "section", lines[first]))
    return document_of_parts(title, "\n".join(lines), parts, roots)


def joined(cells: Iterable[str]) -> str:
    """Return the line of a row: without empty cells, of which a small file can have millions."""
    return " | ".join(filter(None, cells))


def unescaped(text: str) -> str:
    """Return text without the escapes of characters that XML cannot hold (``_x000D_``)."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)

"""Files written by a test, and what their converters read from them."""

from collections.abc import Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from arag_search.errors import SourceError
from index_jobs.sources.converters.registry import ConvertedDocument, file_type_of
from index_jobs.sources.lines.files import Fields

FILES = Path(__file__).parent / "files"


def entries_of(path: Path, fields: Fields | None = None) -> list[ConvertedDocument | SourceError]:
    """Return what the converter for the ending of a file yields."""
    file_type = file_type_of(path.name)
    assert file_type is not None
    return list(file_type.converter()(path, path.name, fields or Fields()))


def document_of(path: Path) -> ConvertedDocument:
    """Return the only document of a file, which has no part of an id."""
    (entry,) = entries_of(path)
    assert isinstance(entry, ConvertedDocument)
    assert entry.suffix == entry.id == ""
    return entry


def documents_of(path: Path, fields: Fields | None = None) -> list[ConvertedDocument]:
    """Return the documents of a file without errors."""
    entries = entries_of(path, fields)
    documents = [entry for entry in entries if isinstance(entry, ConvertedDocument)]
    assert documents == entries
    return documents


def refusal_of(path: Path, fields: Fields | None = None) -> SourceError:
    """Return the error for a whole file, which names the file."""
    with pytest.raises(SourceError) as caught:
        entries_of(path, fields)
    assert caught.value.where.startswith(path.name)
    return caught.value


def written(path: Path, content: bytes | str) -> Path:
    """Write a file, text in UTF-8, and return its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def archive(path: Path, members: dict[str, str | bytes]) -> Path:
    """Write a zip archive and return its path."""
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def with_member(path: Path, name: str, content: str | bytes) -> Path:
    """Replace or add a member of a zip archive, and return its path."""
    with ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    return archive(path, {**members, name: content})


def pdf_bytes(
    pages: Sequence[Sequence[tuple[int, str]]],
    title: str | None = None,
    *,
    catalog: bytes = b"",
    page: bytes = b"",
    more: Sequence[bytes] = (),
) -> bytes:
    """Return a PDF whose pages have lines, each with its font size in points.

    ``catalog`` and ``page`` are put into these dictionaries; ``more`` are objects after the pages,
    the first of which has the number 4 + 2 * len(pages).
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    kids: list[bytes] = []
    for lines in pages:
        drawn = (
            b"/F1 %d Tf <%s> Tj 0 -%d Td " % (size, line.encode("cp1252").hex().encode(), size + 6)
            for size, line in lines
        )
        content = b"BT 72 720 Td " + b"".join(drawn) + b"ET"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> %s >>" % (len(objects), page)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    objects += more
    trailer = b""
    if title is not None:
        objects.append(b"<< /Title <feff%s> >>" % title.encode("utf-16-be").hex().encode())
        trailer = b" /Info %d 0 R" % len(objects)
    data = b"%PDF-1.7\n"
    places: list[int] = []
    for number, value in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, value)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return data + b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        trailer,
        start,
    )

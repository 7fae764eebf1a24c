"""EPUB books: the chapters in reading order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from zipfile import ZipFile

from arag_search.errors import SourceError
from index_jobs.sources.converters.html import decoded_markup, page_of
from index_jobs.sources.converters.office import Element, opened_archive, parsed_xml
from index_jobs.sources.converters.outline import Part, outline_of, shifted
from index_jobs.sources.converters.registry import (
    ConvertedDocument,
    check_length,
    reading,
    sensible_title,
)
from index_jobs.sources.records import Fields

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", None)
"""The media types of chapters; some programs leave it out."""


class _Book(NamedTuple):
    """The title of a book, the names of its chapters in the archive, and the number of chapters
    that are pictures or something else."""

    title: str
    chapters: list[str]
    others: int


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the book as one document. Every chapter begins with a line ``[chapter N]``. See
    Converter."""
    kind = "an EPUB book"
    with opened_archive(path, where, kind) as archive, reading(kind, where):
        document = _document(archive, where)
    yield document


def _document(archive: ZipFile, where: str) -> ConvertedDocument:
    book = _book(archive)
    if _encrypted(archive) & set(book.chapters):
        raise SourceError(
            "The book is encrypted.",
            where=where,
            allowed="a book without copy protection",
        )
    chapters: list[str] = []
    parts: list[Part] = []
    characters = lines = 0
    title = book.title
    for name in book.chapters:
        place = f"{where}, {name}"
        page = page_of(decoded_markup(archive.read(name), place), place)
        if page.text:
            chapters.append(f"[chapter {len(chapters) + 1}]\n{page.text}")
            length = page.text.count("\n") + 2
            units = page.outline
            name = next((unit.name for unit in units if unit.kind == "section"), page.title)
            if units and units[0][:3] == (0, length - 1, "section"):
                units = units[1:]  # it is the whole chapter
            parts.append(Part(lines, lines + length, "section", name))
            parts += shifted(units, lines + 1)
            lines += length + 1
            characters += len(page.text)
            check_length(characters, where)
            title = title or page.title
    unread = {"chapters that are not pages": book.others} if book.others else {}
    text = "\n\n".join(chapters)
    return ConvertedDocument("", title, text, unread=unread, outline=outline_of(text, parts))


def _book(archive: ZipFile) -> _Book:
    container = parsed_xml(archive.read(_CONTAINER))
    (path, *_) = [str(element.get("full-path")) for element in _named(container, "rootfile")]
    package = parsed_xml(archive.read(path))
    folder = posixpath.dirname(path)
    chapters = {
        item.get("id"): _member(folder, str(item.get("href")))
        if item.get("media-type") in _PAGES
        else None
        for item in _named(package, "item")
        if "nav" not in (item.get("properties") or "").split()
    }
    ids = (item.get("idref") for item in _named(package, "itemref"))
    order = [chapters[id] for id in ids if id in chapters]
    titles = (sensible_title("".join(title.itertext())) for title in _named(package, "title"))
    return _Book(next(titles, ""), [name for name in order if name], order.count(None))


def _encrypted(archive: ZipFile) -> set[str]:
    """Return the names of the encrypted files of a book. Fonts are often encrypted, which does not
    matter."""
    if _ENCRYPTION not in archive.namelist():
        return set()
    references = _named(parsed_xml(archive.read(_ENCRYPTION)), "CipherReference")
    return {_member("", str(reference.get("URI"))) for reference in references}


def _member(folder: str, reference: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(urlsplit(reference).path)))


def _named(root: Element, name: str) -> Iterator[Element]:
    return root.iter(f"{{*}}{name}", name)

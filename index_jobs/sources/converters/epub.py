"""EPUB books: the chapters in reading order."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote
from zipfile import ZipFile

from arag_search.errors import SourceError
from index_jobs.sources.converters.archives import opened_archive, parsed_xml
from index_jobs.sources.converters.html import decoded_markup, page_of
from index_jobs.sources.converters.outline import Part, outline_of, shifted
from index_jobs.sources.converters.registry import ConvertedDocument, reading, sensible_title
from index_jobs.sources.lines.files import Fields

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", None)
"""The media types of chapters; some programs leave it out."""


_NOT_PAGES = "chapters that are not pages"
_ABSENT = "chapters that are not in the archive"


class _Book(NamedTuple):
    """The title of a book, the names of its chapters in the archive, and how many chapters are not
    read, by what they are."""

    title: str
    chapters: list[str]
    unread: Counter[str]


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
    lines = 0
    title = book.title
    for name in book.chapters:
        read = decoded_markup(archive.read(name), f"{where}, {name}")
        book.unread.update(read.unread)
        page = page_of(read.text)
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
            title = title or page.title
    text = "\n\n".join(chapters)
    outline = outline_of(text, parts)
    return ConvertedDocument("", title, text, unread=book.unread, outline=outline)


def _book(archive: ZipFile) -> _Book:
    names = _names(archive)
    container = parsed_xml(archive.read(_CONTAINER))
    (named, *_) = [str(element.get("full-path")) for element in _named(container, "rootfile")]
    path = _member(names, "", named) or named
    package = parsed_xml(archive.read(path))
    folder = posixpath.dirname(path)
    items = {item.get("id"): item for item in _named(package, "item")}
    chapters: list[str] = []
    unread = Counter[str]()
    for reference in _named(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is None:
            unread[_ABSENT] += 1
        elif item.get("media-type") not in _PAGES:
            unread[_NOT_PAGES] += 1
        elif "nav" not in (item.get("properties") or "").split():
            name = _member(names, folder, item.get("href") or "")
            chapters += [name] if name else []
            unread[_ABSENT] += not name
    titles = (sensible_title("".join(title.itertext())) for title in _named(package, "title"))
    return _Book(next(titles, ""), chapters, +unread)


def _names(archive: ZipFile) -> dict[str, str]:
    """Return the names in a book by themselves, and by their lower case unless another name is the
    same. Many books are made where upper and lower case are the same."""
    names = [name for name in archive.namelist() if not name.endswith("/")]
    return {name.lower(): name for name in names} | {name: name for name in names}


def _encrypted(archive: ZipFile) -> set[str]:
    """Return the names of the encrypted files of a book. Fonts are often encrypted, which does not
    matter."""
    if _ENCRYPTION not in archive.namelist():
        return set()
    names = _names(archive)
    references = _named(parsed_xml(archive.read(_ENCRYPTION)), "CipherReference")
    return {_member(names, "", reference.get("URI") or "") for reference in references}


def _member(names: Mapping[str, str], folder: str, reference: str) -> str:
    """Return the name that a reference leads to, empty if none has it. What would lead out of the
    archive leads to its root, as in a browser. Some programs escape the names of files as well."""
    path = reference.partition("#")[0].partition("?")[0]
    joined = (posixpath.join("/", folder, form) for form in (unquote(path), path))
    forms = [posixpath.normpath(form).lstrip("/") for form in joined]
    members = (names[form] for form in (*forms, *map(str.lower, forms)) if form in names)
    return next(members, "")


def _named(root: Element, name: str) -> Iterator[Element]:
    return root.iter(f"{{*}}{name}")  # in any namespace, or none

"""Archives that hold XML: Office files and EPUB. Their contents are bounded before they are read.

Nothing outside of an archive is read: external entities, links and macros are ignored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast
from zipfile import BadZipFile, ZipFile

from arag_search.errors import SourceError
from index_jobs.sources.records import readable

MAX_UNPACKED_BYTES = 1 << 29
"""The maximum total size of the unpacked files of an archive (512 MiB)."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_FLAG = 1


class Element(Protocol):
    """An XML element, as lxml represents it."""

    tag: Any
    """Its name; a function for comments and the like."""

    text: str | None

    def get(self, name: str) -> str | None: ...

    def find(self, name: str) -> Element | None: ...

    def iter(self, *names: str) -> Iterator[Element]: ...

    def itertext(self) -> Iterator[str]: ...

    def __iter__(self) -> Iterator[Element]: ...


@contextmanager
def opened_archive(path: Path, where: str, kind: str) -> Generator[ZipFile]:
    """Open a zip archive, after its declared sizes have been checked; ``kind`` is such as "an EPUB
    book". Raises SourceError if the file is not an archive, is encrypted, or is too large when
    unpacked."""
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
            _check_archive(archive, where, kind)
            yield archive


def check_archive(path: Path, where: str, kind: str) -> None:
    """Raise SourceError if ``opened_archive`` would, before a library opens the file."""
    with opened_archive(path, where, kind):
        pass


def _check_archive(archive: ZipFile, where: str, kind: str) -> None:
    entries = archive.infolist()
    if any(entry.flag_bits & _ENCRYPTED_FLAG for entry in entries):
        raise SourceError(
            "The file is encrypted.",
            where=where,
            allowed=f"{kind} without a password",
            do="Save it without a password.",
        )
    # What an entry holds beyond its declared size is never read: zipfile stops there.
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED_BYTES:
        raise SourceError(
            f"The file unpacks to {unpacked >> 20:,} MiB.",
            where=where,
            allowed=f"at most {MAX_UNPACKED_BYTES >> 20} MiB",
            do="Split it, or make its pictures smaller.",
        )


def parsed_xml(data: bytes) -> Element:
    """Return the root of an XML document; entities that it declares are not expanded. Raises the
    errors of lxml."""
    library: Any = import_module("lxml.etree")
    parser = library.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return cast("Element", library.fromstring(data, parser))

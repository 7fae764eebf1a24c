"""The protocol of a converter, the documents it yields, and limits that converters share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from arag_search.errors import SourceError
from index_jobs.sources.formats import SKIP_FILE, Fields
from index_jobs.sources.records import readable

MAX_FILE_BYTES = 1 << 28
"""The largest file that is read as a whole (256 MiB). Tables and mailboxes are streamed."""


class ConvertedDocument(NamedTuple):
    """A document as a converter reads it from a file.

    ``suffix`` is empty if the file is one document; otherwise it is what follows ``#`` in the id:
    the number of a row or message. ``title`` is empty if the file gives none. ``text`` is any
    Unicode text; the caller cleans it. ``metadata`` are the columns of a row or the headers of a
    mail. ``id`` is the whole id, if a column of the file has it, and empty otherwise.
    """

    suffix: str
    title: str
    text: str
    metadata: Mapping[str, Any] = {}
    id: str = ""


class Converter(Protocol):
    """A function that reads the documents of one file."""

    def __call__(
        self, path: Path, where: str, fields: Fields
    ) -> Iterator[ConvertedDocument | SourceError]:
        """Yield the documents of the file at ``path``, in a fixed order.

        Messages call the file ``where``. ``fields`` names columns of a table. A document that
        cannot be read is yielded as a SourceError, and documents after it are still read. Raises
        SourceError for a file of which nothing more can be read.
        """
        ...


def whole_file(path: Path, where: str) -> bytes:
    """Return the bytes of a file. Raises SourceError if it cannot be read, or is too large."""
    with readable(where), path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise SourceError(
            f"The file is larger than {MAX_FILE_BYTES >> 20} MiB.",
            where=where,
            do="Split it, or leave it out with --skip-bad-files.",
        )
    return data


def damaged(kind: str, where: str, reason: object = "") -> SourceError:
    """Return the error for a file that its library cannot read. ``kind`` is such as "PDF"."""
    shown = " ".join(str(reason).split())[:200]
    return SourceError(
        f"The file cannot be read as {kind}{f' ({shown})' if shown else ''}.",
        where=where,
        do=SKIP_FILE,
    )

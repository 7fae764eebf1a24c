"""Corpus files as sources, and the documents that sources read from them."""

import csv
import io
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader, parse_metadata
from index_jobs.sources.opening import open_source
from index_jobs.sources.registry import Format
from index_jobs.sources.source import Source

USUAL = Fields()
FIX = "Fix it, or skip it with `skip_bad_lines=True`."


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def source_of(
    name: str,
    content: str | bytes,
    format: Format | None = None,
    fields: Fields = USUAL,
    metadata: str = "",
) -> Source:
    """Write a file with this content below the current folder, and open it as a source."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return source_at(name, format, fields, metadata)


def source_at(
    name: str, format: Format | None = None, fields: Fields = USUAL, metadata: str = ""
) -> Source:
    """Open an existing file or folder as a source."""
    declared = parse_metadata(metadata) if metadata else {}
    return open_source(name, format, fields, MetadataReader(declared))


def documents(source: Source, skip: int = 0) -> list[Document]:
    """Return the documents of a source; raise the error of the first that cannot be read."""
    readable: list[Document] = []
    for _, entry in source.documents(skip):
        if isinstance(entry, SourceError):
            raise entry
        readable.append(entry)
    return readable


def problems(source: Source) -> list[str]:
    """Return the messages about the documents that cannot be read."""
    return [str(entry) for _, entry in source.documents() if isinstance(entry, SourceError)]


def resumes(source: Source) -> bool:
    """Return whether a source that resumes after any record reads the rest of the records."""
    entries = [(number, str(entry)) for number, entry in source.documents()]
    return all(
        [(number, str(entry)) for number, entry in source.documents(done)] == entries[place + 1 :]
        for place, (done, _) in enumerate(entries)
    )


ROWS = [
    ["id", "text", "title"],
    ["1", 'He said "yes", and\tleft.', "Anna"],
    ["2", "Two lines\nin one field.", "Anna"],
    ["3", "Cafe\u0301", 'The "Sea"'],
]


def table(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue()

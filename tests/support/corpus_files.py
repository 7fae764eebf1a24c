"""Corpus files as sources, and what is read from them."""

import csv
import io
from pathlib import Path

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader, parse_metadata
from index_jobs.sources.opening import open_source
from index_jobs.sources.registry import Format
from index_jobs.sources.source import Source

USUAL = Fields()
FIX = "Correct it, or leave it out with --skip-bad-lines."


def source_of(
    name: str,
    content: str | bytes,
    format: Format | None = None,
    fields: Fields = USUAL,
    metadata: str = "",
) -> Source:
    """A file with this content, below the current folder, as a source."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return source_at(name, format, fields, metadata)


def source_at(
    name: str, format: Format | None = None, fields: Fields = USUAL, metadata: str = ""
) -> Source:
    """What is there as a source."""
    declared = parse_metadata(metadata) if metadata else {}
    return open_source(name, format, fields, MetadataReader(declared))


def documents(source: Source, skip: int = 0) -> list[Document]:
    """The documents; the first that cannot be read is raised."""
    found: list[Document] = []
    for _, entry in source.documents(skip):
        if isinstance(entry, SourceError):
            raise entry
        found.append(entry)
    return found


def problems(source: Source) -> list[str]:
    """The messages about those that cannot be read."""
    return [str(entry) for _, entry in source.documents() if isinstance(entry, SourceError)]


def resumes(source: Source) -> bool:
    """Whether it goes on after each record with what an uninterrupted reading gives."""
    whole = [(number, str(entry)) for number, entry in source.documents()]
    return all(
        [(number, str(entry)) for number, entry in source.documents(done)] == whole[place + 1 :]
        for place, (done, _) in enumerate(whole)
    )


ROWS = [
    ["id", "text", "title"],
    ["1", 'He said "yes", and\tleft.', "Anna"],
    ["2", "Two lines\nin one field.", "Anna"],
    ["3", "Cafe\u0301", 'The "Sea"'],
]


def table(rows: list[list[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows(rows)
    return written.getvalue()

"""Opening sources of documents, in a given or detected format.

A source yields its documents in a fixed order, so that a resumed build can skip those it has. A
document that cannot be read is yielded as a SourceError: the build decides whether to stop.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from arag_search.corpus import SHARD_BITS
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.record_file import RecordFile
from index_jobs.sources.registry import FORMATS, PRE_CHUNKED, Format, folder_help
from index_jobs.sources.source import Source

MAX_SOURCES = 1 << SHARD_BITS


def open_sources(
    names: Sequence[str],
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
) -> list[Source]:
    """Open every source. ``format`` None detects the format of each from its beginning.

    Raises SourceError for a source that cannot be read in its format, ArgumentError if there is no
    source, a duplicate source, or too many.
    """
    check_names(names)
    return [open_source(name, format, fields, metadata) for name in names]


def check_names(names: Sequence[str]) -> None:
    """Raise ArgumentError if there is no source, a duplicate source, or too many."""
    if not names:
        raise ArgumentError("No source is given.", allowed="folders and files")
    if len(names) > MAX_SOURCES:
        raise ArgumentError(
            f"{len(names):,} sources are given.",
            allowed=f"at most {MAX_SOURCES:,}",
            do="Give a folder, or join files.",
        )
    resolved: set[str] = set()
    for name in names:
        path = os.path.realpath(name)
        if path in resolved:
            raise ArgumentError(f"The source {name} is given twice.")
        resolved.add(path)


def are_already_chunked(sources: Sequence[Source]) -> bool:
    """Return whether all sources are pre-chunked. Raises SourceError if only some are."""
    formats = {source.format for source in sources}
    if formats & PRE_CHUNKED and formats - PRE_CHUNKED:
        raise SourceError(
            "Pre-chunked passages and documents cannot be in one index.",
            where=", ".join(f"{source.name} ({source.format})" for source in sources[:5]),
            do="Build an index for each.",
        )
    return bool(formats & PRE_CHUNKED)


def open_source(
    name: str, format: Format | None, fields: Fields, metadata: MetadataReader
) -> Source:
    """Open one source; see ``open_sources``."""
    path = Path(name)
    if path.is_dir():
        return _open_folder(name, format, fields, metadata)
    if format is None:
        ending = path.suffix.lower()
        entries = (entry for entry in FORMATS.values() if ending in entry.file_endings)
        entry = next(entries, None)
    else:
        entry = FORMATS[format]
    if entry is not None and entry.file:
        source = entry.file_opener()(name, fields, metadata, recognised=format is None)
        if source is not None:
            return source
    if entry is not None and not entry.record:
        raise SourceError(
            f"A file cannot be read as {entry.name}.",
            where=name,
            allowed=f"a folder: {entry.folder_words}",
        )
    return RecordFile(name, format, fields, metadata)


def _open_folder(
    name: str, format: Format | None, fields: Fields, metadata: MetadataReader
) -> Source:
    entries = reversed(FORMATS.values()) if format is None else [FORMATS[format]]
    for entry in entries:
        if entry.folder:
            source = entry.folder_opener()(name, fields, metadata, recognised=format is None)
            if source is not None:
                return source
    raise SourceError(
        f"A folder cannot be read as {format}.",
        where=name,
        allowed=folder_help(),
        do="Give the files themselves as sources.",
    )

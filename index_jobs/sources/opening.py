"""Opening sources of documents, in a given or detected format.

A source yields its documents in a fixed order, so that a resumed build can skip those it has. A
document that cannot be read is yielded as a SourceError: the build decides whether to stop.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from arag_search.corpus import SHARD_BITS
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.converters.registry import file_type_of
from index_jobs.sources.encodings import stream_encoding
from index_jobs.sources.files import open_file, open_input
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import Source
from index_jobs.sources.record_file import LOOKED_AT_BYTES, RecordFile, holds_passages
from index_jobs.sources.records import Fields, readable
from index_jobs.sources.registry import FORMATS, PRE_CHUNKED, Format, folder_help
from index_jobs.sources.selection import STDIN, USUAL_FILES, FileSelection
from index_jobs.sources.standard_input import spooled_input

MAX_SOURCES = 1 << SHARD_BITS


_ROW_ENDINGS = frozenset((".csv", ".tsv", ".tab"))
_RECORD_ENDINGS = frozenset((".jsonl", ".ndjson", ".tsv", ".gz"))
_LIKE_RECORDS = re.compile(rb"\s*(?:\[|\{(?!\s*\n))")
"""The beginning of JSON, but for an object with a member on each line."""


def open_sources(
    names: Sequence[str],
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
    files: FileSelection = USUAL_FILES,
) -> list[Source]:
    """Open every source. ``format`` None detects the format of each from its beginning; ``-`` is
    standard input. The ids of files are relative to the root of all sources, see FileSelection.

    Raises SourceError for a source that cannot be read in its format, ArgumentError if there is no
    source, a duplicate source, or too many.
    """
    check_names(names)
    files = files.rooted(names)
    return [open_source(name, format, fields, metadata, files) for name in names]


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
    name: str,
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
    files: FileSelection | None = None,
) -> Source:
    """Open one source; see ``open_sources``. ``files`` has the root of all sources; without it, the
    source is the only one."""
    files = files or USUAL_FILES.rooted([name])
    if name == STDIN:
        return _open_input(format, fields, metadata)
    path = Path(name)
    if path.is_dir():
        return _open_folder(name, format, fields, metadata, files)
    if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
        raise SourceError(
            "The source is neither a file nor a folder.",
            where=name,
            do=f"Give its content as standard input: {STDIN}",
        )
    if format is None:
        return _open_detected(path, name, fields, metadata, files)
    entry = FORMATS[format]
    if entry.file:
        return entry.file_opener()(name, fields, metadata, files, recognised=False)
    if not entry.record:
        raise SourceError(
            f"A file cannot be read as {entry.name}.",
            where=name,
            allowed=f"a folder: {entry.folder_words}",
        )
    return RecordFile(name, format, fields, metadata)


def _open_detected(
    path: Path, name: str, fields: Fields, metadata: MetadataReader, files: FileSelection
) -> Source:
    type = file_type_of(path.name)
    ending = path.suffix.lower()
    may_be_records = type is None or type.may_be_other
    if may_be_records or (ending in _ROW_ENDINGS and holds_passages(path, name, fields)):
        try:
            return RecordFile(name, None, fields, metadata)
        except SourceError:
            if ending in _RECORD_ENDINGS or not _is_text(path, name):
                raise
    return open_file(name, fields, metadata, files, recognised=True)


def _is_text(path: Path, name: str) -> bool:
    """Return whether a file without records can be indexed as text. JSON, and a file without ending
    that begins like it, is assumed to have bad records, unless it is one object on many lines."""
    with readable(name), path.open("rb") as file:
        if path.suffix.lower() in ("", ".json") and _LIKE_RECORDS.match(file.read(LOOKED_AT_BYTES)):
            return False
        file.seek(0)
        try:
            stream_encoding(file, name)
        except SourceError:
            return False
    return True


def _open_input(format: Format | None, fields: Fields, metadata: MetadataReader) -> Source:
    """Open standard input: as records if it holds records, otherwise as one document of text."""
    spool = spooled_input()
    if format is None or FORMATS[format].record:
        try:
            return RecordFile(STDIN, format, fields, metadata, spool=spool)
        except SourceError:
            if format is not None or not _is_text(spool.path, STDIN):
                raise
    elif not FORMATS[format].file:
        raise SourceError(
            f"Standard input cannot be read as {format}.",
            allowed=f"a folder: {FORMATS[format].folder_words}",
        )
    return open_input(STDIN, spool, fields, metadata)


def _open_folder(
    name: str,
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
    files: FileSelection,
) -> Source:
    detected = [entry for entry in reversed(FORMATS.values()) if entry.detected]
    for entry in detected if format is None else [FORMATS[format]]:
        if entry.folder:
            opener = entry.folder_opener()
            source = opener(name, fields, metadata, files, recognised=format is None)
            if source is not None:
                return source
    raise SourceError(
        f"A folder cannot be read as {format}.",
        where=name,
        allowed=folder_help(),
        do="Give the files themselves as sources.",
    )

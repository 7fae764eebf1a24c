"""Opening sources of documents, in a given or detected format.

A source yields its documents in a fixed order, so that a resumed build can skip those it has. A
document that cannot be read is yielded as a SourceError: the build decides whether to stop.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from arag_search.corpus import SHARD_BITS
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.conversion import Conversions
from index_jobs.sources.converters.registry import file_type_of
from index_jobs.sources.encodings import stream_encoding
from index_jobs.sources.folders.listing import (
    PLAIN_TEXT,
    FolderListing,
    SourceFile,
    is_below,
    listed,
    one_file,
)
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.selection import STDIN, USUAL_FILES, FileSelection
from index_jobs.sources.folders.source import FileSource
from index_jobs.sources.lines.anserini import LuceneIndexFolder, is_lucene_index
from index_jobs.sources.lines.files import COMPRESSED, Fields, readable
from index_jobs.sources.lines.records import Records, RecordStream
from index_jobs.sources.lines.source import LOOKED_AT_BYTES, RecordFile, holds_passages
from index_jobs.sources.lines.stdin import spooled_input
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import (
    ANSERINI,
    BEIR,
    FILES,
    FORMATS,
    PRE_CHUNKED,
    RECORDS,
    TEXT,
    Format,
    folder_help,
)
from index_jobs.sources.source import Source

MAX_SOURCES = 1 << SHARD_BITS
_ROW_ENDINGS = frozenset((".csv", ".tsv", ".tab"))
_RECORD_ENDINGS = frozenset((".jsonl", ".ndjson", ".tsv", *COMPRESSED))
_BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
_LIKE_RECORDS = re.compile(rb"\s*(?:\[|\{(?!\s*\n))")
"""The beginning of JSON, but for an object with a member on each line."""


def open_sources(
    names: Sequence[str] | Records,
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
    if isinstance(names, Records):
        return [RecordStream(names, format, fields, metadata)]
    check_names(names)
    files = files.rooted(names)
    opened = [open_source(name, format, fields, metadata, files) for name in names]
    conversions = Conversions(
        files.file_limits, files.within_s
    )  # all files share the time for failures
    for source in opened:
        if isinstance(source, FileSource):
            source.conversions = conversions
    return opened


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
        return _open_input(format, fields, metadata, files)
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
    if format in (FILES, TEXT):
        type = PLAIN_TEXT if format == TEXT else None
        listing = one_file(name, files, type)
        return FileSource(name, format, listing, fields, metadata, files, recognised=False)
    if format not in RECORDS:
        raise SourceError(
            f"A file cannot be read as {format}.",
            where=name,
            allowed=f"a folder: {FORMATS[format].folder}",
        )
    return RecordFile(name, format, fields, metadata)


def _open_detected(
    path: Path, name: str, fields: Fields, metadata: MetadataReader, files: FileSelection
) -> Source:
    type, ending = file_type_of(path.name), path.suffix.lower()
    within = Path(path.stem)
    if ending in COMPRESSED and within.suffix.lower() in _ROW_ENDINGS:
        type, ending = file_type_of(within.name), within.suffix.lower()
    may_be_records = type is None or type.may_be_other or ending in _RECORD_ENDINGS - _ROW_ENDINGS
    if may_be_records or (ending in _ROW_ENDINGS and holds_passages(path, name, fields)):
        try:
            return RecordFile(name, None, fields, metadata)
        except SourceError:
            is_text = (type is not None and type.has_many) or _is_text(path, name)
            if ending in _RECORD_ENDINGS or not is_text:
                raise
    listing = one_file(name, files, type)
    return FileSource(name, FILES, listing, fields, metadata, files, recognised=True)


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


def _open_input(
    format: Format | None, fields: Fields, metadata: MetadataReader, files: FileSelection
) -> Source:
    """Open standard input: as records if it holds records, otherwise as one document of text."""
    spool = spooled_input()
    if format is None or format in RECORDS:
        try:
            return RecordFile(STDIN, format, fields, metadata, spool=spool)
        except SourceError:
            if format is not None or not _is_text(spool.path, STDIN):
                raise
    elif format not in (FILES, TEXT):
        raise SourceError(
            f"Standard input cannot be read as {format}.",
            allowed=f"a folder: {FORMATS[format].folder}",
        )
    place = Place(str(spool.path))
    file = SourceFile(spool.id, place, spool.where, PLAIN_TEXT, spool.size, spool.sha256)
    listing = partial(listed, [file._replace(suspicion=files.suspicion(spool.id))])
    return FileSource(STDIN, TEXT, listing, fields, metadata, USUAL_FILES, recognised=True)


def _open_folder(
    name: str,
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
    files: FileSelection,
) -> Source:
    recognised = format is None
    if format == ANSERINI or (recognised and is_lucene_index(Path(name))):
        return LuceneIndexFolder(name, fields, metadata, recognised=recognised)
    if format in (None, BEIR):
        corpus = _beir_corpus(name, Path(name))
        if corpus is not None and (format or _is_beir(corpus)):
            return RecordFile(corpus, BEIR, fields, metadata, recognised=recognised)
    if format in (None, FILES, TEXT):
        listing = FolderListing(name, files, only_text=format == TEXT)
        source_format = format or FILES
        return FileSource(
            name, source_format, listing, fields, metadata, files, recognised=recognised
        )
    raise SourceError(
        "There is no corpus.jsonl in the folder."
        if format == BEIR
        else f"A folder cannot be read as {format}.",
        where=name,
        allowed=folder_help(),
        do="Give the files themselves as sources.",
    )


def _beir_corpus(name: str, folder: Path) -> str | None:
    """Return the corpus file of a BEIR folder, or None. Raises SourceError if it is a link that
    leads out of the folder."""
    file = next((file for file in _BEIR_NAMES if (folder / file).is_file()), None)
    if file is None:
        return None
    if not is_below(os.path.realpath(folder / file), os.path.realpath(folder)):
        raise SourceError(
            f"{file} is a link that leads out of the folder.",
            where=name,
            do="Give the file that it leads to as the source.",
        )
    return f"{name.rstrip('/')}/{file}"


def _is_beir(corpus: str) -> bool:
    with suppress(SourceError):
        return RecordFile(corpus, None, Fields(), MetadataReader({})).format == BEIR
    return False

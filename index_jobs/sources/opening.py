"""Where documents come from: folders and files of text, and files of records.

A source yields its documents in a fixed order, so that a build that was stopped can pass over what
it has. A document that cannot be read is yielded as the SourceError it is: the build decides
whether to stop.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from arag_search.corpus import SHARD_BITS, Document
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.anserini import LuceneIndexFolder, is_lucene_index
from index_jobs.sources.arrays import array_records
from index_jobs.sources.collections import Beir, Dpr, Kilt
from index_jobs.sources.folder import folder_entries
from index_jobs.sources.formats import (
    ALREADY_CHUNKED,
    SKIP,
    AragChunks,
    Documents,
    Fields,
    Format,
    GraphragBench,
    Passages,
    RecordFormat,
    checked_id,
    clean,
    title_of,
)
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.recognition import beir_corpus, is_beir, look_at
from index_jobs.sources.records import CorpusFile, line_records, readable
from index_jobs.sources.rows import row_records

TEXT_ENDINGS = (".txt", ".md")
MAX_SOURCES = 1 << SHARD_BITS

Entry = tuple[int, Document | SourceError]
"""How many records have been read with this one, and the document or what is wrong with it."""


class Source(Protocol):
    """One SOURCE of a build."""

    name: str
    """As the caller wrote it."""

    format: Format
    recognised: bool
    """Whether the format was found by looking, not given."""

    size: int
    """Bytes on disk."""

    left_out: Mapping[str, int]
    """Files that are not text, by ending, and what is no file, by what it is (see folder.py)."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        ...

    def signature(self) -> dict[str, Any]:
        """What changes when the source does: name, size and times."""
        ...

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        """The documents after the first ``skip`` records."""
        ...


def open_sources(
    names: Sequence[str],
    format: Format | None,
    fields: Fields,
    metadata: MetadataReader,
) -> list[Source]:
    """Look at every source. ``format`` None recognises each by its beginning.

    Raises SourceError for one that cannot be read as what it is, ArgumentError for none at all, the
    same one twice, or too many.
    """
    check_names(names)
    return [open_source(name, format, fields, metadata) for name in names]


def check_names(names: Sequence[str]) -> None:
    """Raise ArgumentError for no source at all, the same one twice, or too many."""
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
    """Return whether all sources are pre-chunked. Raises SourceError where only some are."""
    formats = {source.format for source in sources}
    if formats & ALREADY_CHUNKED and formats - ALREADY_CHUNKED:
        raise SourceError(
            "Pre-chunked passages and documents cannot be in one index.",
            where=", ".join(f"{source.name} ({source.format})" for source in sources[:5]),
            do="Build an index for each.",
        )
    return bool(formats & ALREADY_CHUNKED)


def open_source(
    name: str, format: Format | None, fields: Fields, metadata: MetadataReader
) -> Source:
    """Look at one source; see ``open_sources``."""
    path = Path(name)
    if path.is_dir():
        return _open_folder(name, path, format, fields, metadata)
    if format == "anserini":
        raise SourceError(
            "A file cannot be read as anserini.",
            where=name,
            allowed="the folder of a Lucene index, in which there is a file segments_...",
        )
    if format == "text" or (format is None and path.suffix.lower() in TEXT_ENDINGS):
        return TextFile(name, recognised=format is None)
    return RecordFile(name, format, fields, metadata)


def _open_folder(
    name: str, path: Path, format: Format | None, fields: Fields, metadata: MetadataReader
) -> Source:
    if format == "anserini" or (format is None and is_lucene_index(path)):
        return LuceneIndexFolder(name, fields, metadata, recognised=format is None)
    corpus = beir_corpus(name, path) if format in (None, "beir") else None
    if corpus and (format == "beir" or is_beir(corpus)):
        return RecordFile(corpus, "beir", fields, metadata, recognised=format is None)
    if format in (None, "text"):
        return TextFolder(name, recognised=format is None)
    raise SourceError(
        f"A folder cannot be read as {format}."
        if format != "beir"
        else "There is no corpus.jsonl in the folder.",
        where=name,
        allowed="--format text or auto for a folder of .txt and .md files, beir for one with"
        " corpus.jsonl, anserini for a Lucene index",
        do="Give the files themselves as sources.",
    )


# Text


class TextFolder:
    """The .txt and .md files below a folder, in the order of their relative paths.

    What is no file of the folder, such as a link that leads out of it, is counted as left out.
    """

    format: Format = "text"

    def __init__(self, name: str, *, recognised: bool) -> None:
        self.name = name
        self.recognised = recognised
        self.bytes_read = 0
        self._root = Path(name)
        left_out: dict[str, int] = {}
        self.size = int(self._look(left_out)["size"])
        self.left_out: Mapping[str, int] = left_out

    def signature(self) -> dict[str, Any]:
        return self._look({})

    def _look(self, left_out: dict[str, int]) -> dict[str, Any]:
        digest = hashlib.sha256()
        files = size = 0
        for relative, entry, not_file in folder_entries(self.name, self._root):
            ending = os.path.splitext(entry.name)[1].lower()
            if not_file or ending not in TEXT_ENDINGS:
                shown = not_file or ending or "without ending"
                left_out[shown] = left_out.get(shown, 0) + 1
                continue
            with readable(f"{self.name}/{relative}"):
                status = entry.stat()
            files += 1
            size += status.st_size
            line = f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
        return {
            "source": os.path.realpath(self.name),
            "files": files,
            "size": size,
            "digest": digest.hexdigest(),
        }

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        number = 0
        self.bytes_read = 0
        for relative, entry, not_file in folder_entries(self.name, self._root):
            if not_file or os.path.splitext(entry.name)[1].lower() not in TEXT_ENDINGS:
                continue
            number += 1
            if number > skip:
                yield number, _text_document(Path(entry.path), relative, f"{self.name}/{relative}")
            with readable(f"{self.name}/{relative}"):
                self.bytes_read += entry.stat().st_size


class TextFile:
    """One file of text, which is one document."""

    format: Format = "text"
    left_out: Mapping[str, int] = {}

    def __init__(self, name: str, *, recognised: bool) -> None:
        self.name = name
        self.recognised = recognised
        self.bytes_read = 0
        self.size = int(self.signature()["size"])

    def signature(self) -> dict[str, Any]:
        return _file_signature(self.name)

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        if not skip:
            yield 1, _text_document(Path(self.name), Path(self.name).name, self.name)
        self.bytes_read = self.size


def _text_document(path: Path, relative: str, where: str) -> Document | SourceError:
    try:
        identifier = checked_id(relative, where)
        with readable(where):
            data = path.read_bytes()
        text = clean(data.decode("utf-8-sig"), "text", where)
        title = title_of(_heading(text) or path.stem, "title", where)
    except UnicodeDecodeError as error:
        return SourceError(
            "The file is not UTF-8.",
            where=f"{where}, byte {error.start + 1}",
            allowed="text in UTF-8, with or without a byte order mark",
            do=f"Convert it. {SKIP}",
        )
    except SourceError as error:
        return error
    return Document(identifier, title, text, where=where)


def _heading(text: str) -> str:
    """The first Markdown heading (``# ...``) outside of code and front matter, or nothing."""
    fence = "---" if text.startswith("---\n") else ""
    for number, line in enumerate(text.splitlines()):
        if fence:
            if number and line.startswith(fence):
                fence = ""
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif line.startswith("#"):
            marks = len(line) - len(line.lstrip("#"))
            rest = line[marks:]
            if marks <= 6 and rest[:1].isspace() and (heading := rest.strip().rstrip("#").strip()):
                return heading
    return ""


# Records


class RecordFile:
    """A file of records: JSON lines, a JSON array, or rows with tabs.

    ``recognised`` True: the format was found by looking at more than the file.
    """

    left_out: Mapping[str, int] = {}

    def __init__(
        self,
        name: str,
        format: Format | None,
        fields: Fields,
        metadata: MetadataReader,
        *,
        recognised: bool = False,
    ) -> None:
        self.name = name
        self._path = Path(name)
        self._fields = fields
        self._metadata = metadata
        self._file: CorpusFile | None = None
        self.size = int(self.signature()["size"])
        self.recognised = recognised or format is None
        with CorpusFile(self._path, name) as file:
            found = look_at(file, format, fields)
        self._found = found
        self.format: Format = found.format

    @property
    def bytes_read(self) -> int:
        return self._file.bytes_read if self._file else 0

    def signature(self) -> dict[str, Any]:
        return _file_signature(self.name)

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        format = self._record_format()
        place = "item" if self._found.layout == "array" else "line"
        with CorpusFile(self._path, self.name) as file:
            self._file = file
            match self._found.layout:
                case "array":
                    records = array_records(file, skip, format.pass_over)
                case "lines":
                    records = line_records(file, skip)
                case "rows":
                    records = row_records(file, self._found.columns, skip)
            for number, record in records:
                if isinstance(record, SourceError):
                    yield number, record
                    continue
                try:
                    document = format.document(record, number, f"{self.name}, {place} {number}")
                except SourceError as error:
                    yield number, error
                else:
                    yield number, document

    def _record_format(self) -> RecordFormat:
        given = _stem(self._path), self._fields, self._metadata
        match self.format:
            case "passages":
                return Passages(*given)
            case "arag-chunks":
                return AragChunks()
            case "graphrag-bench":
                return GraphragBench(self._metadata)
            case "kilt":
                return Kilt(*given)
            case "dpr":
                return Dpr(*given)
            case "beir":
                return Beir(*given)
            case _:
                return Documents(*given)


def _stem(path: Path) -> str:
    """The name without ``.gz`` and without the ending before it."""
    name = path.name.removesuffix(".gz")
    return Path(name).stem


def _file_signature(name: str) -> dict[str, Any]:
    with readable(name):
        status = os.stat(name)
    return {
        "source": os.path.realpath(name),
        "size": status.st_size,
        "modified": status.st_mtime_ns,
    }

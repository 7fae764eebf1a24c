"""Files of records: JSON lines, a JSON array, or rows with tabs, in a format that is detected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.lines.files import (
    COMPRESSED,
    USUAL_COLUMNS,
    CorpusFile,
    Fields,
    array_records,
    file_signature,
    header_of,
    line_records,
    record_places,
    row_records,
)
from index_jobs.sources.lines.formats import Layout, converted
from index_jobs.sources.lines.stdin import SpooledInput
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import FORMATS, RECORDS, Format
from index_jobs.sources.source import RecordSource, SourcePart

LOOKED_AT_BYTES = 1 << 16
"""How much of a file is examined to detect its format."""


class RecordFile(RecordSource):
    """A file of records: JSON lines, a JSON array, or rows with tabs.

    ``recognised`` is true if the format was detected, even if from the folder of the file.
    """

    def __init__(
        self,
        name: str,
        format: Format | None,
        fields: Fields,
        metadata: MetadataReader,
        *,
        recognised: bool = False,
        spool: SpooledInput | None = None,
    ) -> None:
        """``spool`` is standard input, if that is the source; ``name`` then names it."""
        self.name = name
        self._spool = spool
        self._where = spool.where if spool else name
        self._path = spool.path if spool else Path(name)
        self._fields = fields
        self._metadata = metadata
        self._file: CorpusFile | None = None
        self._place = self._lines_before = 0
        self._last: int | None = None
        self.size = int(self.signature()["size"])
        self.recognised = recognised or format is None
        with CorpusFile(self._path, self._where) as file:
            self._detected = _detect_format(file, format, fields)
        self.format: Format = self._detected.format

    @property
    def bytes_read(self) -> int:
        return self._file.bytes_read if self._file else 0

    def signature(self) -> dict[str, Any]:
        return self._spool.signature() if self._spool else file_signature(self.name)

    def documents(self, skip: int = 0) -> Iterator[tuple[int, Document | SourceError]]:
        stem = self._spool.id if self._spool else _stem(self._path)
        format = RECORDS[self.format](stem, self._fields, self._metadata)
        place = "item" if self._detected.layout == "array" else "line"
        with CorpusFile(self._path, self._where) as file:
            self._file = file
            if self._place:
                file.stream.seek(self._place)
            match self._detected.layout:
                case "array":
                    records = array_records(file, skip, format.pass_over)
                case "lines":
                    records = line_records(file, skip, self._lines_before)
                case "rows":
                    columns = self._detected.columns
                    records = row_records(file, columns, skip, self._lines_before)
            if (last := self._last) is not None:
                records = takewhile(lambda record: record[0] <= last, records)
            for number, entry in converted(records, format, f"{self._where}, {place}"):
                if isinstance(entry, SourceError):
                    self.damaged = ("",)
                yield number, entry

    def parts(self, position: int, entries: int, most_bytes: int) -> Iterator[SourcePart]:
        """See Source. An array and a compressed file are not divided."""
        part = copy(self)
        part._path, part._file = self._path.absolute(), None
        detected = self._detected
        with CorpusFile(self._path, self._where) as file:
            if detected.layout == "array" or file.is_compressed:
                yield SourcePart.rest(part, position, entries)
                return
            rows = detected.layout == "rows"
            header = None
            if rows and detected.columns is None:
                header = header_of(file, _needed_columns(self._fields))
            first, count = position, 0
            last = 0
            for number, place in record_places(file, rows=rows, header=header is not None):
                if number <= position:
                    continue
                if not count:
                    part = part._beginning(place, number - 1, header)
                elif place - part._place >= most_bytes:
                    part._last = last
                    yield SourcePart(part, first, entries, last, entries + count, place)
                    part = part._beginning(place, number - 1, header)
                    first, entries, count = last, entries + count, 0
                count += 1
                last = number
            yield SourcePart.rest(part, first, entries)

    def _beginning(self, place: int, before: int, header: Sequence[str] | None) -> RecordFile:
        part = copy(self)
        part._place, part._lines_before, part._last = place, before, None
        if place and header is not None:
            part._detected = replace(self._detected, columns=header)
        return part


def _stem(path: Path) -> str:
    """Return the name without the ending of compression and the one before it."""
    return Path(path.stem).stem if path.suffix in COMPRESSED else path.stem


# Detection


@dataclass(frozen=True, slots=True)
class _Detected:
    """The layout and format of a file. ``columns`` names the columns of rows if the first line does
    not."""

    layout: Layout
    format: Format
    columns: Sequence[str] | None = None


def _detect_format(file: CorpusFile, format: Format | None, fields: Fields) -> _Detected:
    """Return the layout and format of a file; ``format`` None detects it from the first record.

    Raises SourceError for a file that cannot be read, or cannot be read in this format.
    """
    header = header_of(file, _needed_columns(fields))
    if format is None and header:
        format = next(name for name, record in RECORDS.items() if record.layout == "rows")
    if format is not None and RECORDS[format].layout == "rows":
        return _Detected("rows", format, None if header else _columns(file, fields))
    is_array, record = _beginning(file)
    layout: Layout = "array" if is_array else "lines"
    detected = format or _detect_record(record, file.name, fields)
    if RECORDS[detected].layout not in (None, layout):
        raise SourceError(
            "The file is not a JSON array.",
            where=file.name,
            allowed='for --format arag-chunks: ["0:text", "1:text", ...]',
            do="Use `format=documents` or `format=passages` for JSON lines.",
        )
    return _Detected(layout, detected)


def holds_passages(path: Path, name: str, fields: Fields) -> bool:
    """Return whether a file of rows names the columns of passages in its first line, with tabs
    between them. Raises SourceError."""
    with CorpusFile(path, name) as file:
        return header_of(file, _needed_columns(fields)) is not None


def _needed_columns(fields: Fields) -> tuple[str, str]:
    return fields.id_field or "id", fields.text_field or "text"


def _columns(file: CorpusFile, fields: Fields) -> Sequence[str]:
    first = file.first_bytes(LOOKED_AT_BYTES)
    names = ", ".join(_needed_columns(fields))
    line = first.partition(b"\n")[0]
    if not first.strip():
        raise SourceError("The file is empty.", where=file.name)
    if line.count(b"\t") == len(USUAL_COLUMNS) - 1 and fields == Fields():
        return USUAL_COLUMNS
    raise SourceError(
        f"The first line does not name the columns {names}.",
        where=f"{file.name}, line 1",
        allowed=f"{', '.join(USUAL_COLUMNS)} with tabs between them, or three columns in this"
        " order without names",
        do="Name other columns with `id_field`, `text_field` and `title_field`.",
    )


def _beginning(file: CorpusFile) -> tuple[bool, Any]:
    first = file.first_bytes(LOOKED_AT_BYTES).lstrip()
    if first.startswith(b"["):
        items = (item for _, item in array_records(file, 0, lambda _: None))
        return True, next((item for item in items if not isinstance(item, SourceError)), None)
    if not first.startswith(b"{"):
        shown = " ".join(first[:20].decode("utf-8", "replace").split())
        raise SourceError(
            f'The format is not recognised: the file begins with "{shown}".'
            if shown
            else "The file is empty.",
            where=file.name,
            allowed="files (see `format`), JSON lines, a JSON array, or rows with tabs and a header"
            " (id, text, title); packed by gzip, bzip2, xz or zip too",
            do="To read the file as plain text, use `format=text`.",
        )
    problem: SourceError | None = None
    for number, record in line_records(file, 0):
        if not isinstance(record, SourceError):
            return False, record
        problem = problem or record
        if number >= 100:
            break
    raise SourceError(
        problem.what if problem else "The file is empty.",
        where=problem.where if problem else file.name,
        allowed="one JSON object a line, or a JSON array",
        do="Write each record on one line, or name the format with `format`.",
    )


def _detect_record(record: Any, where: str, fields: Fields) -> Format:
    """Return the format of a file with this first record. Raises SourceError if no format fits."""
    if isinstance(record, str):
        return "arag-chunks"
    if isinstance(record, dict):
        value = cast("dict[str, Any]", record)
        for name, format in reversed(RECORDS.items()):
            if format.recognises(value, fields):
                return name
        wanted = (
            f'no "{fields.text_field}"' if fields.text_field else 'neither "text" nor "sentences"'
        )
        raise SourceError(
            f"The format is not recognised: the first record has {wanted}.",
            where=where,
            allowed=f"one of the existing fields: {', '.join(value) or 'none'}",
            do="Name the field of the text with `text_field`, and the format with `format`: "
            f"{', '.join(FORMATS)}.",
        )
    what = "the array is empty" if record is None else "its items are neither strings nor objects"
    raise SourceError(
        f"The format is not recognised: {what}.",
        where=where,
        allowed="a JSON array of objects, or of passages of A-RAG",
        do=f"Name the format with `format`: {', '.join(FORMATS)}.",
    )

"""Tables whose rows are documents: CSV, TSV and Parquet, streamed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from html import unescape
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from statistics import median_high, mode
from typing import IO, Any, cast

from arag_search.errors import SourceError
from arag_search.system.options import values_of
from index_jobs.sources.converters.registry import PAGE, ConvertedDocument, ending_of, reading
from index_jobs.sources.encodings import stream_encoding
from index_jobs.sources.lines.files import (
    MAX_COLUMNS,
    MAX_LINE_BYTES,
    SKIP,
    CorpusFile,
    Fields,
    Record,
    line_records,
    readable,
    row_object,
    table_rows,
)

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_QUOTE = re.compile(r'(?:\A|(?<=[\t\r\n]))"')
_QUOTED_FIELD = re.compile(r'(?:\A|(?<=[\t\r\n]))"(?:[^"]|"")*"(?=[\t\r\n]|\Z)')
_VALUE = re.compile(
    r"(?P<year>1[5-9]\d\d|20\d\d)|(?P<whole>\d{1,9})"
    r"|(?P<number>[-+]?[$\u20ac\u00a3]?\d[\d.,' ]*(?:e[-+]?\d+)?\s?[%\u20ac$]?)"
    r"|(?P<date>\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ]\d{1,2}:\d\d\S*)?|\d{1,2}:\d\d(?::\d\d)?)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_NAME_CHARACTERS = 60
_ID_AND_TEXT = ("id", "text")
_SAMPLE_BYTES = 1 << 16
_SAMPLE_ROWS = 50
_BATCH_ROWS = 128
_BUFFER_BYTES = 1 << 20
_TABS = (".tsv", ".tab")
_WIDE_ENCODINGS = ("utf-16", "utf-32")


# Rows


class _RowConverter:
    """The conversion of the rows of one table.

    Raises SourceError if ``fields`` names a column that the table does not have.
    """

    def __init__(self, columns: Sequence[str], fields: Fields, where: str) -> None:
        self._fields = fields
        self._not_text = {fields.id_field, fields.title_field}
        for option, name in values_of(fields).items():
            if name is not None and name not in columns:
                raise SourceError(
                    f'There is no column "{name}".',
                    where=where,
                    allowed=f"one of the existing columns: {', '.join(columns)}",
                    do=f"Name another column with `{option}`.",
                )

    def document(
        self, row: Mapping[str, Any], number: int, where: str
    ) -> ConvertedDocument | SourceError | None:
        """Return the document of row ``number`` (from 1), its error, or None if all its cells are
        empty. An empty cell has no value."""
        values = {name: value for name, value in row.items() if value is not None and value != ""}
        if not values:
            return None
        fields = self._fields
        if fields.id_field is not None and not str(values.get(fields.id_field, "")).strip():
            return SourceError(
                f'The column "{fields.id_field}" is empty.',
                where=where,
                allowed="an id in every row",
                do=SKIP,
            )
        title = "" if fields.title_field is None else _shown(values.get(fields.title_field, ""))
        if fields.text_field is not None:
            text = _shown(values.get(fields.text_field, ""))
        else:
            shown = ((name, _shown(v)) for name, v in values.items() if name not in self._not_text)
            text = "\n".join(f"{name}: {value}" for name, value in shown if value)
        if not text.strip() and not title.strip():
            return SourceError("The row has neither text nor title.", where=where, do=SKIP)
        identifier = "" if fields.id_field is None else _shown(values[fields.id_field]).strip()
        return ConvertedDocument(str(number), title, text, values, identifier)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_shown, cast("list[object]", value)))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


# CSV


def convert_csv(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the rows of a table with commas, semicolons, tabs or vertical bars; in a file of TSV,
    with tabs. The first row names the columns, unless it has values as the others do. See
    Converter."""
    with CorpusFile(path, where) as file:
        with readable(where):
            encoding = stream_encoding(file.stream, where)
        beginning = file.first_bytes(_SAMPLE_BYTES)
        if encoding.startswith(_WIDE_ENCODINGS) or b"\n" not in beginning:
            file.stream = cast("IO[bytes]", _Transcoded(file.stream, encoding))
            encoding = "utf-8"
            beginning = file.first_bytes(_SAMPLE_BYTES)
        encoding = encoding.removesuffix("-sig")
        sample = beginning.decode(encoding, "replace")
        named = _SEPARATOR_LINE.match(sample)
        is_tsv = ending_of(where) in _TABS
        sign = "\t" if is_tsv else named[1] if named else _delimiter(sample)
        quotes = sign != "\t" or not _has_loose_quotes(sample)
        skipped = int(named is not None)
        first_rows = _first_rows(sample, sign, quotes)[skipped:]
        header, names = _header(first_rows)
        above = sum(bool(row) for line, row in first_rows if line < header)
        unread = {"lines above the header": above} if above else {}
        if names:
            unread[f"tables without names of columns, called {', '.join(names[:2])} ..."] = 1
        every = islice(table_rows(file, sign, encoding, quotes=quotes), skipped, None)
        rows = ((line, row) for line, row in every if line >= header and row)
        filled = (r for r in rows if isinstance(r[1], SourceError) or any(map(str.strip, r[1])))
        start, first = next(filled, (1, None))
        if first is None:
            raise SourceError(
                "The table is empty.", where=where, allowed="a first row that names the columns"
            )
        if isinstance(first, SourceError):
            raise first
        columns = _columns(names or first, f"{where}, line {start}")
        converter = _RowConverter(columns, fields, f"{where}, line {start}")
        for number, (line, row) in enumerate(chain([(start, first)] if names else [], rows), 1):
            place = f"{where}, line {line}"
            entry = row if isinstance(row, SourceError) else row_object(columns, row, place)
            if not isinstance(entry, SourceError):
                entry = converter.document(entry, number, place)
            if isinstance(entry, ConvertedDocument):
                entry, unread = entry._replace(unread=unread), {}
            if entry is not None:
                yield entry


def _first_rows(sample: str, delimiter: str, quotes: bool = True) -> list[tuple[int, list[str]]]:
    """Return the first rows, and the lines on which they begin."""
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, quoting=quoting)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    with suppress(csv.Error):
        for row in islice(reader, _SAMPLE_ROWS):
            rows.append((line, [value.strip() for value in row]))
            line = reader.line_num + 1
    return rows


def _delimiter(sample: str) -> str:
    """Return the delimiter that gives the most columns while most of the first rows have as many; a
    comma if there is none."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for _, row in _first_rows(sample, delimiter) if row]
        if len(widths) > 2:
            widths.pop()  # the sample may end in the middle of a row
        usual = mode(widths or [1])  # not the first: a title may stand above
        return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 1)

    return max(_DELIMITERS, key=fit)


def _has_loose_quotes(sample: str) -> bool:
    """Return whether fields begin with a quote that is part of their text, as in TSV without
    quoting (``"Big" Jim``)."""
    return len(_QUOTE.findall(sample)) > len(_QUOTED_FIELD.findall(sample))


def _header(rows: Sequence[tuple[int, list[str]]]) -> tuple[int, Sequence[str] | None]:
    """Return the line of the row that names the columns: the first one with a value in most of the
    columns that most rows have. Above it, spreadsheets have titles and empty rows. If it is a row
    of values like the others, return names for the columns as well."""
    width = mode([len(row) for _, row in rows if row] or [1])
    filled = [(at, 0 if len(row) == 1 < width else sum(map(bool, row))) for at, row in rows]
    usual = median_high([count for _, count in filled if count] or [1])
    header = next((at for at, count in filled if count and 2 * count >= usual), 1)
    first, *others = [row for at, row in rows if at >= header] or [[]]
    others = [row for row in others if len(row) == len(first)]
    return header, _names_for(first, others) if others and _is_record(first, others) else None


def _is_record(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds values. It does if it has a text too long for a name, or
    no word at all. It also does if it has a number or date in a column in which most others have
    one. A row of years or of numbers that follow each other names its columns, unless they stand
    below as well."""
    if any(len(value) > _NAME_CHARACTERS for value in first):
        return True
    if not any(character.isalpha() for value in first for character in value):
        return len(first) > 1 and bool(first[0])
    for at, value in enumerate(first):
        if kind := _kind_of(value):
            below = [_kind_of(row[at]) for row in others]
            beside = {str(int(value) - 1), str(int(value) + 1)} if kind == "whole" else set[str]()
            is_name = not beside.isdisjoint((*first[max(at - 1, 0) : at], *first[at + 1 : at + 2]))
            is_name |= kind == "year" and below.count(kind) * 2 < len(below)
            if not is_name and sum(map(bool, below)) * 2 > len(below):
                return True
    return False


def _kind_of(value: str) -> str:
    kind = _VALUE.fullmatch(value)
    return kind.lastgroup or "" if kind else ""


def _names_for(first: Sequence[str], others: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return ``id`` and ``text`` for two columns with unique words and texts, else numbers."""
    if len(first) == len(_ID_AND_TEXT):
        ids, texts = zip(first, *others, strict=True)
        are_ids = len(set(ids)) == len(ids) and not any(" " in id for id in ids)
        if are_ids and sum(len(_WORD.findall(text)) > 1 for text in texts) * 2 > len(texts):
            return _ID_AND_TEXT
    return [f"column {number}" for number in range(1, len(first) + 1)]


def _columns(row: Sequence[str], where: str) -> list[str]:
    """Return the names of the columns; those without a name get their number, and a repeated name
    gets the number of the repetition."""
    if len(row) > MAX_COLUMNS:
        raise SourceError(
            f"The table has {len(row):,} columns.", where=where, allowed=f"at most {MAX_COLUMNS:,}"
        )
    names: dict[str, None] = {}
    repetitions: Counter[str] = Counter()
    for number, given in enumerate(row, 1):
        name = unique = given.strip() or f"column {number}"
        while unique in names:
            repetitions[name] += 1
            unique = f"{name} ({repetitions[name] + 1})"
        names[unique] = None
    return list(names)


class _Transcoded:
    """A stream of text as UTF-8, whatever its encoding and its line ends. Sizes are characters."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        # A damaged character is replaced: nothing tells where the next one begins.
        self._text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")

    def readline(self, size: int) -> bytes:
        return self._text.readline(size).encode()

    def read(self, size: int) -> bytes:
        return self._text.read(size).encode()

    def seek(self, place: int) -> None:
        self._text.seek(place)

    def close(self) -> None:
        self._text.close()


# Lines of JSON, and files of wikiextractor

_PAGE = re.compile(r"^<doc (id=.*)>\s*?\n((?s:.*?))(?:</doc>|\Z)", re.MULTILINE)
_ATTRIBUTE = re.compile(r'\b(\w+)="(.{0,300}?)"(?=\s+\w+="|\s*\Z)')


def convert_lines(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the objects of a file of JSON lines, or the pages of one of wikiextractor: those with a
    text as documents, others as rows. See Converter."""
    text_field = fields.text_field or "text"
    with CorpusFile(path, where) as file:
        has_pages = file.first_bytes(len(PAGE)) == PAGE
        for number, record in _pages(file) if has_pages else line_records(file, 0):
            place = f"{where}, {'page' if has_pages else 'line'} {number}"
            if not isinstance(record, dict):
                is_bad = isinstance(record, SourceError)
                yield record if is_bad else SourceError("The line is no object.", where=place)
                continue
            row = cast("dict[str, Any]", record)
            used = fields
            if isinstance(row.get(text_field), str):
                title_field = fields.title_field or ("title" if "title" in row else None)
                used = replace(fields, text_field=text_field, title_field=title_field)
            try:
                if entry := _RowConverter([*row], used, place).document(row, number, place):
                    yield entry
            except SourceError as error:  # it lacks a field that the others have
                yield error


def _pages(file: CorpusFile) -> Iterator[Record]:
    """Yield the pages of a file of wikiextractor as objects, by their numbers. The title, which is
    the first line of a page too, is not part of its text."""
    with readable(file.name):
        text = file.stream.read(MAX_LINE_BYTES).decode("utf-8", "replace")
    for number, page in enumerate(_PAGE.finditer(text), 1):
        values = {name: unescape(value) for name, value in _ATTRIBUTE.findall(page[1])}
        lines = unescape(page[2]).strip() + "\n"
        yield number, values | {"text": lines.removeprefix(f"{values.get('title')}\n").strip()}


# Parquet


def convert_parquet(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the rows of a Parquet file. See Converter."""
    converter: _RowConverter | None = None
    for number, row in enumerate(parquet_rows(path, where), 1):
        converter = converter or _RowConverter([*row], fields, where)
        if entry := converter.document(row, number, f"{where}, row {number}"):
            yield entry


def parquet_rows(path: Path, where: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as objects with values of JSON, without columns of bytes, a
    batch in memory at a time. Raises SourceError for a file that cannot be read."""
    parquet: Any = import_module("pyarrow.parquet")
    with readable(where), path.open("rb"):
        pass
    with (
        reading("Parquet", where),
        parquet.ParquetFile(str(path), buffer_size=_BUFFER_BYTES) as file,
    ):
        types = ((field.name, str(field.type)) for field in file.schema_arrow)
        columns = [name for name, type in types if type not in ("binary", "large_binary")]
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            for row in zip(*map(_parquet_values, batch.columns), strict=True):
                yield dict(zip(batch.schema.names, row, strict=True))


def _parquet_values(column: Any) -> list[Any]:
    arrow: Any = import_module("pyarrow")
    kind = column.type
    if arrow.types.is_timestamp(kind) and kind.unit == "ns":  # Python has microseconds
        column = column.cast(arrow.timestamp("us", kind.tz), safe=False)
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    match value:
        case None | str() | bool() | int() | float():
            return value
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case list() | tuple():
            return [_plain(item) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {str(name): _plain(item) for name, item in items}
        case bytes() | bytearray() | memoryview():
            return None
        case _:
            return str(value)

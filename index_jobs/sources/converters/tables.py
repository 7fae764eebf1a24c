"""Tables whose rows are documents: CSV, TSV and Parquet, streamed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import median_high
from typing import IO, Any, cast

from arag_search.errors import SourceError
from arag_search.system.options import values_of
from index_jobs.sources.converters.registry import ConvertedDocument, reading
from index_jobs.sources.encodings import stream_encoding
from index_jobs.sources.lines.files import (
    MAX_COLUMNS,
    SKIP,
    CorpusFile,
    Fields,
    readable,
    row_object,
    table_rows,
)

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_QUOTE = re.compile(r'(?:\A|(?<=[\t\r\n]))"')
_QUOTED_FIELD = re.compile(r'(?:\A|(?<=[\t\r\n]))"(?:[^"]|"")*"(?=[\t\r\n]|\Z)')
_SAMPLE_BYTES = 1 << 16
_SAMPLE_ROWS = 50
_BATCH_ROWS = 128
_BUFFER_BYTES = 1 << 20
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
    """Yield the rows of a table with commas, semicolons, tabs or vertical bars. The first row names
    the columns. See Converter."""
    return _delimited(path, where, fields, None)


def convert_tsv(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the rows of a table with tabs. The first row names the columns. See Converter."""
    return _delimited(path, where, fields, "\t")


def _delimited(
    path: Path, where: str, fields: Fields, delimiter: str | None
) -> Iterator[ConvertedDocument | SourceError]:
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
        sign = delimiter or (named[1] if named else _delimiter(sample))
        quotes = sign != "\t" or not _has_loose_quotes(sample)
        rows = table_rows(file, sign, encoding, quotes=quotes)
        header_line = _header_line(sample, sign, quotes, skip=named is not None)
        columns: Sequence[str] = ()
        converter: _RowConverter | None = None
        number = above = 0
        for line, row in rows:
            place = f"{where}, line {line}"
            if line < header_line:
                above += bool(row) and not (named and line == 1)
                continue
            if converter is None:
                if isinstance(row, SourceError):
                    raise row
                if any(name.strip() for name in row):
                    columns = _columns(row, place)
                    converter = _RowConverter(columns, fields, place)
                continue
            if not row:
                continue
            number += 1
            values = row if isinstance(row, SourceError) else row_object(columns, row, place)
            if not isinstance(values, SourceError):
                values = converter.document(values, number, place)
            if isinstance(values, ConvertedDocument) and above:
                values = values._replace(unread={"lines above the header": above})
                above = 0
            if values is not None:
                yield values
        if converter is None:
            raise SourceError(
                "The table is empty.", where=where, allowed="a first row that names the columns"
            )


def _delimiter(sample: str) -> str:
    """Return the delimiter that gives the most columns while all of the first rows have as many as
    the header; a comma if there is none."""
    widths = {delimiter: _width(sample, delimiter) for delimiter in _DELIMITERS}
    return max(_DELIMITERS, key=lambda delimiter: widths[delimiter])


def _width(sample: str, delimiter: str) -> tuple[float, int]:
    widths: list[int] = []
    try:
        for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
            widths += [len(row)] if row else []
            if len(widths) > _SAMPLE_ROWS:
                break
    except csv.Error:
        pass
    if len(widths) > 2:
        widths.pop()  # the sample may end in the middle of a row
    if not widths or widths[0] == 1:
        return 0.0, 1
    return widths.count(widths[0]) / len(widths), widths[0]


def _has_loose_quotes(sample: str) -> bool:
    """Return whether fields begin with a quote that is part of their text, as in TSV without
    quoting (``"Big" Jim``)."""
    return len(_QUOTE.findall(sample)) > len(_QUOTED_FIELD.findall(sample))


def _header_line(sample: str, delimiter: str, quotes: bool, *, skip: bool) -> int:
    """Return the line of the row that names the columns: the first one with a value in most of the
    columns that most rows have. Above it, spreadsheets have titles and empty rows."""
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    lines = io.StringIO(sample, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    filled: list[tuple[int, int]] = []
    line = 1
    try:
        for row in islice(reader, _SAMPLE_ROWS):
            if not (skip and line == 1):
                filled.append((line, sum(map(bool, map(str.strip, row)))))
            line = reader.line_num + 1
    except csv.Error:
        pass
    usual = median_high([count for _, count in filled if count] or [1])
    return next((line for line, count in filled if count and 2 * count >= usual), 1 + skip)


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
    is_pivot = not row[0].strip() and len(row) > 1
    if not is_pivot and not any(character.isalpha() for name in row for character in name):
        raise SourceError(
            "The first row does not name the columns: it holds no names.",
            where=where,
            allowed="a first row with a name for each column",
            do="Add such a row.",
        )
    return list(names)


class _Transcoded:
    """A stream of text as lines of UTF-8, whatever its encoding and its line ends."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        # A damaged character is replaced: nothing tells where the next one begins.
        self._text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")

    def readline(self, size: int) -> bytes:
        """Return a line, or ``size`` characters of it."""
        return self._text.readline(size).encode()

    def read(self, size: int) -> bytes:
        """Return ``size`` characters."""
        return self._text.read(size).encode()

    def seek(self, place: int) -> None:
        """Go to the beginning."""
        self._text.seek(place)

    def close(self) -> None:
        """Close the stream."""
        self._text.close()


# Parquet

_PARQUET = "Parquet"


def convert_parquet(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the rows of a Parquet file. See Converter."""
    with reading(_PARQUET, where), _parquet_file(path) as file:
        columns = _parquet_columns(file)
        converter = _RowConverter(columns, fields, where)
        for number, row in enumerate(_parquet_rows(file, columns), 1):
            document = converter.document(row, number, f"{where}, row {number}")
            if document is not None:
                yield document


def parquet_rows(path: Path, where: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as objects with values of JSON, a batch in memory at a time.
    Raises SourceError for a file that cannot be read."""
    with readable(where), path.open("rb"):
        pass
    with reading(_PARQUET, where), _parquet_file(path) as file:
        yield from _parquet_rows(file, _parquet_columns(file))


def _parquet_file(path: Path) -> Any:
    parquet: Any = import_module("pyarrow.parquet")
    return parquet.ParquetFile(str(path), buffer_size=_BUFFER_BYTES)


def _parquet_columns(file: Any) -> list[str]:
    """Return the names of the columns but for those of bytes, which are not read."""
    binary = ("binary", "large_binary")
    return [field.name for field in file.schema_arrow if str(field.type) not in binary]


def _parquet_rows(file: Any, columns: list[str]) -> Iterator[dict[str, Any]]:
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

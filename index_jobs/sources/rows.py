"""Reading the rows of a delimited table with Python's csv module.

A quoted field may hold delimiters and line ends; a quote inside it is written twice. A row has the
number of the line on which it begins.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from arag_search.errors import SourceError
from index_jobs.sources.formats import SKIP
from index_jobs.sources.records import MAX_LINE_BYTES, CorpusFile, Record, read_line

USUAL_COLUMNS = ("id", "text", "title")


def header_of(file: CorpusFile, wanted: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of the columns if the first line holds the wanted ones, else None."""
    first, _, _ = file.first_bytes(1 << 16).partition(b"\n")
    if b"\t" not in first:
        return None
    names = next(csv.reader([first.decode("utf-8", "replace").rstrip("\r")], delimiter="\t"))
    return tuple(names) if set(wanted) <= set(names) else None


def row_records(file: CorpusFile, columns: Sequence[str] | None, skip: int) -> Iterator[Record]:
    """Yield the rows as objects, by the names of their columns.

    If ``columns`` is None, the first line names them. Rows that begin on the first ``skip`` lines
    and empty lines are skipped. A row that cannot be read is yielded as a SourceError. An unclosed
    quote raises SourceError, since no row after it can be recognised.
    """
    for number, row in table_rows(file):
        if isinstance(row, SourceError):
            if number > skip:
                yield number, row
        elif columns is None:
            columns = row
        elif row and number > skip:
            yield number, row_object(columns, row, f"{file.name}, line {number}")


def table_rows(
    file: CorpusFile, delimiter: str = "\t", encoding: str = "utf-8"
) -> Iterator[tuple[int, list[str] | SourceError]]:
    """Yield the fields of every row, and the number of the line (from 1) on which it begins; an
    empty line has no fields. See ``row_records``."""
    if csv.field_size_limit() < MAX_LINE_BYTES:
        csv.field_size_limit(MAX_LINE_BYTES)
    lines = _Lines(file, encoding)
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        number = lines.number + 1
        where = f"{file.name}, line {number}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except UnicodeDecodeError as error:
            if lines.number > number:
                where += f" to {lines.number}"
            row = SourceError(
                f"The row is not {encoding.upper()} (byte {error.start + 1} of line"
                f" {lines.number}).",
                where=where,
                do=SKIP,
            )
        except SourceError as error:
            row = error
        except csv.Error as error:
            if lines.number > number:
                raise _unclosed(where) from None
            reason = str(error).partition(" - ")[0]
            row = SourceError(f"The row cannot be read ({reason}).", where=where, do=SKIP)
        if lines.ended:
            raise _unclosed(where)
        yield number, row


def row_object(
    columns: Sequence[str], row: Sequence[str], where: str
) -> dict[str, str] | SourceError:
    """Return a row as an object, or the error of a row with a wrong number of fields."""
    if len(row) == len(columns):
        return dict(zip(columns, row, strict=True))
    return SourceError(
        f"The row has {len(row)} column{'s' * (len(row) != 1)}.",
        where=where,
        allowed=f"{len(columns)}: {', '.join(columns)}",
        do=f"Check its quotes. {SKIP}",
    )


def _unclosed(where: str) -> SourceError:
    return SourceError(
        "The row has a quote that is not closed.",
        where=where,
        allowed='fields in quotes, with "" for each quote inside',
        do="Correct the file; nothing after this can be read.",
    )


class _Lines:
    """The lines of a file of text; reading may continue after a bad line."""

    def __init__(self, file: CorpusFile, encoding: str) -> None:
        self._file = file
        self._encoding = encoding
        self.number = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = read_line(self._file, self.number + 1, "one row a line")
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if isinstance(line, SourceError):
            raise line
        is_marked = self.number == 1 and self._encoding == "utf-8"
        return line.decode("utf-8-sig" if is_marked else self._encoding)

"""Reading a corpus file, and its records: lines of JSON, the items of an array, or rows of a table.

Files may be compressed (gzip, bzip2, xz, or zip with one file), whatever their name. Memory does
not grow with the file. In a table, a quoted field may hold delimiters and line ends; a quote inside
it is written twice. A row has the number of the line on which it begins.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

import ijson
import orjson

from arag_search.errors import ArgumentError, SourceError
from arag_search.system.options import check, option, values_of
from arag_search.system.progress import counted

SKIP = "Fix it, or skip it with `skip_bad_lines=True`."
SKIP_FILE = "Fix the file, or skip it with `skip_bad_files=True`."

MAX_LINE_BYTES = 1 << 28
"""The longest line of a JSONL file, and item of an array (256 MiB)."""

MAX_ROW_BYTES = 1 << 24
"""The longest row of a table (16 MiB): each of its fields is held as a text of its own."""

MAX_COLUMNS = 1 << 14
"""The most columns of a table, as in a workbook."""

MAX_DEPTH = 1_000
"""How deep the values of an array may be nested."""

_SHOWN_COLUMNS = 50
_PIECE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"

Record = tuple[int, Any]
"""The number of a line or item (from 1), and its value or, if it is bad, a SourceError."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of the fields of a record. None stands for the usual name (id, title, text or
    sentences).

    If a name for the id is given, every record must have this field.
    """

    id_field: str | None = option(
        None, "Field of the document id.  [default: id, else made of file name and line]", "NAME"
    )
    title_field: str | None = option(None, "Field of the title.  [default: title]", "NAME")
    text_field: str | None = option(
        None, "Field of the text.  [default: text, for passages sentences]", "NAME"
    )

    def __post_init__(self) -> None:
        check(self)
        for name, value in values_of(self).items():
            if value == "":
                raise ArgumentError(f"`{name}` is empty.", allowed="a key of the records")


_UNPACKED: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"PK\3\4": zipfile.ZipFile,
}
"""By the first bytes of a compressed file, what unpacks it."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zip")


class CorpusFile(AbstractContextManager["CorpusFile"]):
    """A context manager that reads a file once, from its beginning.

    Messages call the file ``name``. ``bytes_read`` counts bytes on disk, before decompression.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        with readable(name), ExitStack() as opened:
            self._raw = opened.enter_context(path.open("rb"))
            beginning = self._raw.read(max(map(len, _UNPACKED)))
            self._raw.seek(0)
            mark = next(filter(beginning.startswith, _UNPACKED), b"")
            stream = _UNPACKED[mark](self._raw) if mark else self._raw
            is_archive = isinstance(stream, zipfile.ZipFile)
            self.stream: IO[bytes] = _only_file(stream, name) if is_archive else stream
            opened.pop_all()
        self.is_compressed = bool(mark)

    @property
    def bytes_read(self) -> int:
        return 0 if self._raw.closed else self._raw.tell()

    def first_bytes(self, size: int) -> bytes:
        """Return the first bytes without a byte order mark, and rewind the file."""
        with readable(self.name):
            beginning = self.stream.read(size)
            self.stream.seek(0)
        return beginning.removeprefix(_BOM)

    def close(self) -> None:
        self.stream.close()
        self._raw.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def _only_file(archive: zipfile.ZipFile, where: str) -> IO[bytes]:
    names = archive.namelist()  # with folders, and what macOS adds
    files = [name for name in names if not (name.endswith("/") or name.startswith("__MACOSX/"))]
    if len(files) != 1:
        raise SourceError(
            f"The archive holds {counted(len(files), 'file')}.",
            where=where,
            allowed="an archive with one file",
            do="Unpack it, and give the folder.",
        )
    try:
        return archive.open(files[0])
    except (RuntimeError, NotImplementedError) as error:  # a password, or a method of its own
        raise zipfile.BadZipFile(str(error)) from None


def file_signature(name: str) -> dict[str, Any]:
    """Return a value that changes when the file changes: its path, size and modification time.
    Raises SourceError."""
    with readable(name):
        status = os.stat(name)
    return {
        "source": os.path.abspath(name),
        "size": status.st_size,
        "modified": status.st_mtime_ns,
    }


class readable(AbstractContextManager[None]):
    """A context manager that turns an error from reading a file into a SourceError that names the
    file."""

    # It is entered several times for every file of a folder; a generator takes four times as long.
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        match error:
            case FileNotFoundError() | NotADirectoryError():
                raise SourceError(
                    f'No such file or folder: "{self._name}".',
                    where=os.path.abspath(self._name),
                    do="Check the name, and whether its disk is mounted.",
                ) from None
            case (
                EOFError()
                | zlib.error()
                | gzip.BadGzipFile()
                | lzma.LZMAError()
                | zipfile.BadZipFile()
            ):
                raise SourceError(
                    f"The compressed file is damaged ({error}).",
                    where=self._name,
                    do="Fetch it again.",
                ) from error
            case OSError():
                what = "folder" if self._name.endswith("/") else "file"
                raise SourceError(
                    f"The {what} cannot be read ({error.strerror}).", where=self._name
                ) from error
            case _:
                return


def line_records(file: CorpusFile, skip: int, before: int = 0) -> Iterator[Record]:
    """Yield the values of a JSONL file; blank lines are numbered but not yielded.

    The first ``skip`` lines are skipped without parsing. A line that is not JSON is yielded as a
    SourceError. The file is at the line after the first ``before``.
    """
    for number, line in _numbered_lines(file, before):
        if line and number > skip:
            is_bad = isinstance(line, SourceError)
            yield number, line if is_bad else _parsed(line, f"{file.name}, line {number}")


def _numbered_lines(file: CorpusFile, before: int = 0) -> Iterator[tuple[int, bytes | SourceError]]:
    """Yield the lines with their numbers; blank ones are empty. See ``line_records``."""
    number = before
    while line := read_line(file, number + 1, "JSON lines: one record a line"):
        number += 1
        if isinstance(line, bytes):
            line = line.removeprefix(_BOM) if number == 1 else line
            line = b"" if line.isspace() else line
        yield number, line


def record_places(file: CorpusFile, *, rows: bool, header: bool) -> Iterator[tuple[int, int]]:
    """Yield the number of the line on which each record begins, and a place in bytes from which it
    can be read. ``rows`` says whether the records are rows of a table, the first of which may be
    the ``header``. Raises SourceError for a quote that is not closed."""
    place = 0
    for number, record in table_rows(file) if rows else _numbered_lines(file):
        is_header, header = header, False
        if record and not is_header:
            yield number, place
        place = file.stream.tell()


def read_line(
    file: CorpusFile, number: int, allowed: str, most: int | None = None
) -> bytes | SourceError:
    """Return the next line with its line end; it is empty at the end of the file. A line that is
    too long is read to its end, and a SourceError is returned for it."""
    with readable(file.name):
        most = most or MAX_LINE_BYTES
        line = file.stream.readline(most)
        if len(line) < most or line.endswith(b"\n"):
            return line
        del line
        while (rest := file.stream.readline(_PIECE_BYTES)) and not rest.endswith(b"\n"):
            pass
    return SourceError(
        f"The line is longer than {most >> 20} MiB.",
        where=f"{file.name}, line {number}",
        allowed=allowed,
        do=SKIP,
    )


def _parsed(line: bytes, where: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        reason = _reason(error, line)
        return SourceError(f"The line is not JSON ({reason}).", where=where, do=SKIP)


def _reason(error: orjson.JSONDecodeError, line: bytes) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"not UTF-8 at byte {broken.start + 1} of the line"
    return f"{error.msg}, column {min(error.pos, len(line.rstrip())) + 1}"


def array_records(
    file: CorpusFile, skip: int, pass_over: Callable[[Any], None]
) -> Iterator[Record]:
    """Yield the items of a JSON array, numbered from 1.

    The first ``skip`` items are passed to ``pass_over`` instead of being yielded. Raises
    SourceError where the rest of the array cannot be read.
    """
    number = 0
    try:
        with readable(file.name):
            for item in _items(_Bounded(file)):
                number += 1
                if number > skip:
                    yield number, item
                else:
                    pass_over(item)
    except ijson.JSONError as error:
        reason = str(error).removeprefix("b'").split("\n")[0].split("\\n")[0]
        raise _unreadable(f"The array is not JSON ({reason}).", file, number) from error
    except _BoundError as error:
        raise _unreadable(str(error), file, number) from None


def _unreadable(what: str, file: CorpusFile, number: int) -> SourceError:
    return SourceError(
        what,
        where=f"{file.name}, after item {number}",
        do="Correct the file; nothing after this can be read.",
    )


class _BoundError(Exception):
    """An item that is too long, or nested too deeply."""


class _Bounded:
    """A reader of a file, which bounds the bytes between two calls of ``begin_item``."""

    def __init__(self, file: CorpusFile) -> None:
        file.stream.seek(len(_BOM) if file.stream.read(len(_BOM)) == _BOM else 0)
        self._stream = file.stream
        self._bytes = 0

    def read(self, size: int) -> bytes:
        block = self._stream.read(size)
        self._bytes += len(block)
        if self._bytes > MAX_LINE_BYTES:
            raise _BoundError(f"The item is longer than {MAX_LINE_BYTES >> 20} MiB.")
        return block

    def begin_item(self) -> None:
        self._bytes = 0


def _items(stream: _Bounded) -> Iterator[Any]:
    library = cast(Any, ijson)
    builder = library.ObjectBuilder()
    depth = 0
    for event, value in library.basic_parse(stream, use_float=True):
        begins = event in ("start_map", "start_array")
        depth += begins - (event in ("end_map", "end_array"))
        if depth > MAX_DEPTH:
            raise _BoundError(f"The item is nested more than {MAX_DEPTH:,} levels deep.")
        if depth == begins:  # the array itself
            continue
        builder.event(event, value)
        if depth == 1:
            yield builder.value
            builder = library.ObjectBuilder()
            stream.begin_item()


USUAL_COLUMNS = ("id", "text", "title")


def header_of(file: CorpusFile, wanted: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of the columns if the first line holds the wanted ones, else None."""
    first, _, _ = file.first_bytes(1 << 16).partition(b"\n")
    if b"\t" not in first:
        return None
    try:
        names = next(csv.reader([first.decode("utf-8", "replace").rstrip("\r")], delimiter="\t"))
    except csv.Error:  # a line that ends with a carriage return alone
        return None
    return tuple(names) if set(wanted) <= set(names) else None


def row_records(
    file: CorpusFile, columns: Sequence[str] | None, skip: int, before: int = 0
) -> Iterator[Record]:
    """Yield the rows as objects, by the names of their columns.

    If ``columns`` is None, the first line names them. Rows that begin on the first ``skip`` lines
    and empty lines are skipped. A row that cannot be read is yielded as a SourceError. An unclosed
    quote raises SourceError, since no row after it can be recognised. The file is at the line after
    the first ``before``.
    """
    for number, row in table_rows(file, before=before):
        is_bad = isinstance(row, SourceError)
        if columns is None and not is_bad:
            columns = row
        elif row and number > skip:
            place = f"{file.name}, line {number}"
            yield number, row if is_bad else row_object(columns or (), row, place)


def table_rows(
    file: CorpusFile,
    delimiter: str = "\t",
    encoding: str = "utf-8",
    *,
    quotes: bool = True,
    before: int = 0,
) -> Iterator[tuple[int, list[str] | SourceError]]:
    """Yield the fields of every row, and the number of the line (from 1) on which it begins; an
    empty line has no fields. Without ``quotes`` a quote is a character. See ``row_records``."""
    if csv.field_size_limit() < MAX_LINE_BYTES:
        csv.field_size_limit(MAX_LINE_BYTES)
    lines = _Lines(file, encoding, before)
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    while True:
        number = lines.number + 1
        where = f"{file.name}, line {number}"
        lines.row_bytes = 0
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
        allowed=f"{len(columns)}: {', '.join(columns[:_SHOWN_COLUMNS])}"
        + ", ..." * (len(columns) > _SHOWN_COLUMNS),
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

    def __init__(self, file: CorpusFile, encoding: str, before: int) -> None:
        self._file = file
        self._encoding = encoding
        self.number = before
        self.row_bytes = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = read_line(self._file, self.number + 1, "one row a line", MAX_ROW_BYTES)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if isinstance(line, SourceError):
            raise line
        self.row_bytes += len(line)
        if self.row_bytes > MAX_ROW_BYTES:
            raise csv.Error("too long")
        is_marked = self.number == 1 and self._encoding == "utf-8"
        return line.decode("utf-8-sig" if is_marked else self._encoding).replace("\0", " ")

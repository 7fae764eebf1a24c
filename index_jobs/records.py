"""The records of a corpus file, one at a time: lines of JSON, or the items of a JSON array.

Files may be compressed with gzip, whatever their name. Nothing here grows with the file: of an
array only one item is held at a time.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import ijson
import orjson

from arag_search.errors import SourceError
from index_jobs.formats import SKIP

MAX_LINE_BYTES = 1 << 28
"""The longest line of a JSONL file (256 MiB)."""

MAX_DEPTH = 100

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_KEY = re.compile(rb'"\s*:')
_OVERLAP = 12  # bytes of two escapes
_HALF_CHARACTER = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)

Record = tuple[int, Any]
"""Number of the line or item (from 1), and its value or the SourceError that it is."""


class CorpusFile:
    """A file that is read from its beginning, once; a context manager.

    ``name`` is what messages call it. ``bytes_read`` counts bytes of the file as it is on disk.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        with readable(name):
            self._raw = path.open("rb")
            compressed = self._raw.read(2) == _GZIP
            self._raw.seek(0)
        self.stream = (
            cast("IO[bytes]", gzip.GzipFile(fileobj=self._raw)) if compressed else self._raw
        )

    @property
    def bytes_read(self) -> int:
        return 0 if self._raw.closed else self._raw.tell()

    def first_bytes(self, size: int) -> bytes:
        """The beginning without a byte order mark; the file is then at its beginning again."""
        with readable(self.name):
            found = self.stream.read(size)
            self.stream.seek(0)
        return found.removeprefix(_BOM)

    def close(self) -> None:
        self.stream.close()
        self._raw.close()

    def __enter__(self) -> CorpusFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def readable(name: str) -> Generator[None]:
    """Turn what may happen to a file that is read into a SourceError that names it."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise SourceError(f"There is no file or folder {name}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"The compressed file is damaged ({error}).", where=name, do="Fetch it again."
        ) from error
    except OSError as error:
        raise SourceError(f"The file cannot be read ({error.strerror}).", where=name) from error


def line_records(file: CorpusFile, skip: int) -> Iterator[Record]:
    """The objects of a JSONL file; blank lines count but are left out.

    The first ``skip`` lines are passed over unread. A line that is not JSON is a SourceError.
    """
    number = 0
    read_line = file.stream.readline
    while True:
        with readable(file.name):
            line = read_line(MAX_LINE_BYTES)
        if not line:
            return
        number += 1
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise SourceError(
                f"The line is longer than {MAX_LINE_BYTES >> 20} MiB.",
                where=f"{file.name}, line {number}",
                allowed="JSON lines: one record a line",
            )
        if number <= skip:
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.isspace() and line:
            yield number, _parsed(line, f"{file.name}, line {number}")


def _parsed(line: bytes, where: str) -> Any:
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return SourceError(f"The line is not JSON ({_reason(error, line)}).", where=where, do=SKIP)
    # Every key is followed by a colon outside of strings, so an equal count rules out a second one.
    if line.startswith(b"{") and len(_KEY.findall(line)) > len(record):
        return _without_repeated_keys(line, record, where)
    return record


def _reason(error: orjson.JSONDecodeError, line: bytes) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"not UTF-8 at byte {broken.start + 1} of the line"
    return f"{error.msg}, column {min(error.pos, len(line.rstrip())) + 1}"


def _without_repeated_keys(line: bytes, record: Any, where: str) -> Any:
    import json

    repeated: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        repeated.extend(name for name in names if names.count(name) > 1)

    try:
        json.loads(line, object_pairs_hook=note)
    except RecursionError:
        return SourceError("The record is nested too deeply.", where=where, do=SKIP)
    return repeated_key(repeated[0], where) if repeated else record


def repeated_key(name: str, where: str) -> SourceError:
    """The problem of a record in which a key stands twice."""
    return SourceError(f'The key "{name}" stands twice in one object.', where=where, do=SKIP)


# Arrays


class _HalfCharacterError(Exception):
    """The file holds a lone surrogate, which the fast parser would replace silently."""


class _Watched:
    """Passes bytes through and raises where half a character may be among them."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._seen = b""

    def read(self, size: int = -1) -> bytes:
        block = self._read(size)
        seen = self._seen + block
        undecided = len(seen) - _OVERLAP if block else len(seen)
        match = _HALF_CHARACTER.search(seen)
        if match and match.start() < undecided:
            raise _HalfCharacterError
        self._seen = seen[-_OVERLAP:]
        return block


def array_records(
    file: CorpusFile, skip: int, pass_over: Callable[[Any], None]
) -> Iterator[Record]:
    """The items of a JSON array, read incrementally.

    ``pass_over`` gets the first ``skip`` items instead of the caller. What is not JSON ends the
    array: it raises SourceError, since nothing after it can be told apart.
    """
    number = 0
    file.stream.seek(3 if file.stream.read(3) == _BOM else 0)
    start = file.stream.tell()
    watched = cast("IO[bytes]", _Watched(file.stream.read))
    attempts = ((ijson, watched), (_slow_parser(), file.stream))
    for parser, stream in attempts:
        try:
            for found, item in enumerate(_items(file, parser, stream), start=1):
                if found <= number:
                    continue
                number = found
                if found > skip:
                    yield found, item
                else:
                    pass_over(item)
            return
        except _HalfCharacterError:
            file.stream.seek(start)


def _slow_parser() -> Any:
    from ijson.backends import python

    return python


def _items(file: CorpusFile, parser: Any, stream: IO[bytes]) -> Iterator[Any]:
    number = 0
    try:
        events: Iterator[tuple[str, Any]] = iter(parser.basic_parse(stream, use_float=True))
        with readable(file.name):
            event, value = next(events, ("nothing", None))
        if event != "start_array":
            raise SourceError("The file is not a JSON array.", where=file.name)
        while True:
            with readable(file.name):
                event, value = next(events, ("", None))
                if not event:
                    return
                if event == "end_array":
                    continue
                number += 1
                problems: list[SourceError] = []
                where = f"{file.name}, item {number}"
                item = _value(event, value, events, problems, where, 0)
            yield problems[0] if problems else item
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise SourceError(
            f"The file is not JSON from here on ({reason}).",
            where=f"{file.name}, after item {number}",
            do="Correct the file; nothing after this can be read.",
        ) from None


def _value(
    event: str,
    value: Any,
    events: Iterator[tuple[str, Any]],
    problems: list[SourceError],
    where: str,
    depth: int,
) -> Any:
    """The value that begins with this event."""
    if event not in ("start_map", "start_array"):
        return value
    if depth == MAX_DEPTH:
        raise SourceError(
            "The item is nested too deeply.", where=where, allowed=f"{MAX_DEPTH} levels"
        )
    if event == "start_array":
        items: list[Any] = []
        for inner, inner_value in events:
            if inner == "end_array":
                break
            items.append(_value(inner, inner_value, events, problems, where, depth + 1))
        return items
    result: dict[str, Any] = {}
    for inner, key in events:
        if inner == "end_map":
            break
        if key in result:
            problems.append(repeated_key(key, where))
        result[key] = _value(*next(events), events, problems, where, depth + 1)
    return result


def beginning(file: CorpusFile) -> tuple[bool, Any]:
    """Whether the file is an array, and its first record that can be read (None without one).

    Raises SourceError where the file begins with neither of ``[`` and ``{``.
    """
    first = file.first_bytes(1 << 16).lstrip()
    if first.startswith(b"["):
        for _, item in array_records(file, 0, lambda _: None):
            if not isinstance(item, SourceError):
                return True, item
        return True, None
    if not first.startswith(b"{"):
        shown = " ".join(first[:20].decode("utf-8", "replace").split())
        raise SourceError(
            f'The format is not recognised: the file begins with "{shown}".'
            if shown
            else "The file is empty.",
            where=file.name,
            allowed="a folder or file of .txt and .md, JSON lines, or a JSON array; with gzip too",
            do="For a text file with another ending say --format text.",
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
        do="Write each record on one line, or name the format with --format.",
    )

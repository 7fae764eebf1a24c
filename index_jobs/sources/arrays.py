"""Reading the items of a JSON array one at a time, so that a bad item does not hide the others.

The array is first split at its commas, looking only at strings and brackets; then each item is
parsed. An item that is not JSON is reported. If a bracket or a quote is missing in an item, the
next item is found where only an item can begin: at an object in place of a key, or at an object
that begins a line within a string. Only one item is in memory at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from arag_search.errors import SourceError
from index_jobs.sources.formats import SKIP
from index_jobs.sources.records import MAX_LINE_BYTES, CorpusFile, Record, parsed, readable

BLOCK_BYTES = 1 << 16

_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'(?:[^"\\\n]++|\\[^\n])*+')
_OBJECT = re.compile(rb"\s*+\{")
_OBJECT_ON_NEXT_LINE = re.compile(rb'\n[\s,]*+(?=\{\s*+")')
_LOOK_AHEAD = 64  # bytes behind a comma or the end of a line that tell whether an item begins there
_MAX_OPEN = 1 << 20
_OPENED_BY = {b"}": b"{", b"]": b"["}


def array_records(
    file: CorpusFile, skip: int, pass_over: Callable[[Any], None]
) -> Iterator[Record]:
    """Yield the items of a JSON array, numbered from 1. An item that is not JSON is yielded as a
    SourceError.

    The first ``skip`` items are passed to ``pass_over`` instead of being yielded. Raises
    SourceError if the array is not closed or is followed by something else.
    """
    for number, item in enumerate(_Cutter(file).items(), start=1):
        where = f"{file.name}, item {number}"
        record = item
        if not isinstance(item, SourceError):
            record = parsed(item, "item", where) if item else _nothing(where)
        if number > skip:
            yield number, record
        elif not isinstance(record, SourceError):
            pass_over(record)


def _nothing(where: str) -> SourceError:
    return SourceError("There is a comma, but no item.", where=where, do=SKIP)


class _Cutter:
    """A cutter that splits the bytes of an array into those of its items, without surrounding white
    space."""

    def __init__(self, file: CorpusFile) -> None:
        self._file = file
        self._buffer = b""
        self._start: int = 0  # where the item begins in the buffer
        self._end: int = 0  # where the item ends in the buffer
        self._at: int = 0  # the buffer has been examined up to here
        self._open: list[bytes] = []  # the open brackets within the item
        self._in_string = False
        self._all_read = False
        self._number = 0
        self._is_too_long = False

    def items(self) -> Iterator[bytes | SourceError]:
        self._enter()
        while True:
            event = self._scan()
            if event == "more":
                if self._all_read:
                    raise self._unreadable("The array is not closed: the file ends before that.")
                self._read()
                continue
            item = self._buffer[self._start : self._end].strip()
            if item or self._number or event == "next":
                self._number += 1
                yield self._too_long() if self._is_too_long else item
            if event == "last":
                break
            self._start = self._at
            self._open.clear()
            self._in_string = self._is_too_long = False
        self._check_rest()

    def _enter(self) -> None:
        """Skip the byte order mark and the opening bracket."""
        beginning = self._file.first_bytes(BLOCK_BYTES)
        if not beginning.lstrip().startswith(b"["):
            raise SourceError("The file is not a JSON array.", where=self._file.name)
        self._read()
        self._start = self._at = self._buffer.index(b"[") + 1

    def _check_rest(self) -> None:
        while True:
            if self._buffer[self._at :].strip():
                raise self._unreadable("There is more text after the end of the array.")
            if self._all_read:
                return
            self._start = self._at
            self._read()
            self._at = self._start

    def _too_long(self) -> SourceError:
        return SourceError(
            f"The item is longer than {MAX_LINE_BYTES >> 20} MiB.",
            where=f"{self._file.name}, item {self._number}",
            do=SKIP,
        )

    def _unreadable(self, what: str) -> SourceError:
        return SourceError(
            what,
            where=f"{self._file.name}, after item {self._number}",
            do="Correct the file; nothing after this can be read.",
        )

    def _read(self) -> None:
        """Read more into the buffer, and drop what precedes the item. For an item that is too long,
        drop all that was examined."""
        if self._at - self._start > MAX_LINE_BYTES:
            self._is_too_long = True
        if self._is_too_long:
            self._start = self._at
        rest = self._buffer[self._start :]
        # Read as much as the buffer holds, since the buffer is copied each time.
        with readable(self._file.name):
            block = self._file.stream.read(max(BLOCK_BYTES, len(rest)))
        self._buffer = rest + block
        self._at -= self._start
        self._start = 0
        self._all_read = not block

    def _scan(self) -> Literal["more", "next", "last"]:
        """Scan to the end of the item, or of the buffer."""
        buffer = self._buffer
        while True:
            if self._in_string:
                event = self._scan_string(buffer)
                if event:
                    return event
                continue
            mark = _OUTSIDE.search(buffer, self._at)
            if not mark:
                self._at = len(buffer)
                return "more"
            byte = mark[0]
            if byte == b"," and self._open and self._open[-1] == b"{":
                # A key follows here or, if the closing bracket is missing, the next item.
                if self._is_near_end(mark.end()):
                    self._at = mark.start()
                    return "more"
                if _OBJECT.match(buffer, mark.end()):
                    self._open.clear()
            self._at = mark.end()
            if byte == b'"':
                self._in_string = True
            elif byte in (b"{", b"["):
                if len(self._open) == _MAX_OPEN:
                    raise self._unreadable(f"An item has more than {_MAX_OPEN:,} open brackets.")
                self._open.append(byte)
            elif (byte == b"," and not self._open) or (byte == b"]" and not self._close(byte)):
                self._end = mark.start()
                return "next" if byte == b"," else "last"
            elif byte == b"}":
                self._close(byte)

    def _close(self, bracket: bytes) -> bool:
        """Close a bracket, and the brackets left open inside it. Return False if the item has not
        opened it."""
        opened = _OPENED_BY[bracket]
        if opened not in self._open:
            return False
        while self._open.pop() != opened:
            pass
        return True

    def _scan_string(self, buffer: bytes) -> Literal["more", "next", None]:
        """Scan within a string; return None if the string has ended or continues."""
        inside = _INSIDE.match(buffer, self._at)
        end: int = inside.end() if inside else self._at
        self._at = end
        here = buffer[end : end + 1]
        if here == b'"':
            self._in_string = False
        elif here != b"\n":
            if end + 1 >= len(buffer):  # the end, or half an escape
                return "more"
        elif self._is_near_end(end):
            return "more"
        elif item := _OBJECT_ON_NEXT_LINE.match(buffer, end):
            self._end = end
            self._at = item.end()
            return "next"
        self._at = end + 1
        return None

    def _is_near_end(self, place: int) -> bool:
        """Return whether the buffer is too short to see what follows."""
        return len(self._buffer) < place + _LOOK_AHEAD and not self._all_read

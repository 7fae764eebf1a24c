"""The items of a JSON array, one at a time, each by itself: a bad one does not hide the others.

The array is cut at its commas by strings and brackets alone, and each item is parsed afterwards.
An item that is not JSON is told as such; where a bracket or a quote is missing in it, the next
item is found by what can only begin one: an object where a key must stand, or at the beginning of
a line within a string. Only one item is held at a time.
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
    """Yield the items of a JSON array, numbered from 1; one that is not JSON is a SourceError.

    ``pass_over`` gets the first ``skip`` items instead of the caller. Raises SourceError where the
    array is not closed, or something follows it: nothing after that can be told apart.
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
    return SourceError("There is a comma, and no item.", where=where, do=SKIP)


class _Cutter:
    """Cuts the bytes of an array into those of its items, without white space around them."""

    def __init__(self, file: CorpusFile) -> None:
        self._file = file
        self._held = b""
        self._start: int = 0  # where the item begins in what is held
        self._end: int = 0  # where it ends
        self._at: int = 0  # what is before this has been looked at
        self._open: list[bytes] = []  # the brackets that are open within the item
        self._in_string = False
        self._all_read = False
        self._number = 0
        self._is_too_long = False

    def items(self) -> Iterator[bytes | SourceError]:
        self._enter()
        while True:
            event = self._look()
            if event == "more":
                if self._all_read:
                    raise self._unreadable("The array is not closed: the file ends before that.")
                self._read()
                continue
            item = self._held[self._start : self._end].strip()
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
        """Pass over the byte order mark and the opening bracket."""
        beginning = self._file.first_bytes(BLOCK_BYTES)
        if not beginning.lstrip().startswith(b"["):
            raise SourceError("The file is not a JSON array.", where=self._file.name)
        self._read()
        self._start = self._at = self._held.index(b"[") + 1

    def _check_rest(self) -> None:
        while True:
            if self._held[self._at :].strip():
                raise self._unreadable("There is more after the end of the array.")
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
        """Hold more, and let go what is before the item; of one that is too long, all that was
        looked at."""
        if self._at - self._start > MAX_LINE_BYTES:
            self._is_too_long = True
        if self._is_too_long:
            self._start = self._at
        kept = self._held[self._start :]
        # The more is held, the more is read, since what is held is copied each time.
        with readable(self._file.name):
            block = self._file.stream.read(max(BLOCK_BYTES, len(kept)))
        self._held = kept + block
        self._at -= self._start
        self._start = 0
        self._all_read = not block

    def _look(self) -> Literal["more", "next", "last"]:
        """Look on to the end of the item, or of what is held."""
        held = self._held
        while True:
            if self._in_string:
                event = self._look_in_string(held)
                if event:
                    return event
                continue
            mark = _OUTSIDE.search(held, self._at)
            if not mark:
                self._at = len(held)
                return "more"
            byte = mark[0]
            if byte == b"," and self._open and self._open[-1] == b"{":
                # A key follows here, or, where the bracket is missing, the next item.
                if self._is_near_end(mark.end()):
                    self._at = mark.start()
                    return "more"
                if _OBJECT.match(held, mark.end()):
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
        """Return whether it closes one that the item has opened; it closes those inside as well."""
        opened = _OPENED_BY[bracket]
        if opened not in self._open:
            return False
        while self._open.pop() != opened:
            pass
        return True

    def _look_in_string(self, held: bytes) -> Literal["more", "next", None]:
        """Look on in a string; None where it has ended or goes on."""
        inside = _INSIDE.match(held, self._at)
        end: int = inside.end() if inside else self._at
        self._at = end
        here = held[end : end + 1]
        if here == b'"':
            self._in_string = False
        elif here != b"\n":
            if end + 1 >= len(held):  # the end, or half an escape
                return "more"
        elif self._is_near_end(end):
            return "more"
        elif item := _OBJECT_ON_NEXT_LINE.match(held, end):
            self._end = end
            self._at = item.end()
            return "next"
        self._at = end + 1
        return None

    def _is_near_end(self, place: int) -> bool:
        """Return whether too little is held to see what follows."""
        return len(self._held) < place + _LOOK_AHEAD and not self._all_read

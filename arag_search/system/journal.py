"""Append-only files of JSON lines: records, recorded replies, verdicts.

Any thread or process may append whole lines. A last line without its end, which a crash has torn,
is cut off before the next line is written.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import orjson

from arag_search.errors import RunError
from arag_search.system.durable import full_disk_advice, open_plain, read_plain
from arag_search.system.lock import locked, try_lock

T_co = TypeVar("T_co", covariant=True)

_BLOCK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class LineKind(Generic[T_co]):
    """A kind of lines. ``noun`` is its word in messages. ``read`` reads a line, and raises
    JSONDecodeError or RunError for a line of another kind."""

    noun: str
    read: Callable[[bytes], T_co]

    def read_all(self, path: Path) -> tuple[list[T_co], int]:
        """Return what the lines of a file say, none if it is missing, and the size of a torn last
        line, which is left out. Raises RunError if it cannot be read, and for a line of another
        kind."""
        try:
            content = read_plain(path.resolve()) if path.exists() else b""
        except OSError as error:
            raise RunError(
                f"The {self.noun}s cannot be read ({error.strerror}).", where=str(path)
            ) from error
        lines = content.split(b"\n")
        torn = 0 if _is_json(lines[-1]) else len(lines.pop())
        values: list[T_co] = []
        for number, line in enumerate(lines, 1):
            try:
                values.append(self.read(line))
            except (orjson.JSONDecodeError, RunError) as error:
                is_json = isinstance(error, RunError)
                raise RunError(
                    error.what if is_json else f"A {self.noun} is not JSON ({error}).",
                    where=f"{path}, line {number}",
                    allowed=f"{self.noun}s as this version of arag-search writes them",
                    do="Delete the line, so that what it said is asked again, or name another "
                    "file.",
                ) from error
        return values, torn


class JsonLinesFile:
    """A file that lines of a kind are appended to; it is created if it is missing. Raises RunError
    if it cannot be written, which leaves it as it was."""

    def __init__(self, path: Path, kind: LineKind[object]) -> None:
        self.path = path
        self._noun = kind.noun
        self._threads = threading.Lock()
        self._is_claimed = False
        with self._writing():
            self._descriptor = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return os.fstat(self._descriptor).st_size

    def claim(self) -> bool:
        """Keep other processes from appending until ``close``. Return whether no other
        process has done so."""
        with self._threads:
            self._is_claimed = try_lock(self._descriptor)
            return self._is_claimed

    def repair(self) -> int:
        """Cut off a torn last line, and return how many bytes it had."""
        with self._writing(), self._locked():
            return self._cut_torn_line()

    def append(self, line: bytes) -> None:
        """Write a line, line end included, and wait until it is on disk."""
        with self._writing(), self._locked():
            self._cut_torn_line()
            size = self.size
            try:
                if os.write(self._descriptor, line) < len(line):
                    raise OSError(errno.ENOSPC, "the disk took only a part of it", str(self.path))
                os.fsync(self._descriptor)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise

    def close(self) -> None:
        """Close the file. May be called again."""
        with self._threads:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            advice = full_disk_advice(error)
            raise RunError(
                f"A {self._noun} cannot be written ({error.strerror or error}).",
                where=str(self.path),
                allowed="" if advice else "a plain file in a folder that can be written",
                do=advice or "Name another place.",
            ) from error

    @contextmanager
    def _locked(self) -> Generator[None]:
        with self._threads, nullcontext() if self._is_claimed else locked(self._descriptor):
            yield

    def _cut_torn_line(self) -> int:
        """Cut off a torn last line, or complete a whole line that lacks its line end."""
        size, start, tail = self.size, self.size, b""
        while start > 0 and b"\n" not in tail:
            start = max(0, start - max(len(tail), _BLOCK_BYTES))  # twice as much each time
            tail = os.pread(self._descriptor, size - start, start)
        line = tail.rpartition(b"\n")[2]
        if _is_json(line):
            os.write(self._descriptor, b"\n")
        elif line:
            os.ftruncate(self._descriptor, size - len(line))
            os.fsync(self._descriptor)
            return len(line)
        return 0


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True

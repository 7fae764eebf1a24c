"""Append-only files of JSON lines: records, recorded replies, verdicts.

Any thread or process may append whole lines. A torn last line, left by a crash, is cut off before
the next line is written. Nothing else is ever removed: a file whose last line is not ours is
rejected, and so are symbolic links and anything but plain files.
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
    """A kind of lines: its ``noun`` in messages, the field ``first`` that lines begin with, and how
    a line is read, which raises JSONDecodeError or RunError for one that is not of the kind."""

    noun: str
    first: str
    read: Callable[[bytes], T_co]

    @property
    def allowed(self) -> str:
        """What may stand in a file, for messages."""
        return f"{self.noun}s as this version of arag-search writes them"

    def is_torn(self, line: bytes) -> bool:
        """Return whether a line is one of this kind that a crash has torn: its beginning, or zeros
        for bytes that never reached the disk."""
        begin = f'{{"{self.first}"'.encode()
        begins = line.startswith((begin, b"\0")) or begin.startswith(line)
        return begins and not _is_json(line)

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
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        values: list[T_co] = []
        for number, line in enumerate(lines, 1):
            try:
                values.append(self.read(line))
            except (orjson.JSONDecodeError, RunError) as error:
                if number == len(lines) and self.is_torn(line):
                    return values, len(line) + content.endswith(b"\n")
                is_json = isinstance(error, RunError)
                raise RunError(
                    error.what if is_json else f"A {self.noun} is not JSON ({error}).",
                    where=f"{path}, line {number}",
                    allowed=self.allowed,
                    do="Delete the line, so that what it said is asked again, or name another "
                    "file.",
                ) from error
        return values, 0


class JsonLinesFile:
    """A file that lines of a kind are appended to; it is created if it is missing. Raises RunError
    if it cannot be written, which leaves it as it was, or ends with a line of another kind."""

    def __init__(self, path: Path, kind: LineKind[object]) -> None:
        self.path = path
        self._kind = kind
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
                f"A {self._kind.noun} cannot be written ({error.strerror or error}).",
                where=str(self.path),
                allowed="" if advice else "a plain file in a folder that can be written",
                do=advice or "Name another place.",
            ) from error

    @contextmanager
    def _locked(self) -> Generator[None]:
        with self._threads, nullcontext() if self._is_claimed else locked(self._descriptor):
            yield

    def _cut_torn_line(self) -> int:
        """Cut off a torn last line, or complete a whole one that lacks its line end."""
        size = self.size
        start = self._start_of_last_line(size)
        last = os.pread(self._descriptor, size - start, start)
        if not last or self._is_ours(last):
            if last and not last.endswith(b"\n"):
                os.write(self._descriptor, b"\n")
            return 0
        if not self._kind.is_torn(last):
            raise RunError(
                f"The last line is neither a {self._kind.noun} nor a part of one.",
                where=str(self.path),
                allowed=self._kind.allowed,
                do="Delete the line, or name another file.",
            )
        os.ftruncate(self._descriptor, start)
        os.fsync(self._descriptor)
        return len(last)

    def _is_ours(self, line: bytes) -> bool:
        try:
            self._kind.read(line)
        except (orjson.JSONDecodeError, RunError):
            return False
        return True

    def _start_of_last_line(self, size: int) -> int:
        start = max(size - 1, 0)  # skip its own line end
        while start > 0:
            length = min(_BLOCK_BYTES, start)
            start -= length
            line_end = os.pread(self._descriptor, length, start).rfind(b"\n")
            if line_end >= 0:
                return start + line_end + 1
        return 0


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True

"""Append-only files of JSON lines: records, recorded replies, verdicts.

Any thread or process may append whole lines. A torn last line, left by a crash, is cut off before
the next line is written. Nothing else is ever removed: a file whose last line is not ours is
rejected, and so are symbolic links and anything but plain files.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import orjson

from arag_search.system.lock import locked, try_lock

_BLOCK_BYTES = 65_536
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ForeignLineError(Exception):
    """The last line of a file is not of the kind that is appended to it."""


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines in the content of such a file, without their ends.

    The last may be the torn line of a crash, or of a process that is writing. If only its
    line end is missing, it is as complete as the others.
    """
    return content.removesuffix(b"\n").split(b"\n") if content else []


class JsonLinesFile:
    """A file that lines are appended to; it is created if it is missing.

    Our lines begin with the field ``first_field``, and ``is_ours`` is true of them. Methods
    raise OSError, whose ``strerror`` says what is wrong, and ForeignLineError.
    """

    def __init__(self, path: Path, first_field: str, is_ours: Callable[[bytes], object]) -> None:
        self.path = path
        self._begin = f'{{"{first_field}"'.encode()
        self._is_ours = is_ours
        self._threads = threading.Lock()
        self._is_claimed = False
        self._descriptor = _open(path)

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
        with self._locked():
            return self._cut_torn_line()

    def append(self, line: bytes) -> None:
        """Write a line, line end included, and wait until it is on disk. If it does not fit, the
        file stays as it was."""
        with self._locked():
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
        if not self._is_torn(last):
            raise ForeignLineError(str(self.path))
        os.ftruncate(self._descriptor, start)
        os.fsync(self._descriptor)
        return len(last)

    def _is_torn(self, line: bytes) -> bool:
        """Return whether this is a line of ours, torn by a crash: its beginning, or zeros for
        bytes that never reached the disk."""
        begins = line.startswith((self._begin, b"\0")) or self._begin.startswith(line)
        return begins and not _is_json(line)

    def _start_of_last_line(self, size: int) -> int:
        start = max(size - 1, 0)  # skip its own line end
        while start > 0:
            length = min(_BLOCK_BYTES, start)
            start -= length
            line_end = os.pread(self._descriptor, length, start).rfind(b"\n")
            if line_end >= 0:
                return start + line_end + 1
        return 0


def _open(path: Path) -> int:
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    descriptor = os.open(path, _FLAGS, 0o644)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True

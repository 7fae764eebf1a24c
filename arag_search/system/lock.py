"""Files that one process holds as long as it lives: ``flock``, with the holder's id in the file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class HeldError(Exception):
    """Another process holds the file; ``process`` is its id, or "unknown"."""

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process


def hold(path: Path, owner: str) -> int:
    """Lock a file, which is made where it is not there, and write ``owner`` and our id into it.

    The descriptor; closing it gives the file back. Raises HeldError, OSError.
    """
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o666)
        if not locked(descriptor, fcntl.LOCK_EX):
            told = os.pread(descriptor, 200, len(owner)).decode("ascii", "replace")
            os.close(descriptor)
            raise HeldError(told.strip() or "unknown")
        if is_at(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{owner}{os.getpid()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # the holder before removed it between the two calls


def locked(descriptor: int, kind: int) -> bool:
    """Take a lock of this kind (LOCK_SH, LOCK_EX) without waiting; whether it was free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False

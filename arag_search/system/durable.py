"""Files that are whole or absent, even after a crash of the process or the machine, and reading
those into whose folder others may write."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No space left, no quota left, or a file larger than allowed."""


def full_disk_advice(error: OSError) -> str:
    """Return what to do about a full disk; empty if that is not what failed."""
    return (
        "Free some space there and run the same command again." if error.errno in FULL_DISK else ""
    )


def open_plain(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file that is no link, and return its descriptor. Never waits. Raises OSError,
    also for anything else, such as a pipe or a device."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, mode)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_plain(path: Path, most_bytes: int = -1) -> bytes:
    """Return the bytes of a file that ``open_plain`` opens. Raises OSError, also for more than
    ``most_bytes``."""
    with open(open_plain(path), "rb") as file:
        data = file.read(most_bytes + 1 if most_bytes >= 0 else -1)
    if 0 <= most_bytes < len(data):
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return data


@contextmanager
def replacing(path: Path, *, shared: bool = False) -> Generator[Path]:
    """Replace a file by the file that the block writes at the yielded path, once it is on disk.

    The yielded path is ``<name>.new`` in the same folder. With ``shared`` it is unique, for files
    that several threads or processes may write at the same time. A crash or an exception leaves it
    behind. Until ``sync`` is called on the folder, a crash of the computer may bring the old file
    back. It never leaves a part of the new one. Raises OSError that names the file.
    """
    suffix = f".{os.getpid()}-{threading.get_ident()}.new" if shared else ".new"
    temporary = path.with_name(path.name + suffix)
    try:
        yield temporary
        sync(temporary)
    except OSError as error:
        if error.filename is None:  # such as those of writing to an open file
            error.filename = str(path)
        raise
    os.replace(temporary, path)


def write_atomically(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Replace a file: after a crash it holds either its old content or all of ``data``.

    See ``replacing``; a symbolic link at the temporary path is not followed. Raises OSError that
    names the file.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with (
        replacing(path, shared=shared) as temporary,
        open(open_plain(temporary, flags), "wb") as file,
    ):
        file.write(data)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file is on disk, or the list of files that a folder holds. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

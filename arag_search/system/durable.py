"""Files that are whole or absent, even after a crash of the process or the machine."""

from __future__ import annotations

import errno
import os
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


@contextmanager
def replacing(path: Path, *, shared: bool = False) -> Generator[Path]:
    """Replace a file by the one that the block writes at the yielded path, once that is on disk.

    The yielded path is ``<name>.new`` in the same folder; ``shared`` makes it unique, for files
    that several threads or processes may write at the same time. A crash leaves it behind, and an
    exception too. Until ``sync`` is called on the folder, a crash of the machine may bring the old
    file back, but never a part of the new one. Raises OSError that names the file.
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with (
        replacing(path, shared=shared) as temporary,
        open(os.open(temporary, flags, 0o666), "wb") as file,
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

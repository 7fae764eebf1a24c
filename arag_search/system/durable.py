"""Files that are whole or not there, whatever happens to the process or the machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No space, no quota left, or a file beyond the limit of its size."""


def room_advice(error: OSError) -> str:
    """Say what to do about a full disk; empty where that is not what failed."""
    return "Make room there and run the same command again." if error.errno in FULL_DISK else ""


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Name the path in an OSError that names none: writing to an open file does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file: it holds what it held, or all of ``data``, and stays so after a crash.

    What a crash leaves is ``<name>.new`` beside it; a link of that name is not followed. Raises
    OSError that names the file.
    """
    temporary = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with naming(path), open(os.open(temporary, flags, 0o666), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let what a folder lists be on disk: files that were made, renamed or removed in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

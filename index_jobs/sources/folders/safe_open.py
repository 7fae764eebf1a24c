"""The place of a file below a folder, and opening it as it was listed.

Who may write into a folder may put a link in the place of a file between the listing and the
reading of it. Nothing is opened by a link, below the folder, and only what was listed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from arag_search.errors import SourceError
from index_jobs.sources.lines.files import readable

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_DESCRIPTORS = Path("/proc/self/fd")


class Place(NamedTuple):
    """A regular file: its path below ``folder``, both without links, and its device and inode. The
    file of a place without a folder, which the user named, is ``path``."""

    path: str
    folder: str = ""
    device: int = 0
    inode: int = 0

    @contextmanager
    def opened(self, where: str) -> Generator[Path]:
        """Open the file, and yield a path for it. Raises SourceError, in which it is ``where``, if
        another one is in its place."""
        if not self.folder:
            yield Path(self.path)
            return
        with ExitStack() as opened, readable(where):
            descriptor = os.open(self.folder, _STEP & ~os.O_NOFOLLOW)
            opened.callback(os.close, descriptor)
            *folders, name = self.path.split("/")
            if os.pardir in folders:  # a link that led elsewhere by the time it was resolved
                raise _replaced(where)
            try:
                for folder in folders:
                    descriptor = os.open(folder, _STEP, dir_fd=descriptor)
                    opened.callback(os.close, descriptor)
                descriptor = os.open(name, _FILE, dir_fd=descriptor)
            except FileNotFoundError:
                raise
            except OSError as error:
                if os.path.islink(os.path.join(self.folder, self.path)):
                    raise _replaced(where) from error
                raise
            opened.callback(os.close, descriptor)
            status = os.fstat(descriptor)
            listed = stat.S_ISREG(status.st_mode), status.st_dev, status.st_ino
            if listed != (True, self.device, self.inode):
                raise _replaced(where)
            # macOS has no path that opens a descriptor again, from the beginning of its file
            by_descriptor = _DESCRIPTORS / str(descriptor)
            yield by_descriptor if _DESCRIPTORS.exists() else Path(self.folder, self.path)


def _replaced(where: str) -> SourceError:
    return SourceError(
        "Another file is where this one was listed.",
        where=where,
        do="Run the same command again once nothing is writing to the folder.",
    )

"""Listing the entries below a folder: its files in a fixed order, and entries that are not files of
the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from index_jobs.sources.records import readable

LINK_OUT = "links out of the folder"
LINK_TO_FOLDER = "links to folders"
LINK_TO_NOTHING = "links to nothing"
PIPE = "named pipes"
SOCKET = "sockets"
DEVICE = "devices"
NOT_FILES = frozenset((LINK_OUT, LINK_TO_FOLDER, LINK_TO_NOTHING, PIPE, SOCKET, DEVICE))
"""The names that reports give to entries that are left out because they are not files of the
folder."""


class FolderEntry(NamedTuple):
    """An entry below a folder. ``relative`` is its POSIX path; ``not_file`` is empty for a file of
    the folder, and otherwise names the kind of entry."""

    relative: str
    entry: os.DirEntry[str]
    not_file: str


def folder_entries(name: str, root: Path) -> Iterator[FolderEntry]:
    """Return the entries below a folder, sorted by path, one folder at a time.

    Names that begin with a dot are skipped. Links to files of the folder count as files of it;
    other links are not followed. Messages call the folder ``name``. Raises SourceError.
    """
    return _walk(name, root, "", os.path.realpath(root))


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a path leads out of a folder, by links."""
    return not _is_below(os.path.realpath(path), os.path.realpath(root))


def _walk(name: str, folder: Path, prefix: str, root: str) -> Iterator[FolderEntry]:
    with readable(f"{name}/{prefix}"), os.scandir(folder) as entries:
        shown = [
            (entry.name + "/" * entry.is_dir(follow_symlinks=False), entry)
            for entry in entries
            if not entry.name.startswith(".")
        ]
    shown.sort(key=lambda pair: pair[0])
    for relative, entry in shown:
        if relative.endswith("/"):
            yield from _walk(name, folder / entry.name, prefix + relative, root)
            continue
        with readable(f"{name}/{prefix}{relative}"):
            kind = _not_file(entry, root)
        yield FolderEntry(prefix + relative, entry, kind)


def _not_file(entry: os.DirEntry[str], root: str) -> str:
    """Return the kind of an entry that is not a file of the folder; empty for a file."""
    if entry.is_file(follow_symlinks=False):
        return ""
    if not entry.is_symlink():
        return _special(entry.stat(follow_symlinks=False).st_mode)
    target = os.path.realpath(entry.path)
    if not _is_below(target, root):
        return LINK_OUT
    try:
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return LINK_TO_NOTHING
    except OSError as error:
        if os.path.islink(target):  # a ring of links
            return LINK_TO_NOTHING
        raise error
    return LINK_TO_FOLDER if stat.S_ISDIR(mode) else _special(mode)


def _special(mode: int) -> str:
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISFIFO(mode):
        return PIPE
    return SOCKET if stat.S_ISSOCK(mode) else DEVICE


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath((path, root)) == root

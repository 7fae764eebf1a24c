"""Listing the entries below a folder: its files in a fixed order, and entries that are left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from arag_search.errors import SourceError
from index_jobs.sources.files.patterns import REPOSITORY, IgnoreRules, rules_above, rules_of
from index_jobs.sources.records import readable

LINK_OUT = "links out of the folder"
LINK_TO_FOLDER = "links to folders"
LINK_TO_NOTHING = "links to nothing"
PIPE = "named pipes"
SOCKET = "sockets"
DEVICE = "devices"
HIDDEN = "hidden"
IGNORED = "ignored by .gitignore"
TOO_LARGE = "too large"
SHOWN_LARGE_FILES = 20
"""How many of the files that are too large a report names."""

IGNORED_FOLDERS = frozenset(("node_modules", "__pycache__"))
"""The folders that are left out because programs, not people, fill them."""

NOT_READ = frozenset(
    (
        *(
            LINK_OUT,
            LINK_TO_FOLDER,
            LINK_TO_NOTHING,
            PIPE,
            SOCKET,
            DEVICE,
            HIDDEN,
            IGNORED,
            TOO_LARGE,
        ),
        *IGNORED_FOLDERS,
    )
)
"""The names that reports give to entries that are left out whatever the endings of their names."""


_Listing = tuple[Iterator[tuple[str, os.DirEntry[str]]], IgnoreRules | None]


class FolderEntry(NamedTuple):
    """An entry below a folder.

    ``relative`` is its POSIX path. ``left_out`` is empty for a file of the folder, and otherwise
    the name in NOT_READ of its kind. The contents of a folder that is left out are not listed. A
    folder that cannot be read has its ``problem``.
    """

    relative: str
    entry: os.DirEntry[str]
    left_out: str
    problem: SourceError | None = None


def folder_entries(name: str, root: Path, *, no_ignore: bool = False) -> Iterator[FolderEntry]:
    """Return the entries below a folder, sorted by path, one folder at a time.

    Hidden entries (their names begin with a dot), IGNORED_FOLDERS, and entries that .gitignore
    files exclude are left out, unless ``no_ignore``. Links to files of the folder count as files of
    it; other links are not followed. Messages call the folder ``name``. Raises SourceError if the
    folder cannot be read.
    """
    return _Walk(name, os.path.realpath(root), no_ignore).entries(root)


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a path leads out of a folder, by links."""
    return not _is_below(os.path.realpath(path), os.path.realpath(root))


class _Walk:
    """A walk through the folders below ``root``, which has no links in its path."""

    def __init__(self, name: str, root: str, no_ignore: bool) -> None:
        self._name = name.rstrip("/")
        self._root = root
        self._below = root.rstrip("/") + "/"
        self._no_ignore = no_ignore

    def entries(self, folder: Path) -> Iterator[FolderEntry]:
        """Yield the entries below a folder. Raises SourceError if it cannot be read."""
        rules = None if self._no_ignore else rules_above(self._root)
        under_way = [self._listing(os.fspath(folder), "", rules)]
        while under_way:
            listing, rules = under_way[-1]
            relative, entry = next(listing, ("", None))
            if entry is None:
                under_way.pop()
                continue
            kind = ""
            try:
                kind = self._left_out(relative, entry, rules)
                if relative.endswith("/") and not kind:
                    under_way.append(self._listing(entry.path, relative, rules))
                    continue
            except SourceError as problem:
                yield FolderEntry(relative, entry, "", problem)
            else:
                yield FolderEntry(relative, entry, kind)

    def _listing(self, folder: str, prefix: str, rules: IgnoreRules | None) -> _Listing:
        """Return the entries of a folder, whose path below the root is ``prefix``, in order, each
        with its relative path; and the rules for them, given those of the folder above."""
        where = f"{self._name}/{prefix}"
        with readable(where), os.scandir(folder) as entries:
            shown = [
                (prefix + entry.name + "/" * entry.is_dir(follow_symlinks=False), entry)
                for entry in entries
            ]
        shown.sort(key=lambda pair: pair[0])
        if not self._no_ignore:
            names = [entry.name for _, entry in shown if entry.name.startswith(REPOSITORY)]
            if REPOSITORY in names and prefix:
                rules = None  # a repository inherits no rules
            if names:
                rules = rules_of(f"{self._below}{prefix}", names, where, rules)
        return iter(shown), rules

    def _left_out(self, relative: str, entry: os.DirEntry[str], rules: IgnoreRules | None) -> str:
        """Return why an entry is left out, as a name in NOT_READ; empty if it is not. Raises
        SourceError."""
        if not self._no_ignore:
            if entry.name.startswith("."):
                return HIDDEN
            if relative.endswith("/") and entry.name in IGNORED_FOLDERS:
                return entry.name
            if rules is not None and rules.ignore(self._below + relative):
                return IGNORED
        if relative.endswith("/") or entry.is_file(follow_symlinks=False):
            return ""
        with readable(f"{self._name}/{relative}"):
            return _kind(entry, self._root)


def _kind(entry: os.DirEntry[str], root: str) -> str:
    """Return the kind of an entry that is neither a regular file nor a folder; empty for a link to
    a file of the folder."""
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

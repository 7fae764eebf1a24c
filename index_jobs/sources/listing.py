"""The files of a source, in order, and what of a folder is left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from arag_search.errors import (
    MissingExtraError,
    SourceError,
    on_one_line,
)
from index_jobs.sources.converters.registry import (
    FILE_TYPES,
    FileType,
    file_type_of,
)
from index_jobs.sources.file_ids import path_id
from index_jobs.sources.place import Place
from index_jobs.sources.records import readable
from index_jobs.sources.selection import (
    EXCLUDED,
    LARGE_DATA,
    SHOWN_LARGE_FILES,
    TOO_LARGE,
    FileSelection,
    folder_entries,
    shown_size,
    spec_of,
)

PLAIN_TEXT = FILE_TYPES["text"]
TICK_NS = 2 * 10**7
_COARSE_TICK_NS = 2 * 10**9
"""The longest steps of the times that file systems keep, in nanoseconds and in seconds."""


class LeftOut:
    """The entries of a source that are not read: their number by ending or kind, and the first that
    are too large. ``existing`` are the files, by their ids, whose type needs a package that is not
    installed."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.existing: set[str] = set()
        self.large: list[str] = []

    def count(self, kind: str) -> None:
        kind = on_one_line(kind)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def count_large(self, relative: str, size: int) -> None:
        self.count(TOO_LARGE)
        if len(self.large) < SHOWN_LARGE_FILES:
            self.large.append(f"{on_one_line(relative)} ({shown_size(size)})")


class SourceFile(NamedTuple):
    """A file to read. ``relative`` is its path below the root of ids, from which its id is made;
    messages call it ``where``. It is read from its ``place``. ``state`` changes when the file does:
    with its times of writing and of any change, and its inode. A file that is known to be
    unreadable has its ``problem``."""

    relative: str
    place: Place
    where: str
    type: FileType
    size: int
    state: str
    modified_s: float | None = None
    problem: SourceError | None = None
    changed_ns: int = 0

    @property
    def tick_ns(self) -> int:
        """The time for which the file could be written again without another time of change."""
        return TICK_NS if self.changed_ns % 10**6 else _COARSE_TICK_NS


Listing = Callable[[LeftOut], Iterator[SourceFile]]
"""A function that lists the files of a source in order, and counts what is left out."""


def listed(files: Sequence[SourceFile], left_out: LeftOut) -> Iterator[SourceFile]:
    return iter(files)


class FolderListing:
    def __init__(self, name: str, files: FileSelection, *, only_text: bool = False) -> None:
        self._name = name.rstrip("/") or "/"
        self._root = os.path.realpath(name)
        self._files = files
        self._only_text = only_text
        self._include = spec_of("--include", files.include)
        self._exclude = spec_of("--exclude", files.exclude)
        prefix = files.relative(name)
        self._prefix = f"{prefix}/" if prefix else ""
        self._installed: dict[str, bool] = {}

    def __call__(self, left_out: LeftOut) -> Iterator[SourceFile]:
        files = self._files
        entries = folder_entries(
            self._name, Path(self._name), no_ignore=files.no_ignore, only=files.only
        )
        limit = files.max_bytes
        for relative, entry, kind, problem in entries:
            if not kind and self._exclude is not None and self._exclude.match_file(relative):
                kind = EXCLUDED
            if kind:
                left_out.count(kind)
                continue
            where = f"{self._name}/{relative}"
            if problem is not None:
                yield self._unreadable(relative, entry, problem)
                continue
            type = self._type(relative, entry.name)
            if type is not None and not self._is_installed(type):
                left_out.existing.add(path_id(self._prefix + relative))
                type = None
            if type is None:
                left_out.count(os.path.splitext(entry.name)[1].lower() or "without ending")
                continue
            try:
                with readable(where):
                    path, status = self._resolved(relative, entry)
            except SourceError as error:
                yield self._unreadable(relative, entry, error)
                continue
            size = status.st_size
            if type.most_bytes is not None and size > type.most_bytes:
                if not self._is_included(relative):
                    left_out.count(LARGE_DATA)
                    continue
                type = PLAIN_TEXT
            if limit is not None and size > limit:
                left_out.count_large(self._prefix + relative, size)
                continue
            yield SourceFile(
                self._prefix + relative,
                Place(path, self._root, status.st_dev, status.st_ino),
                where,
                type,
                size,
                state_of(status),
                status.st_mtime,
                changed_ns=status.st_ctime_ns,
            )

    def _resolved(self, relative: str, entry: os.DirEntry[str]) -> tuple[str, os.stat_result]:
        """Return the path of an entry below the root, without links, and what it is."""
        if not entry.is_symlink():
            return relative, entry.stat(follow_symlinks=False)
        target = os.path.realpath(entry.path)
        return os.path.relpath(target, self._root), os.lstat(target)

    def _type(self, relative: str, name: str) -> FileType | None:
        type = file_type_of(name)
        is_text = type is PLAIN_TEXT or (type is not None and type.may_be_other)
        if type is not None and (is_text or not self._only_text):
            return type
        return PLAIN_TEXT if self._is_included(relative) else None

    def _is_included(self, relative: str) -> bool:
        return self._include is not None and self._include.match_file(relative)

    def _is_installed(self, type: FileType) -> bool:
        if type.name not in self._installed:
            try:
                type.check()
            except MissingExtraError:
                self._installed[type.name] = False
            else:
                self._installed[type.name] = True
        return self._installed[type.name]

    def _unreadable(
        self, relative: str, entry: os.DirEntry[str], problem: SourceError
    ) -> SourceFile:
        path = self._prefix + relative.rstrip("/")
        where = problem.where or f"{self._name}/{relative}"
        place = Place(entry.path)
        return SourceFile(path, place, where, PLAIN_TEXT, 0, "unreadable", problem=problem)


def state_of(status: os.stat_result) -> str:
    """Return what changes when a file does, except its size."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def one_file(name: str, files: FileSelection, type: FileType | None = None) -> Listing:
    """Return the listing of a file that is named as a source, which is read whatever its size, as
    text if its ending is not known."""
    type = type or file_type_of(name) or PLAIN_TEXT
    type.check()

    def listing(left_out: LeftOut) -> Iterator[SourceFile]:
        with readable(name):
            status = os.stat(name)
        yield SourceFile(
            files.relative(name),
            Place(os.path.abspath(name)),
            name,
            type,
            status.st_size,
            state_of(status),
            status.st_mtime,
            changed_ns=status.st_ctime_ns,
        )

    return listing

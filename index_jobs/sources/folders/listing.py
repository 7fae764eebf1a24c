"""The files of a source, in order, and what of a folder is left out."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from arag_search.engines.lucene.location import is_index
from arag_search.errors import LeftOutError, MissingExtraError, SourceError, on_one_line
from index_jobs.sources.converters.registry import FILE_TYPES, LARGE_BYTES, FileType, file_type_of
from index_jobs.sources.folders.ids import path_id
from index_jobs.sources.folders.ignored import IgnoreRules, rules_above, rules_of
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.secret_files import NAMED, TO_READ, Suspicion
from index_jobs.sources.folders.selection import (
    EXCLUDED,
    GENERATED,
    HIDDEN,
    IGNORED,
    IGNORED_FOLDERS,
    INDEX,
    LARGE_DATA,
    LINK_OUT,
    LINK_TO_FOLDER,
    LINK_TO_NOTHING,
    LOCK_FILE,
    REPOSITORY,
    SHOWN_LARGE_FILES,
    SPECIAL,
    TOO_LARGE,
    VENDORED,
    FileSelection,
    shown_size,
    spec_of,
)
from index_jobs.sources.lines.files import readable

PLAIN_TEXT = FILE_TYPES["text"]
CODE = FILE_TYPES["code"]
TICK_NS = 2 * 10**7
_COARSE_TICK_NS = 2 * 10**9
"""The longest steps of the times that file systems keep, in nanoseconds and in seconds."""


_GENERATED_NAMES = re.compile(
    r".*\.(lock|lockfile|lockb|map)|.*[.-]lock\.(json|ya?ml|hcl)|npm-shrinkwrap\.json|go\.sum"
    r"|.*[.-](min|bundle)\.(m?js|css)|.*(_pb2(_grpc)?\.pyi?|\.pb(\.gw)?\.(go|cc|h)|_pb\.(js|ts))"
    r"|.*\.(g|freezed|designer|generated)\.\w+|.*[._]generated(\.\w+)+|zz_generated.*",
    re.IGNORECASE,
)
_VENDORED = re.compile(
    r"(?:^|/)(?:_?vendor(?:ed)?|third[_-]?party|bower_components|site-packages)/", re.IGNORECASE
)

_Entry = tuple[str, os.DirEntry[str], SourceError | None]
_Folder = tuple[Iterator[tuple[str, os.DirEntry[str]]], IgnoreRules | None]


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
    unreadable, or is left out by its name, has its ``problem``. ``suspicion`` says what else can
    leave it out."""

    relative: str
    place: Place
    where: str
    type: FileType
    size: int
    state: str
    modified_s: float | None = None
    problem: SourceError | None = None
    changed_ns: int = 0
    suspicion: Suspicion = "text"

    @property
    def is_limited(self) -> bool:
        """Whether it is converted within limits of time and memory, in a process of its own."""
        return self.type.is_limited or self.size >= LARGE_BYTES

    @property
    def tick_ns(self) -> int:
        """The time for which the file could be written again without another time of change."""
        return TICK_NS if self.changed_ns % 10**6 else _COARSE_TICK_NS


Listing = Callable[[LeftOut], Iterator[SourceFile]]
"""A function that lists the files of a source in order, and counts what is left out."""


def listed(files: Sequence[SourceFile], left_out: LeftOut) -> Iterator[SourceFile]:
    return iter(files)


class FolderListing:
    """The files below a folder, sorted by path, one folder at a time.

    These are left out unless the selection says ``no_ignore``: hidden entries (with a dot before
    their names), IGNORED_FOLDERS, files that .gitignore excludes, and generated files. Always left
    out are indexes, and the files with which Office marks an open document (``~$report.docx``).
    Links to files of the folder count as files of it; other links are not followed. Raises
    SourceError if the folder cannot be read. If a file or folder below it cannot be read, its entry
    in the listing has the problem. So has the entry of a file named like ``passwords.txt``.
    """

    def __init__(self, name: str, files: FileSelection, *, only_text: bool = False) -> None:
        self._name = name.rstrip("/")
        self._root = os.path.realpath(name)
        self._below = self._root.rstrip("/") + "/"
        self._files = files
        self._on_the_way = {above for path in files.only or () for above in _folders_above(path)}
        self._only_text = only_text
        self._include = spec_of("include", files.include)
        self._exclude = spec_of("exclude", files.exclude)
        prefix = files.relative(name)
        self._prefix = f"{prefix}/" if prefix else ""
        self._installed: dict[str, bool] = {}

    def __call__(self, left_out: LeftOut) -> Iterator[SourceFile]:
        limit = self._files.max_file_size
        for relative, entry, problem in self._entries(left_out):
            if self._exclude is not None and self._exclude.match_file(relative):
                left_out.count(EXCLUDED)
                continue
            where = f"{self._name}/{relative}"
            if problem is not None:
                yield self._unreadable(relative, entry, problem)
                continue
            type = self._type(relative, entry.name)
            if type is CODE and not self._files.no_ignore and _VENDORED.search(relative):
                left_out.count(VENDORED)
                continue
            suspicion = self._files.suspicion(relative)
            if suspicion == "key" or (suspicion == "name" and type is not None):
                yield _named_like_secrets(self._prefix + relative, where)
                continue
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
                suspicion=suspicion,
            )

    def _entries(self, left_out: LeftOut) -> Iterator[_Entry]:
        """Yield the files, each with its relative path, and the folders that cannot be read, whose
        paths end with a slash, with their problems. Raises SourceError."""
        rules = None if self._files.no_ignore else rules_above(self._root)
        under_way = [self._folder(self._name or "/", "", rules)]
        while under_way:
            entries, rules = under_way[-1]
            relative, entry = next(entries, ("", None))
            if entry is None:
                under_way.pop()
                continue
            try:
                if kind := self._left_out(relative, entry, rules):
                    left_out.count(kind)
                elif relative.endswith("/"):
                    under_way.append(self._folder(entry.path, relative, rules))
                else:
                    yield relative, entry, None
            except SourceError as problem:
                yield relative, entry, problem

    def _folder(self, folder: str, prefix: str, rules: IgnoreRules | None) -> _Folder:
        """Return the entries of a folder in order, each with its relative path, and the rules for
        them. ``prefix`` is the folder's path below the root; ``rules`` are of the folder above."""
        where = f"{self._name}/{prefix}"
        with readable(where), os.scandir(folder) as entries:
            shown = [
                (prefix + entry.name + "/" * entry.is_dir(follow_symlinks=False), entry)
                for entry in entries
            ]
        names = [entry.name for _, entry in shown if entry.name.startswith(REPOSITORY)]
        only = self._files.only
        if only is not None and not self._is_wanted(self._below + prefix, only):
            shown = [
                (relative, entry)
                for relative, entry in shown
                if (path := f"{self._below}{relative}".rstrip("/")) in self._on_the_way
                or path in only
            ]
        shown.sort(key=lambda pair: pair[0])
        if not self._files.no_ignore:
            if REPOSITORY in names and prefix:
                rules = None  # a repository inherits no rules
            if names:
                rules = rules_of(f"{self._below}{prefix}", names, where, rules)
        return iter(shown), rules

    def _is_wanted(self, folder: str, only: frozenset[str]) -> bool:
        """Return whether all entries of a folder are wanted, and not some of them alone."""
        folder = folder.rstrip("/")
        return folder in only or not only.isdisjoint(_folders_above(folder))

    def _left_out(self, relative: str, entry: os.DirEntry[str], rules: IgnoreRules | None) -> str:
        """Return why an entry is left out, as a name in NOT_READ; empty if it is not. Raises
        SourceError."""
        if not self._files.no_ignore:
            if entry.name.startswith("."):
                return HIDDEN
            if relative.endswith("/") and entry.name in IGNORED_FOLDERS:
                return entry.name
            if rules is not None and rules.ignore(self._below + relative):
                return IGNORED
            if not relative.endswith("/") and _GENERATED_NAMES.fullmatch(entry.name):
                return GENERATED
        if relative.endswith("/"):
            return INDEX if is_index(Path(entry.path)) else ""
        if entry.name.startswith("~$"):
            return LOCK_FILE
        if entry.is_file(follow_symlinks=False):
            return ""
        with readable(f"{self._name}/{relative}"):
            return _kind(entry, self._root)

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
            self._installed[type.name] = False
            with suppress(MissingExtraError):
                type.check()
                self._installed[type.name] = True
        return self._installed[type.name]

    def _unreadable(
        self, relative: str, entry: os.DirEntry[str], problem: SourceError
    ) -> SourceFile:
        path = self._prefix + relative.rstrip("/")
        where = problem.where or f"{self._name}/{relative}"
        place = Place(entry.path)
        return SourceFile(path, place, where, PLAIN_TEXT, 0, "unreadable", problem=problem)


def _folders_above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def _kind(entry: os.DirEntry[str], root: str) -> str:
    """Return the kind of an entry that is neither a regular file nor a folder; empty for a link to
    a file of the folder."""
    if not entry.is_symlink():
        return SPECIAL
    target = os.path.realpath(entry.path)
    if not is_below(target, root):
        return LINK_OUT
    try:
        mode = os.stat(target).st_mode
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        if is_gone or os.path.islink(target):  # a ring of links
            return LINK_TO_NOTHING
        raise
    if stat.S_ISDIR(mode):
        return LINK_TO_FOLDER
    return "" if stat.S_ISREG(mode) else SPECIAL


def is_below(path: str, root: str) -> bool:
    """Return whether a path is below a folder, both without links."""
    return os.path.commonpath((path, root)) == root


def state_of(status: os.stat_result) -> str:
    """Return what changes when a file does, except its size."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _named_like_secrets(relative: str, where: str) -> SourceFile:
    problem = LeftOutError(NAMED, where=where, do=TO_READ)
    return SourceFile(relative, Place(""), where, PLAIN_TEXT, 0, NAMED, problem=problem)


def one_file(name: str, files: FileSelection, type: FileType | None = None) -> Listing:
    """Return the listing of a file that is named as a source. It is read whatever its size, and as
    text if its ending is not known. Secrets are left out as below a folder: a shell that writes out
    ``*.md`` names them too."""
    type = type or file_type_of(name) or PLAIN_TEXT
    type.check()
    relative = files.relative(name)
    suspicion = files.suspicion(relative)

    def listing(left_out: LeftOut) -> Iterator[SourceFile]:
        if suspicion in ("key", "name"):
            yield _named_like_secrets(relative, name)
            return
        with readable(name):
            status = os.stat(name)
        yield SourceFile(
            relative,
            Place(os.path.abspath(name)),
            name,
            type,
            status.st_size,
            state_of(status),
            status.st_mtime,
            changed_ns=status.st_ctime_ns,
            suspicion=suspicion,
        )

    return listing

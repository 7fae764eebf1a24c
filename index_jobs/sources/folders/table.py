"""The table of the files that an index has read, by which it is known what changed since.

For each file it has the size, the times of its last write and of its last change of any kind, and
the inode. The second time moves with every write and rename, and when the first is set back.
Comparing them costs a listing. The table belongs to the texts of an index: after an update from
other sources it counts for nothing, and all files are read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import AragError, NotInTimeError
from arag_search.search.standing import (
    NAMED_FILES,
    Standing,
    identity_of,
    note_standing,
    standing_file,
)
from arag_search.system.durable import read_plain, write_atomically
from index_jobs.cutting.chunking import program_version
from index_jobs.sources.converters.registry import LARGE_BYTES, file_type_of
from index_jobs.sources.folders.ids import path_id
from index_jobs.sources.folders.mounts import is_remote
from index_jobs.sources.folders.selection import (
    LARGE_DATA,
    NOT_READ,
    STDIN,
    TOO_LARGE,
    FileSelection,
)
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.registry import Format
from index_jobs.sources.source import FileState, Source

MOST_FILES = 50_000
"""The number of files up to which they are compared before each answer."""
SMALL_FILES = 20
SMALL_BYTES = 1_000_000
"""The bytes that are read before an answer, of files that no other process converts."""
_MOST_KEPT = 1_000_000


@dataclass(frozen=True, slots=True)
class Following:
    """Sources of files and how they are read, to which a table of their files belongs. ``files``
    has the root of all sources."""

    names: tuple[str, ...]
    format: Format | None
    fields: Fields
    files: FileSelection

    @staticmethod
    def of(
        names: Sequence[str], format: Format | None, fields: Fields, files: FileSelection
    ) -> Following:
        """Return how sources are read, for a selection without the root of all. Raises
        ArgumentError."""
        return Following(tuple(names), format, fields, files.rooted(names))

    def digest(self) -> str:
        """Return what is equal if the same files are read in the same way."""
        how = (
            [os.path.realpath(name) for name in self.names],
            [os.path.abspath(name) for name in self.names],
            self.format,
            dataclasses.astuple(self.fields),
            self.files.signature(),
            tuple(self.files.file_limits),
            program_version(),
            version("arag-search"),
        )
        return hashlib.sha256(json.dumps(how, default=str).encode()).hexdigest()

    def look(self, within: Iterable[str] | None = None) -> Look | None:
        """List the files as they are now: all, or those at and below paths. None if they cannot be
        listed, or if the sources are not files and folders of files."""
        only = frozenset(map(os.path.realpath, self.names) if within is None else within)
        files = dataclasses.replace(self.files, only=only)
        try:
            opened = open_sources(self.names, self.format, self.fields, MetadataReader({}), files)
            return self.look_of(opened)
        except AragError:
            return None

    def look_of(self, opened: Sequence[Source]) -> Look | None:
        """Return the files of these sources as they were when they were opened; None as ``look``
        does."""
        look = _look_of(opened, self.files.root)
        if look is None or not self.is_remote:
            return look
        # Inodes and times of change are made up there by some systems.
        files = {path: (size, state.split(" ")[0]) for path, (size, state) in look.files.items()}
        return look._replace(files=files)

    @property
    def is_remote(self) -> bool:
        """Whether a source is on a network mount, where times may be late: a synchronisation reads
        all files."""
        return any(is_remote(os.path.realpath(name)) for name in self.names)


class Look(NamedTuple):
    """Files as they are, by their absolute paths. ``relative`` has their paths below the root of
    ids. Files that were left out are as in a Source."""

    files: dict[str, FileState]
    relative: Mapping[str, str]
    left_out: Mapping[str, int]
    large_files: Sequence[str]

    def not_read(self, unread: Iterable[str]) -> dict[str, int]:
        """Return how many files could hold text and are not in an index, by kind. ``unread`` are
        the paths of files that could not be read."""
        counts = Counter(
            {
                kind.lstrip("."): count
                for kind, count in self.left_out.items()
                if kind in (TOO_LARGE, LARGE_DATA) or kind not in NOT_READ
            }
        )
        for path in unread:
            ending = os.path.splitext(path)[1].lower().lstrip(".")
            counts[f"{ending or 'file'} could not be read"] += 1
        return dict(counts)


def _look_of(sources: Sequence[Source], root: str | None) -> Look | None:
    """Return the files of open sources; None if they are not all files or folders of files, or too
    many to be kept."""
    files: dict[str, FileState] = {}
    below: dict[str, str] = {}
    for source in sources:
        if source.states is None:
            return None
        name, real = os.path.abspath(source.name), os.path.realpath(source.name)
        for relative, state in source.states.items():
            path = real + os.path.join(root or "", relative)[len(name) :]
            files[path] = state
            below[path] = relative
    if len(files) > _MOST_KEPT:
        return None
    left_out = sum((Counter(source.left_out) for source in sources), Counter[str]())
    large_files = [name for source in sources for name in source.large_files]
    return Look(files, below, left_out, large_files)


def unread_of(look: Look, sources: Iterable[Source]) -> dict[str, str]:
    """Return the paths of the files that sources could not read, or left out with these words."""
    words: dict[str, str] = {}
    for source in sources:
        words |= dict.fromkeys(source.damaged, "") | dict(source.left_out_files)
    if not words:
        return {}
    ids = ((path, path_id(relative)) for path, relative in look.relative.items())
    return {path: words[id] for path, id in ids if id in words}


@dataclass(frozen=True, slots=True)
class FileTable:
    """The files of ``how`` (see Following.digest) that the index with this fingerprint has read.
    ``unread`` could not be read, or were left out with these words. ``slow`` has the states of
    files that alone take longer than an answer may wait, and were broken off. It also has files
    that need more than a file may take, which are ``unread`` too."""

    how: str
    fingerprint: str
    files: dict[str, FileState]
    unread: Mapping[str, str] = field(default_factory=dict[str, str])
    slow: Mapping[str, FileState] = field(default_factory=dict[str, FileState])

    @staticmethod
    def read(location: str | Path, how: str) -> FileTable | None:
        """Return the table of an index; None if there is none, or one of other sources."""
        try:
            values: Any = json.loads(read_plain(_table_file(location)))
            if values["how"] != how:
                return None
            return FileTable(**values)
        except (OSError, ValueError, RecursionError, TypeError, KeyError):
            return None

    def save(self, location: str | Path) -> None:
        """Write the table; where the cache cannot be written, all files are read next time."""
        with suppress(OSError):
            file = _table_file(location)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            values = {name: getattr(self, name) for name in self.__slots__}
            write_atomically(file, json.dumps(values).encode(), shared=True)

    def changed(self, look: Look, within: Iterable[str] | None = None) -> set[str]:
        """Return the paths of the files that are new, changed or gone, of all or of those at and
        below paths."""
        known = self.files if within is None else self._below(within, look)
        changed = {path for path, state in look.files.items() if not _same(known.get(path), state)}
        return changed | (known.keys() - look.files.keys())

    def after(
        self, look: Look, changed: Iterable[str], sources: Sequence[Source], fingerprint: str
    ) -> FileTable:
        """Return the table after the changed files were read from sources, as they were at a look.
        Those for which there was no time count as before."""
        unread = unread_of(look, sources)
        of_ids = {id: error for source in sources for id, error in source.over_limits.items()}
        ids = {path: path_id(look.relative[path]) for path in unread}
        over = {path: of_ids[id] for path, id in ids.items() if id in of_ids}
        late = {path for path, error in over.items() if isinstance(error, NotInTimeError)}
        changed = set(changed) - late
        files = {path: state for path, state in self.files.items() if path not in changed}
        files |= {path: look.files[path] for path in changed if path in look.files}
        still = {path: why for path, why in self.unread.items() if path in files.keys() - changed}
        slow = {path: state for path, state in self.slow.items() if path not in changed}
        same = {path for path in late if _same(self.files.get(path), look.files[path])}
        slow |= {path: look.files[path] for path in over.keys() - same if over[path].is_slow}
        new = {path: why for path, why in unread.items() if path not in late}
        return FileTable(self.how, fingerprint, files, still | new, slow)

    def _below(self, within: Iterable[str], look: Look) -> dict[str, FileState]:
        paths = set(within)
        known = {path: self.files[path] for path in paths if path in self.files}
        folders = tuple(
            f"{path}/" for path in paths if path not in self.files and path not in look.files
        )
        if folders:
            known |= {path: own for path, own in self.files.items() if path.startswith(folders)}
        return known


def _table_file(location: str | Path) -> Path:
    """Return the place of a table: with an index in a folder, in the cache for one on a server."""
    if is_address(str(location)):
        return standing_file(location, ".files")
    return Path(location) / "files.json"


def _same(before: FileState | None, now: FileState) -> bool:
    return before is not None and tuple(before) == now and bool(now[1])


class Comparison(NamedTuple):
    """The files as they are at a look, the table of an index, and the paths of changed files. These
    are new, changed or gone since. If it ``is_whole``, all files were compared, else some."""

    look: Look
    table: FileTable
    changed: set[str]
    is_whole: bool

    def by_cost(self) -> tuple[list[str], list[str], list[str]]:
        """Return the changed files that are there in three lists, by the cost of reading them. The
        first cost little, another process converts the second, and the third take long."""
        costs: tuple[list[str], list[str], list[str]] = [], [], []
        for path in sorted(self.changed & self.look.files.keys()):
            state, type = self.look.files[path], file_type_of(path)
            is_converted = (type is not None and type.is_limited) or state[0] >= LARGE_BYTES
            is_long = _same(self.table.slow.get(path), state)
            costs[2 if is_long else is_converted].append(path)
        return costs

    @property
    def is_small(self) -> bool:
        """Whether an answer may wait until all changed files have been read."""
        return not self.by_cost()[2] and self.few(self.changed) == sorted(self.changed)

    def few(self, paths: Iterable[str]) -> list[str]:
        """Return the first of these files that are few and small."""
        sizes = [(path, self.look.files.get(path, (0, ""))[0]) for path in sorted(paths)]
        totals = accumulate(size for _, size in sizes)
        few = zip(sizes[:SMALL_FILES], totals, strict=False)
        return [path for (path, _), total in few if total <= SMALL_BYTES]


def note_read(
    location: str | Path,
    following: Following,
    look: Look | None,
    table: FileTable | None,
    *,
    began: str,
    left_out: Sequence[str],
) -> None:
    """Note that an index has read its sources as they were at a look, which ``began`` at a time in
    UTC. ``left_out`` says in lines what it left out. ``look`` and ``table`` are None where nothing
    is known of files."""
    if table is not None:
        table.save(location)
    unread = [] if table is None else [path for path, why in table.unread.items() if not why]
    late: list[str] = []
    if look is not None and table is not None:  # a file without a state would always count
        now = ((path, state) for path, state in sorted(look.files.items()) if state[1])
        late = [path for path, state in now if not _same(table.files.get(path), state)]
    note_standing(
        Standing(
            identity_of(location),
            tuple(os.path.realpath(name) for name in following.names if name != STDIN),
            began,
            changed_files=len(late),
            changed=tuple(path_id(os.path.basename(path)) for path in late[:NAMED_FILES]),
            slow_files=0 if table is None else len(table.slow.keys() & late),
            files=0 if look is None else len(look.files),
            not_read={} if look is None else look.not_read(unread),
            left_out=tuple(left_out),
        )
    )

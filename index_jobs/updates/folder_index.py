"""The index of a folder of files, kept in the user's cache. It is built on first use, found by the
real path of the folder, and removed when the cache grows too large.

``<cache>/folders/<digest>-<program>/`` has ``index``, ``folder`` (the path) and ``in_use.lock``,
which those who use the index hold together, and whoever removes it holds alone. ``program`` stands
for the versions of all that decides what an index holds and who can read it. So two versions of the
program do not undo each other's indexes.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from arag_search.engines.lucene.jvm import LUCENE_VERSION
from arag_search.engines.lucene.location import BuildSite, folder_bytes, published_state
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.errors import (
    AragError,
    ArgumentError,
    EngineError,
    IndexDamagedError,
    IndexExistsError,
    IndexLockedError,
    IndexNotFoundError,
    IndexVersionError,
)
from arag_search.search.opening import open_index
from arag_search.search.standing import forget_standing
from arag_search.system.cache import cache_folder
from arag_search.system.durable import write_atomically
from arag_search.system.lock import is_at, try_lock
from arag_search.system.progress import Progress
from index_jobs.build.options import BuildOptions
from index_jobs.cutting.chunking import program_version
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.updates.watching import Watcher

MAX_CACHE_BYTES = 20_000_000_000
"""The size of all indexes of folders above which those go that were unused for the longest time."""

UNUSABLE = (IndexDamagedError, IndexVersionError, IndexNotFoundError)
"""The errors of an index of a folder after which it is built again."""

_IN_USE = "in_use.lock"
_FOLDER = "folder"
_WAIT_S = 0.2
OPTIONS = BuildOptions(files=FileSelection(skip_bad_files=True), skip_bad_lines=True)
"""How the index of a folder is built."""

_withdrawing = threading.Lock()
_withdrawn: set[Path] = set()
"""The indexes that this process has withdrawn, each once, lest it builds them without end."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """The index of a ``folder``, a real path; ``entry`` is its place in the cache."""

    folder: str
    entry: Path

    @staticmethod
    def of(folder: str | Path) -> FolderIndex:
        """Return the index of a folder, which need not exist."""
        real = os.path.realpath(folder)
        release = LUCENE_VERSION.rpartition(".")[0]  # the digits that decide what can be read
        program = repr([*program_version(), release]).encode()
        name = f"{_digest(os.fsencode(real), 24)}-{_digest(program, 8)}"
        return FolderIndex(real, _indexes() / name)

    def versions(self) -> list[FolderIndex]:
        """Return the indexes of the folder that are there, of all versions of the program."""
        of_folder = self.entry.name.partition("-")[0]
        entries = sorted(_indexes().glob(f"{of_folder}-*"))
        return [FolderIndex(self.folder, entry) for entry in entries]

    @property
    def location(self) -> Path:
        """The folder of the index itself."""
        return self.entry / "index"

    @property
    def exists(self) -> bool:
        """Whether it has been built."""
        return (self.location / "manifest.json").exists()

    @property
    def state(self) -> bytes | None:
        """What changes whenever another state of it is published; None if there is none."""
        return published_state(self.location)

    def bytes(self) -> int:
        """Return the size of its files."""
        return folder_bytes(self.entry)

    def check_discreet(self) -> None:
        """Raise ArgumentError for a folder that holds everything, or everything of a user."""
        home = os.path.realpath(Path.home())
        if self.folder == "/" or f"{home}/".startswith(f"{self.folder}/"):
            raise ArgumentError(
                "This folder holds all files of a user.",
                where=self.folder,
                allowed="a folder with what is to be searched; `yes=True` for this one",
                do="Name a folder in it, or repeat with `yes=True`.",
            )

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep the index from being removed during the block. Makes its place in the cache, with
        mode 0700, and removes what is too much there."""
        descriptor = self._hold()
        try:
            remove_unused()
            yield
        finally:
            os.close(descriptor)

    def _hold(self) -> int:
        _indexes().mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(_indexes(), 0o700)
        while True:
            self.entry.mkdir(exist_ok=True, mode=0o700)
            with suppress(FileNotFoundError):  # removed between the two calls
                descriptor = self._opened_lock()
                if try_lock(descriptor, shared=True) and is_at(descriptor, self.entry / _IN_USE):
                    os.utime(descriptor)
                    if not (self.entry / _FOLDER).exists():
                        write_atomically(
                            self.entry / _FOLDER, os.fsencode(self.folder), shared=True
                        )
                    return descriptor
                os.close(descriptor)
            time.sleep(_WAIT_S)

    def _opened_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self.entry / _IN_USE, flags, 0o600)

    def advise(self, error: AragError) -> None:
        """Replace the advice of an error of the index, which is for one with a name."""
        forget = f"arag-search forget {shlex.quote(self.folder)}"
        error.do = f"Remove it, so that the next search builds it again: {forget}"

    def remove(self) -> None:
        """Remove the index, if there is one, and what is known of it. Raises IndexLockedError if it
        is in use."""
        try:
            descriptor = self._opened_lock()
        except FileNotFoundError:
            return
        try:
            if not try_lock(descriptor):
                raise IndexLockedError(
                    "The index of this folder is in use.",
                    where=self.folder,
                    do="End the servers and searches that use it.",
                )
            forget_standing(self.location)
            shutil.rmtree(self.entry)
        finally:
            os.close(descriptor)


class KeptIndex:
    """The index of a folder as searches and servers keep it. It is built if there is none, updated
    with the files, and built again if it is damaged or of another version.

    ``progress`` shows builds and, in notes, what they leave out. ``watcher`` keeps the index in
    step with the folder.
    """

    def __init__(self, index: FolderIndex, progress: Progress) -> None:
        self.index = index
        self._progress = progress
        self.watcher = Watcher(
            [index.folder],
            index.location,
            OPTIONS,
            progress=progress,
            report=lambda report: [*map(progress.note, report.left_out_lines())],
            withdraw=self.withdraw,
        )

    def bring_in_step(self, *, fresh: bool) -> None:
        """Build the index if there is none. Otherwise synchronise it if ``fresh``, and else compare
        it with the files (see ``Watcher.compare``). Waits while another process builds or
        synchronises it. Raises what these raise."""
        while fresh or not self.index.exists:
            try:
                self.watcher.synchronise()
                if self.index.exists:  # and was not withdrawn
                    return
            except IndexLockedError:
                time.sleep(_WAIT_S)
            except IndexExistsError as error:
                if not self.index.exists:  # and otherwise another process has just built it
                    self.index.advise(error)
                    raise
        self.watcher.compare()

    def opened(self, open: Callable[[str], _T], there: Callable[[], object]) -> _T:
        """Open the index once it is ``there``, which waits or brings it in step, and again after an
        error that lets it be built again. Raises what both raise."""
        while True:
            there()
            state = self.index.state
            try:
                return open(str(self.index.location))
            except AragError as error:
                if not self.withdraw(error, state):
                    raise

    def withdraw(self, error: AragError, state: bytes | None) -> bool:
        """Let there be no index, so that it is built again, if ``error`` comes from damage of the
        index in this state, or its version. Those who read the index go on. Return whether this is
        done, or others did so; if it cannot be done, or was before, the error gets its advice."""
        index = self.index
        # A broken file may only show as an exception of Java, such as one for an odd length.
        is_odd = type(error) is EngineError
        if not is_odd and not isinstance(error, UNUSABLE):
            return False
        with _withdrawing:
            if index.state != state or not index.exists:
                return True
            if is_odd and self._is_sound():
                return False
            if index.location not in _withdrawn:
                _withdrawn.add(index.location)
                try:
                    self._take_back(state)
                    self._progress.note(f"The index of {index.folder} is built again. {error.what}")
                    self.watcher.wake()
                    return True
                except (AragError, OSError) as failure:
                    error.what += f" It cannot be built again: {str(failure).splitlines()[0]}"
            index.advise(error)
            return False

    def _is_sound(self) -> bool:
        try:
            with open_index(self.index.location) as index:
                if isinstance(index.engine, LuceneEngine):
                    index.engine.verify()
        except UNUSABLE:
            return False
        return True

    def _take_back(self, state: bytes | None) -> None:
        while self.index.state == state:
            try:
                with BuildSite(self.index.location, overwrite=True) as site:
                    site.withdraw(state)
            except IndexLockedError:
                time.sleep(_WAIT_S)


def folder_indexes() -> Iterator[FolderIndex]:
    """Yield the indexes of folders, the longest unused first."""
    used: list[tuple[float, FolderIndex]] = []
    for entry in _indexes().glob(f"*/{_FOLDER}"):
        with suppress(OSError):
            folder = os.fsdecode(entry.read_bytes())
            used_s = (entry.parent / _IN_USE).stat().st_mtime
            used.append((used_s, FolderIndex(folder, entry.parent)))
    for _, index in sorted(used, key=lambda pair: pair[0]):
        yield index


def remove_unused(max_bytes: int = MAX_CACHE_BYTES) -> None:
    """Remove indexes of folders, the longest unused first, until all take at most ``max_bytes``.
    Those in use stay."""
    sizes = {index: folder_bytes(index.entry) for index in folder_indexes()}
    total = sum(sizes.values())
    for index, size in sizes.items():
        if total <= max_bytes:
            return
        with suppress(IndexLockedError):
            index.remove()
            total -= size


def _indexes() -> Path:
    return cache_folder() / "folders"


def _digest(data: bytes, digits: int) -> str:
    return hashlib.sha256(data).hexdigest()[:digits]

"""Watching folders: an index follows its sources, by one synchronisation after another.

The system reports the paths that change; only their documents are read again. As reports can be
lost, and network file systems make none of the changes of other machines, the sizes and times of
all files are compared from time to time too.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arag_search.engines.lucene.location import published_state
from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    AragError,
    IndexLockedError,
    IndexNotFoundError,
    MassDeletionError,
)
from arag_search.search.standing import (
    Standing,
    identity_of,
    note_standing,
    now,
    standing_file,
    standing_of,
)
from arag_search.system.lock import HeldError, hold
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import AddReport, BuildReport
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.selection import IGNORE_FILE, IGNORED_FOLDERS, REPOSITORY
from index_jobs.updates.addition import AddOptions, Followed, sync_documents

LOOK_S = 15.0
"""Seconds between two comparisons of all files."""
RETRY_S = 5.0
"""Seconds after which a synchronisation that failed is tried again."""
PEAK_S = 3_600.0
"""Seconds for which deletions count together for the guard against mass deletions."""
MOST_PATHS = 2_000
"""The number of reported paths above which all files are compared instead."""

_STEP_MS, _DEBOUNCE_MS = 100, 1_000
"""A synchronisation begins when nothing was reported for the first time, at the latest after the
second."""
_LOCKED_S = 0.5
_LOOK_SHARE = 50  # comparisons take at most a fiftieth of the time
_logger = logging.getLogger(__name__)
_States = Mapping[str, tuple[int, str]]


def hold_watch(location: str | Path) -> int:
    """Return the descriptor of a lock that the watcher of an index holds. Raises HeldError."""
    file = standing_file(location, ".lock")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return hold(file, "arag-search watcher, process ")


class Watcher:
    """A watcher, which keeps an index in step with folders and files until it is stopped.

    An index has one at a time. The watcher builds the index if there is none; it skips bad files
    and records. It does not follow a mass deletion: the index keeps the documents and follows all
    other changes, and the problem stays noted until the files are back, or somebody synchronises
    the index with ``allow_deletes``.
    """

    def __init__(
        self,
        sources: Sequence[str],
        location: str | Path,
        build: BuildOptions,
        options: AddOptions | None = None,
        *,
        progress: Progress | None = None,
        report: Callable[[AddReport | BuildReport], object] = lambda report: None,
    ) -> None:
        """Take the options of the first build, and those of later updates (default: the same).
        ``progress`` shows the build and gets new problems as notes, ``report`` gets the report of
        each change, and of files that cannot be read."""
        update = options or AddOptions(build.format, build.fields, workers=build.workers)
        files = replace(build.files, skip_bad=True)
        roots = frozenset(map(os.path.realpath, sources))
        self._build = replace(build, files=replace(files, only=roots), skip_bad_lines=True)
        self._options = replace(update, files=files, skip_bad_lines=True)
        self._sources = list(sources)
        self._location = location
        self._progress = progress or Progress()
        self._report = report
        self._pending: set[str] | None = None
        """The paths that may have changed since the index was in step; None: any."""
        self._vanished: set[str] | None = set()
        """The paths that are gone although the index keeps their documents; None: some."""
        self._states: _States | None = {}
        self._peaks: list[tuple[float, int]] = []
        self._documents = -1
        self._published: bytes | None = None
        known = standing_of(location) or Standing(identity_of(location))
        self._state = replace(known, sources=tuple(map(os.path.abspath, sources)))

    def run(self, stop: threading.Event, *, waits: bool = True) -> None:
        """Watch until ``stop`` is set. While another watcher of the index runs, wait for its end
        or, unless this one ``waits``, raise IndexLockedError."""
        while True:
            try:
                descriptor = hold_watch(self._location)
                break
            except HeldError as error:
                if not waits:
                    raise IndexLockedError(
                        f"Another watcher keeps this index in step already ({error.holder}).",
                        where=str(self._location),
                        do="Stop it first, or leave it to do so.",
                    ) from None
                if stop.wait(_LOCKED_S):
                    return
        try:
            self._watch(stop)
        finally:
            stop.set()
            os.close(descriptor)

    def synchronise(self) -> None:
        """Build the index, or bring it in step once. A mass deletion is noted. Raises what
        ``build_index`` and ``sync_documents`` raise."""
        began = now()
        self._update(None)
        if self._vanished == set():
            self._note(problem="", in_step=began)

    def files(self) -> list[str]:
        """Return the paths of the files that are read now; none if they cannot be listed."""
        return sorted(self._file_states() or ())

    def _watch(self, stop: threading.Event) -> None:
        changes = _Changes(self._sources, stop, no_ignore=self._options.files.no_ignore)
        next_look = time.monotonic() + LOOK_S
        while not stop.is_set():
            pause_s = self._synchronise() if self._pending != set() else LOOK_S
            paths = changes.next(min(pause_s, next_look - time.monotonic()))
            is_due = time.monotonic() >= next_look
            if is_due or paths is None or len(paths) > MOST_PATHS:
                began = time.monotonic()
                self._look()
                took = time.monotonic() - began
                next_look = time.monotonic() + max(LOOK_S, took * _LOOK_SHARE)
            elif self._pending is not None:
                self._pending |= paths

    def _look(self) -> None:
        """Add to the pending paths those whose files are not as they were at the last look."""
        published = _published(self._location)
        if published != self._published and self._vanished != set():
            self._pending = None  # somebody may have deleted their documents
        if self._pending is None:
            return
        states = self._file_states()
        before, self._states = self._states, states
        if states is None or before is None:
            self._pending = None
            return
        self._pending |= {
            path for path in {*states, *before} if states.get(path) != before.get(path)
        }

    def _file_states(self) -> _States | None:
        """Return the size and time of each file of the sources by its real path; None if they
        cannot be listed, or are not files of folders."""
        files = self._options.files.rooted(self._sources)
        states: dict[str, tuple[int, str]] = {}
        try:
            opened = open_sources(
                self._sources,
                self._options.format,
                self._options.fields,
                MetadataReader(self._build.metadata),
                files,
            )
            for source in opened:
                if (own := source.states()) is None:
                    return None
                name, real = os.path.abspath(source.name), os.path.realpath(source.name)
                for relative, state in own.items():
                    path = os.path.join(files.root or "", relative)
                    states[real + path[len(name) :]] = state
        except AragError:
            return None
        return states

    def _synchronise(self) -> float:
        """Bring the index in step with the pending paths, and return the seconds after which to try
        again what could not be done."""
        began = now()
        pending, self._pending = self._pending, set()
        paths = None if pending is None or self._vanished is None else pending | self._vanished
        if paths is None:
            self._states = self._file_states()
        try:
            self._update(None if paths is None or self._states is None else frozenset(paths))
        except Exception as error:
            self._pending = pending
            if isinstance(error, IndexLockedError):
                return _LOCKED_S
            if not isinstance(error, AragError):  # nothing ends the watcher, such as an odd file
                _logger.exception("A synchronisation failed.")
            self._note(problem=str(error) or type(error).__name__)
            return RETRY_S
        self._published = _published(self._location)
        if self._vanished == set():
            self._note(problem="", in_step=began)
        return LOOK_S

    def _update(self, paths: frozenset[str] | None) -> None:
        try:
            peak = max((documents for _, documents in self._peaks), default=0)
            report = self._synchronised(Followed(paths, peak))
            self._vanished = set()
        except MassDeletionError as error:
            report = self._synchronised(Followed(paths, keeps_vanished=True))
            self._vanished = None if paths is None else set(paths)
            self._note(problem=str(error))
        except IndexNotFoundError:
            built = build_index(self._sources, self._location, self._build, self._progress)
            self._documents = built.documents
            self._tell(built, paths, is_news=True)
            return
        self._tell(report, paths, is_news=report.has_changes)

    def _tell(
        self, report: AddReport | BuildReport, paths: frozenset[str] | None, *, is_news: bool
    ) -> None:
        if paths is None:
            self._state = replace(self._state, left_out=tuple(report.left_out_lines()))
        if is_news or report.skipped_files:
            self._report(report)

    def _synchronised(self, followed: Followed) -> AddReport:
        options = replace(self._options, followed=followed)
        report = sync_documents(self._sources, self._location, options)
        while report.finished_before:  # what a killed process had done; files changed since
            report = sync_documents(self._sources, self._location, options)
        now = time.monotonic()
        before = report.documents - report.added + report.deleted
        if before != self._documents:  # others changed the index, by their own decision
            self._peaks.clear()
        self._documents = report.documents
        self._peaks = [peak for peak in self._peaks if peak[0] > now - PEAK_S]
        self._peaks.append((now, max(before, report.documents)))
        return report

    def _note(self, *, problem: str, in_step: str = "") -> None:
        """Note whether the index is in step, for other processes and, if it is news, for people."""
        before, self._state = (
            self._state,
            replace(self._state, problem=problem, in_step=in_step or self._state.in_step),
        )
        if problem and problem != before.problem:
            self._progress.note(f"The index is not in step. {problem}")
        note_standing(self._state)


class _Changes:
    """The changes below folders, as the system reports them to a thread.

    It reports none of those that other machines make on a network, none of single files, which
    editors replace, and none if it cannot watch so many folders.
    """

    def __init__(self, sources: Sequence[str], stop: threading.Event, *, no_ignore: bool) -> None:
        self._roots = [os.path.realpath(name) for name in sources]
        self._no_ignore = no_ignore
        self._stop = stop
        self._reported: queue.SimpleQueue[set[str] | None] = queue.SimpleQueue()
        has_reports = importlib.util.find_spec("watchfiles") is not None
        if has_reports and all(map(os.path.isdir, self._roots)):
            threading.Thread(target=self._listen, daemon=True, name="watching").start()

    def next(self, wait_s: float) -> set[str] | None:
        """Return the paths that changed, none after ``wait_s`` seconds without any; None if they
        are not known."""
        paths: set[str] = set()
        end = time.monotonic() + wait_s
        while not self._stop.is_set():
            left = end - time.monotonic()
            try:
                more = self._reported.get(timeout=max(0.0, min(left, _LOCKED_S)))
            except queue.Empty:
                if left <= 0:
                    break
                continue
            if more is None:
                return None
            paths |= more
            end = time.monotonic()
        return paths

    def _listen(self) -> None:
        """Put what is reported into the queue. If a folder is replaced, listen at the new one."""
        import watchfiles

        while not self._stop.is_set():
            identity = self._identity()
            listening = watchfiles.watch(
                *self._roots,
                watch_filter=self._is_of_interest,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=1_000,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
                force_polling=False,
                ignore_permission_denied=True,
            )
            try:
                for number, changes in enumerate(listening):
                    if number == 0:
                        self._reported.put(None)  # what changed before it listened
                    if changes:
                        self._reported.put(self._paths(changes))
                    elif self._identity() != identity:
                        break
            except OSError:
                if self._identity() == identity:  # no more folders can be watched
                    return
            self._stop.wait(1.0)

    def _paths(self, changes: set[tuple[Any, str]]) -> set[str] | None:
        paths = {path for _, path in changes}
        is_any = any(os.path.basename(path) in (IGNORE_FILE, "exclude") for path in paths)
        return None if is_any or not paths.isdisjoint(self._roots) else paths

    def _is_of_interest(self, change: object, path: str) -> bool:
        """Return whether a path may be that of a file that is indexed, or of rules for them."""
        del change
        root = next((root for root in self._roots if path.startswith(f"{root}/")), None)
        if root is None or self._no_ignore:
            return True
        *folders, name = path[len(root) + 1 :].split("/")
        is_rule = name == IGNORE_FILE or [*folders[-2:], name] == [REPOSITORY, "info", "exclude"]
        hidden = [part for part in folders if part.startswith(".") or part in IGNORED_FOLDERS]
        return is_rule or not (hidden or name.startswith("."))

    def _identity(self) -> list[tuple[int, int] | None]:
        return [_identity_of(root) for root in self._roots]


def _identity_of(folder: str) -> tuple[int, int] | None:
    try:
        state = os.stat(folder)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _published(location: str | Path) -> bytes | None:
    """Return what changes with every state of an index in a folder."""
    return None if is_address(str(location)) else published_state(Path(location))

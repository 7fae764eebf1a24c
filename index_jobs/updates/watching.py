"""Watching folders: an index follows its sources, by one synchronisation after another.

The system reports the paths that change; only their documents are read again. Reports can be lost,
and network file systems make none of the changes of other machines. So the sizes and times of all
files are compared from time to time too.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from arag_search.engines.lucene.location import published_state
from arag_search.engines.opensearch.address import is_address
from arag_search.errors import AragError, IndexLockedError, IndexNotFoundError, MassDeletionError
from arag_search.search.standing import (
    NAMED_FILES,
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
from index_jobs.sources.folders.ids import path_id
from index_jobs.sources.folders.selection import IGNORE_FILE, IGNORED_FOLDERS, REPOSITORY
from index_jobs.sources.folders.table import MOST_FILES, Comparison, FileTable, Following
from index_jobs.updates.options import Followed, SyncOptions
from index_jobs.updates.synchronisation import sync_documents

LOOK_S = 15.0
"""Seconds between two comparisons of all files."""
RETRY_S = 5.0
"""Seconds after which a synchronisation that failed is tried again."""
PEAK_S = 3_600.0
"""Seconds for which deletions count together for the guard against mass deletions."""
MOST_PATHS = 2_000
"""The number of reported paths above which all files are compared instead, and of files that are
converted in one update."""

_STEP_MS, _DEBOUNCE_MS = 100, 1_000
"""A synchronisation begins when nothing was reported for the first time, at the latest after the
second."""
_LOCKED_S = 0.5
_ANSWER_S = 2.0
"""Seconds that an answer waits for a short update that is under way."""
CONVERSION_S = 2.0
"""Seconds for which an answer waits for the conversion of files."""
SLICE_S = 10.0
"""Seconds of conversion after which a watcher first reads what has changed meanwhile."""
_MINUTE = len("2026-01-01T00:00")
_LOOK_SHARE = 50  # comparisons take at most a fiftieth of the time
_logger = logging.getLogger(__name__)


class Watcher:
    """A watcher, which keeps an index in step with folders and files until it is stopped.

    An index has one at a time. With options of a build, the watcher builds the index if there is
    none. It skips bad files and records. It does not follow a mass deletion: the index keeps the
    documents and follows all other changes. The problem stays noted until the files are back, or
    somebody synchronises the index with ``allow_deletes``.
    """

    def __init__(
        self,
        sources: Sequence[str],
        location: str | Path,
        options: BuildOptions | SyncOptions,
        *,
        progress: Progress | None = None,
        report: Callable[[AddReport | BuildReport], object] = lambda report: None,
        withdraw: Callable[[AragError, bytes | None], bool] = lambda error, state: False,
    ) -> None:
        """Take the options of a first build, which updates follow, or the options of updates alone.
        ``progress`` shows the build and gets new problems as notes, ``report`` gets the report of
        each change, and of files that cannot be read. ``withdraw`` is asked whether an index in
        which an error shows has been taken back, to be built again (default: never)."""
        files = replace(options.files, skip_bad_files=True)
        self._build: BuildOptions | None = None
        if isinstance(options, BuildOptions):
            roots = frozenset(map(os.path.realpath, sources))
            self._build = replace(options, files=replace(files, only=roots), skip_bad_lines=True)
            options = SyncOptions(options.format, options.fields, workers=options.workers)
        self._options = replace(options, files=files, skip_bad_lines=True)
        self._sources = list(sources)
        self._location = location
        self._progress = progress or Progress()
        self._report = report
        self._withdraw = withdraw
        self._following = Following.of(sources, options.format, options.fields, files)
        self._busy = threading.RLock()
        self._changes: _Changes | None = None
        self._is_slow = False
        """Whether an update is under way for which no answer waits."""
        self._missed: set[str] | None = set()
        """The paths of a synchronisation that failed; None: any."""
        self._held: set[str] = set()
        """The paths that are gone although the index keeps their documents."""
        self._peaks: list[tuple[float, int]] = []
        self._documents = -1
        self._published: bytes | None = None

    def run(self, stop: threading.Event, *, waits: bool = True) -> None:
        """Watch until ``stop`` is set. While another watcher of the index runs, wait for its end
        or, unless this one ``waits``, raise IndexLockedError."""
        file = standing_file(self._location, ".lock")
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            try:
                descriptor = hold(file, "arag-search watcher, process ")
                break
            except HeldError as error:
                if not waits:
                    raise IndexLockedError(
                        f"Another watcher keeps this index up to date already ({error.holder}).",
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
        with self._busy:
            self._update(None)

    def compare(self) -> None:
        """Compare all files before an answer, and note how the index stands beside them.

        Files that are gone are deleted, few and small ones are read, and others are converted for
        CONVERSION_S. The rest is left to ``run`` or to the next comparison. A file that takes
        longer alone is left to the user. Nothing is compared if the files are too many, or while a
        longer update is under way.
        """
        if self._is_slow or not self._busy.acquire(timeout=_ANSWER_S):
            return
        try:
            known, began = standing_of(self._location), now()
            is_few = known is None or known.files <= MOST_FILES
            files = self._compared(None) if is_few else None
            if files is None:
                if self._changes is None:
                    self._note(not_compared=known.files if known is not None else 1)
                return
            if self._is_known(files):
                if not files.changed:
                    self._in_step(began)
                return
            little, converted, _ = files.by_cost()
            steps = [(files.few(little), 0.0), (converted[:MOST_PATHS], CONVERSION_S)]
            is_done = False
            with suppress(IndexLockedError):
                is_done = self._read(files, steps)
            left = self._settled(files, began, is_done=is_done)
            if left and self._changes is not None:
                self._changes.report(left)
        finally:
            self._busy.release()

    def wake(self) -> None:
        """Let ``run`` compare all files at once."""
        if self._changes is not None:
            self._changes.report(None)

    def files(self) -> list[str]:
        """Return the paths of the files that are read now; none if they cannot be listed."""
        look = self._following.look()
        return [] if look is None else sorted(look.files)

    def _watch(self, stop: threading.Event) -> None:
        self._changes = changes = _Changes(
            self._sources, stop, no_ignore=self._options.files.no_ignore
        )
        next_look = time.monotonic()
        paths: set[str] | None = None
        while not stop.is_set():
            began = time.monotonic()
            if began >= next_look or paths is None or len(paths) > MOST_PATHS:
                paths = None
            pause_s = self._follow(paths)
            if paths is None:
                took = time.monotonic() - began
                next_look = time.monotonic() + max(LOOK_S, took * _LOOK_SHARE)
            paths = changes.next(min(pause_s, next_look - time.monotonic()))

    def _follow(self, paths: set[str] | None) -> float:
        """Bring the index in step with what has changed of all files, or of those at and below
        paths. Return the seconds after which to try again what could not be done."""
        with self._busy:
            missed, self._missed = self._missed, set()
            paths = None if paths is None or missed is None or self._held else paths | missed
            if paths == set():
                return LOOK_S
            began = now()
            files = self._compared(paths)
            if files is not None and self._is_known(files):
                if paths is None and not files.changed:
                    self._in_step(began)
                return LOOK_S
            self._is_slow = files is None or not files.is_small
            try:
                if files is None:
                    return LOOK_S if self._try(None) else RETRY_S
                little, converted, long = files.by_cost()
                dear = (converted[:MOST_PATHS], SLICE_S) if converted else (long[:1], math.inf)
                is_done = self._read(files, [(little, 0.0), dear])
            except IndexLockedError:
                self._missed = None if files is None else files.changed
                return _LOCKED_S
            finally:
                self._is_slow = False
            left = self._missed = self._settled(files, began, is_done=is_done)
            if not left:
                return LOOK_S
            return 0.0 if is_done and len(left) < len(files.changed) else RETRY_S

    def _compared(self, paths: set[str] | None) -> Comparison | None:
        """Compare all files, or the files at and below paths, with the files that the index has
        read. None if these are not known."""
        look = self._following.look(paths)
        table = FileTable.read(self._location, self._following.digest())
        if look is None or table is None or _published(self._location) is None:
            return None
        return Comparison(look, table, table.changed(look, paths), paths is None)

    def _read(self, files: Comparison, steps: Sequence[tuple[list[str], float]]) -> bool:
        """Delete what is gone and read changed files, in an update for each step, which has the
        seconds that conversions may take. Return whether that succeeded. Raises IndexLockedError.
        """
        self._note_changed(files)
        gone = files.changed - files.look.files.keys()
        new = files.changed - files.table.files.keys()
        for paths, within_s in steps:
            now_read = gone.union(paths)
            new, gone = new - now_read, set[str]()
            if now_read and not self._try(now_read, within_s=within_s, coming=len(new)):
                return False
        return True

    def _settled(self, files: Comparison, began: str, *, is_done: bool) -> set[str]:
        """Note how the index stands after changed files were read, and return the paths of files
        that are still to be read. ``is_done`` says that no update failed."""
        after = self._compared(files.changed)
        if after is None:
            return files.changed
        if files.is_whole:
            self._note(not_read=files.look.not_read(after.table.unread))
        self._note_changed(after)
        if is_done and not self._held:
            self._note(problem="")
        if not after.changed:
            self._in_step(began)
        return after.changed - self._held

    def _try(self, changed: set[str] | None, **how: Any) -> bool:
        """Synchronise the index, and return whether that succeeded. A failure is noted. ``how`` is
        what it followed beside the paths. Raises IndexLockedError."""
        try:
            self._update(changed, **how)
        except IndexLockedError:
            raise
        except Exception as error:  # nothing ends the watcher, such as an odd file
            if not isinstance(error, AragError):
                _logger.exception("An update failed.")
            self._missed = changed
            self._note(problem=str(error) or type(error).__name__)
            return False
        return True

    def _in_step(self, moment: str) -> None:
        """Note that nothing had changed at a moment, from time to time."""
        known = self._standing()
        if known.line() or known.in_step[:_MINUTE] != moment[:_MINUTE]:
            note_standing(known.now_in_step(moment))

    def _is_known(self, files: Comparison) -> bool:
        """Return whether nothing has changed but the files that are gone and held. False if
        somebody else has changed the index meanwhile, who may have deleted their documents."""
        if not self._held:
            return not files.changed
        is_same = files.changed == self._held and files.changed.isdisjoint(files.look.files)
        return is_same and _published(self._location) == self._published

    def _update(self, changed: set[str] | None, **how: Any) -> None:
        paths = None if changed is None else frozenset(changed | self._held)
        published = _published(self._location)
        try:
            peak = max((documents for _, documents in self._peaks), default=0)
            report = self._synchronised(Followed(paths, peak, **how))
            self._held = set()
        except MassDeletionError as error:
            report = self._synchronised(Followed(paths, keeps_vanished=True, **how))
            files = self._compared(None)
            self._held = set() if files is None else files.changed - files.look.files.keys()
            if not how.get("coming"):  # else the next step may add what replaces them
                self._note(problem=str(error))
        except IndexNotFoundError:
            if self._build is None:
                raise
            built = build_index(self._sources, self._location, self._build, self._progress)
            self._documents = built.documents
            self._report(built)
            return
        except AragError as error:
            if not self._withdraw(error, published):
                raise
            return
        finally:
            self._published = _published(self._location)
        if report.has_changes or report.skipped_files:
            self._report(report)

    def _synchronised(self, followed: Followed) -> AddReport:
        workers = 0 if followed.within_s < SLICE_S else self._options.workers
        options = replace(self._options, followed=followed, workers=workers)
        report = None
        while report is None or report.finished_before:  # by a killed process; files changed since
            report = sync_documents(self._sources, self._location, options, wait_s=0.0)
        now = time.monotonic()
        before = report.documents - report.added + report.deleted
        if before != self._documents:  # others changed the index, by their own decision
            self._peaks.clear()
        self._documents = report.documents
        self._peaks = [peak for peak in self._peaks if peak[0] > now - PEAK_S]
        self._peaks.append((now, max(before, report.documents)))
        return report

    def _note_changed(self, files: Comparison) -> None:
        long = files.by_cost()[2]
        named = sorted(files.changed, key=lambda path: (path not in long, path))[:NAMED_FILES]
        self._note(
            changed_files=len(files.changed),
            changed=tuple(path_id(os.path.basename(path)) for path in named),
            slow_files=len(long),
        )

    def _standing(self) -> Standing:
        """Return how the index stands, as far as that is known."""
        sources = tuple(map(os.path.realpath, self._sources))
        return standing_of(self._location) or Standing(identity_of(self._location), sources)

    def _note(self, **known: Any) -> None:
        """Note what is known of the index, for answers, other processes and, if it is a new
        problem, for people."""
        before = self._standing()
        problem = known.get("problem")
        if problem and problem != before.problem:
            self._progress.note(f"The index is behind. {problem}")
        if (standing := replace(before, **known)) != before:
            note_standing(standing)


class _Changes:
    """The changes below folders, as the system reports them to a thread.

    It reports no changes that other machines make on a network, and none of single files, which
    editors replace. It reports none at all if it cannot watch so many folders.
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

    def report(self, paths: set[str] | None) -> None:
        """Report paths that were found to have changed; None for any."""
        self._reported.put(paths)

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
            except RuntimeError:  # of the library, such as for a name that is not UTF-8
                _logger.debug("The system's reports are listened to again.", exc_info=True)
            self._stop.wait(1.0)

    def _paths(self, changes: set[tuple[Any, str]]) -> set[str] | None:
        paths = {path for _, path in changes}
        is_any = any(os.path.basename(path) in (IGNORE_FILE, "exclude") for path in paths)
        return None if is_any or not paths.isdisjoint(self._roots) else paths

    def _is_of_interest(self, change: object, path: str) -> bool:
        """Return whether a path may belong to a file that is indexed, or to rules for files."""
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
    """Return what changes with every state of an index in a folder; None if there is no index."""
    return b"" if is_address(str(location)) else published_state(Path(location))

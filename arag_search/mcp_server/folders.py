"""Folders of files that a server serves: it builds their indexes, and watches the files, while it
answers."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple

from arag_search.errors import AragError, IndexProblemError, UnavailableError, VectorsError
from arag_search.search.standing import standing_of
from arag_search.system.progress import PlainProgress
from index_jobs.updates.folder_index import FolderIndex, KeptIndex

END_S = 2.0
"""Seconds that a synchronisation may take to end with the server. The next watcher repeats a
synchronisation that is cut off."""

_LOOK_S = 0.1
_AGAIN_S = 2.0

_logger = logging.getLogger(__name__)


class Coming(NamedTuple):
    """How far the build of an index is that is not there yet: of ``total`` steps (None: unknown),
    ``done`` are done. ``text`` says so in words, or why there is none if it ``has_failed``; then no
    request waits for it."""

    text: str
    done: int = 0
    total: int | None = None
    has_failed: bool = False

    def error(self) -> UnavailableError:
        """Return the error of a request that does not wait for the index."""
        return UnavailableError(self.text, do="Ask again in a moment.")


class ServedFolder:
    """The index of a folder, in step with it while this context manager is open.

    It may be being built, for the first time or again; ``coming`` says how far that is. ``serve``
    opens it once it is there.
    """

    def __init__(
        self,
        index: FolderIndex,
        open: Callable[[str], object],
        *,
        fresh: bool = False,
    ) -> None:
        """Take the index, which is brought in step before it is served if ``fresh``. ``open`` gets
        its location once."""
        self._open = open
        self._is_open = False
        self._failure = ""
        self._fresh = fresh
        self.index = index
        self._counted = _Counted(sys.stderr)
        self._kept = KeptIndex(index, self._counted)
        self._stop = threading.Event()
        self._files = 0
        self._was_there = False
        self._held = ExitStack()
        run = partial(self._kept.watcher.run, self._stop)
        self._thread = threading.Thread(target=run, daemon=True, name="watcher")

    def __enter__(self) -> ServedFolder:
        self._held.enter_context(self.index.held())
        if self._fresh:
            self._kept.bring_in_step(fresh=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._held.close()

    def stop(self) -> bool:
        """Stop the watcher, and return whether it has ended."""
        self._stop.set()
        self._thread.join(END_S)
        return not self._thread.is_alive()

    def compare(self) -> None:
        """Compare the files before an answer (see ``Watcher.compare``)."""
        if self.index.exists:
            self._kept.watcher.compare()

    def serve(self, *, waits: bool) -> None:
        """Open the index once it is there, at once if it is. Otherwise, and where it is built
        again, that is waited for here if ``waits``, else in a thread. Raises what opening raises,
        where the index is there or waited for."""
        if waits:
            self._open_once_there()
        elif self.building() is None:
            with suppress(IndexProblemError):
                self._open_now(str(self.index.location))
        if not self._is_open:
            threading.Thread(target=self._await, daemon=True).start()

    def _open_now(self, location: str) -> None:
        self._open(location)
        self._is_open = True

    def _open_once_there(self) -> None:
        with suppress(_Ended):
            self._kept.opened(self._open_now, self._wait)

    def _await(self) -> None:
        while True:
            try:
                self._open_once_there()
            except AragError as error:
                if str(error) != self._failure:
                    _logger.error("%s", error)
                self._failure = str(error)
                if not isinstance(error, VectorsError):
                    return
                time.sleep(_AGAIN_S)  # the vectors that its tools need may be made meanwhile
            else:
                self._failure = ""
                return

    def coming(self) -> Coming | None:
        """Return how far the index is, or why it cannot be opened; None if it is served."""
        if self._failure:
            return Coming(self._failure, has_failed=True)
        if (building := self.building()) is not None or self._is_open:
            return building
        return Coming("The index is being opened.")

    def building(self) -> Coming | None:
        """Return how far the build is; None if there is an index."""
        if self.index.exists:
            self._was_there, self._counted.count = True, 0
            return None
        state = standing_of(self.index.location)
        if state is not None and state.problem:
            return Coming(f"The folder cannot be indexed. {state.problem}", has_failed=True)
        done = self._counted.count
        of = f" of {self._files:,}" if self._files else ""
        what = "is being built again" if self._was_there else "of the folder is being built"
        text = f"The index {what}: {done:,}{of} files so far."
        return Coming(text, done, self._files or None)

    def withdraw(self, error: AragError) -> bool:
        """Return whether the index, in which a call met an error, is built again."""
        if is_withdrawn := self._kept.withdraw(error, self.index.state):
            self._files = len(self._kept.watcher.files())
        return is_withdrawn

    def _wait(self) -> None:
        if not self.index.exists:
            self._files = len(self._kept.watcher.files())
        while not self.index.exists:
            if self._stop.wait(_LOOK_S):
                raise _Ended


class _Ended(Exception):
    """The end of the server, before there is an index."""


class _Counted(PlainProgress):
    """The display of the first build, which also remembers the count of documents."""

    count = 0

    def update(self, done: int, count: int, details: str = "") -> None:
        self.count = count
        super().update(done, count, details)

"""Following an index: it is opened again when another state of it is published.

Every use of the index is of one state. It goes on with that state even if another is opened
meanwhile; the old one is closed when its last use has ended. Somebody who reads further pages of a
result gets them from the state of its first page.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from arag_search.errors import AragError, IndexClosedError
from arag_search.search.state import IndexState

KEPT_STATES = 16
"""The maximum number of old states that are kept for further pages."""
KEPT_RESULTS = 1_024
"""The maximum number of results whose states are kept."""
KEPT_S = 300.0
"""Seconds after the last page of a result for which its state is kept."""

_RETRY_S = 1.0
_T = TypeVar("_T")
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class FollowedState(Generic[_T]):
    """An open state of an index: what is used of it, whether another has been published since,
    and how it is closed. ``uses`` counts the uses that have not ended."""

    value: _T
    is_outdated: Callable[[], bool]
    close: Callable[[], None]
    uses: int = 0


class Follower(Generic[_T]):
    """The newest state of an index. Threads may share it.

    If the newest state cannot be opened, the one before it stays in use, and the log says why.
    """

    def __init__(
        self,
        open_newest: Callable[[], FollowedState[_T]],
        every_s: float = 0.0,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the index. At most every ``every_s`` seconds a use looks whether another state is
        published. ``on_end`` is called when the last state has been closed. Raises what
        ``open_newest`` raises."""
        self._open = open_newest
        self._on_end = on_end
        self._every_s = every_s
        self._changing = threading.Lock()
        self._looking = threading.Lock()
        self._results: OrderedDict[Hashable, tuple[FollowedState[_T], float]] = OrderedDict()
        self._failure = ""
        self._closed = False
        self._states = [open_newest()]
        self._next_look_s = time.monotonic() + every_s

    @contextmanager
    def use(self, result: Hashable | None = None, *, continues: bool = False) -> Generator[_T]:
        """Use one state during the block: the newest, or, if the block ``continues`` a result, the
        state of that result while it is kept. Raises IndexClosedError."""
        self._look()
        with self._changing:
            if self._closed:
                raise IndexClosedError("The index is closed.", do="Open it again with open_index.")
            state = self._states[-1]
            if continues and result in self._results:
                state = self._results[result][0]
            state.uses += 1
            if result is not None:
                self._results[result] = state, time.monotonic()
                self._results.move_to_end(result)
                if len(self._results) > KEPT_RESULTS:
                    self._results.popitem(last=False)
        try:
            yield state.value
        finally:
            with self._changing:
                state.uses -= 1
            self._close_unused()

    def close(self) -> None:
        """Close the states. Those in use are closed when their uses end."""
        with self._looking, self._changing:  # a state that is being opened would outlive the end
            self._closed = True
        self._close_unused()

    def _look(self) -> None:
        """Open the newest state if there is another one than the one in use. One thread does so;
        others go on meanwhile."""
        if time.monotonic() < self._next_look_s or not self._looking.acquire(blocking=False):
            return
        try:
            if self._closed or not self._states[-1].is_outdated():
                self._next_look_s = time.monotonic() + self._every_s
                return
            newest = self._open()
            with self._changing:
                self._states.append(newest)
            self._failure = ""
        except AragError as error:
            if str(error) != self._failure:
                self._failure = str(error)
                _logger.warning("The state before the newest one stays in use. %s", error)
            self._next_look_s = time.monotonic() + _RETRY_S
        finally:
            self._looking.release()
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the states that are neither the newest nor in use nor kept for further pages."""
        if len(self._states) == 1 and not self._closed:
            return
        with self._changing:
            since = time.monotonic() - KEPT_S
            for result, (state, used_s) in list(self._results.items()):
                if self._closed or used_s < since or state not in self._states[-KEPT_STATES - 1 :]:
                    del self._results[result]
            kept = [state for state, _ in self._results.values()]
            newest = [] if self._closed else self._states[-1:]
            unused = [s for s in self._states if not s.uses and s not in kept and s not in newest]
            self._states = [state for state in self._states if state not in unused]
            is_end = self._closed and bool(unused) and not self._states
        for state in unused:
            state.close()
        if is_end:
            self._on_end()


class States(Protocol):
    """The states of an index. A call uses one of them, from its beginning to its end."""

    def use(
        self, result: Hashable | None = None, *, continues: bool = False
    ) -> AbstractContextManager[IndexState]:
        """Use one state during the block, as ``Follower.use`` does. Raises IndexClosedError."""
        ...


class OneState:
    """The only state of an index that does not follow updates."""

    def __init__(self, state: IndexState) -> None:
        self._use = nullcontext(state)

    def use(
        self, result: Hashable | None = None, *, continues: bool = False
    ) -> AbstractContextManager[IndexState]:
        del result, continues
        return self._use


class PartStates:
    """The part of each state that a filter admits, made once for a state. A use raises QueryError
    for the filter."""

    def __init__(self, whole: States, filter: str) -> None:
        self._whole, self._filter = whole, filter
        self._last: tuple[IndexState, IndexState] | None = None

    @contextmanager
    def use(
        self, result: Hashable | None = None, *, continues: bool = False
    ) -> Generator[IndexState]:
        own = None if result is None else (self._filter, result)
        with self._whole.use(own, continues=continues) as whole:
            yield self._part(whole)

    def _part(self, whole: IndexState) -> IndexState:
        last = self._last
        if last is None or last[0] is not whole:
            last = self._last = whole, whole.within(self._filter)
        return last[1]

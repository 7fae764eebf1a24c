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

from arag_search.errors import AragError, IndexClosedError, IndexNotFoundError
from arag_search.search.state import IndexState

KEPT_STATES = 16
"""The maximum number of old states that are kept for further pages."""
KEPT_RESULTS = 1_024
"""The maximum number of results whose states are kept."""
KEPT_S = 300.0
"""Seconds after the last page of a result for which its state is kept."""

_RETRY_S = 1.0
_T = TypeVar("_T")
_R = TypeVar("_R")
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class FollowedState(Generic[_T]):
    """An open state of an index: the ``value`` that is used, whether another state has been
    published since, and how to close it. ``uses`` counts the uses that have not ended."""

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
        self.failures = 0
        """How often a newer state could not be opened."""
        self._closed = False
        self._beside: threading.Thread | None = None
        self._states = [open_newest()]
        self._next_look_s = time.monotonic() + every_s

    def answer(
        self, ask: Callable[[_T], _R], result: Hashable = None, *, continues: bool = False
    ) -> _R:
        """Return what ``ask`` makes of the state that ``use`` would use.

        If it is time to look for another state, the server is asked at the same moment. The answer
        waits for that and, if the index is gone, asks at once. If there is another state by then,
        ``ask`` is called once more, on that one.
        """
        looking = self._looking_beside()
        with self._held(result, continues=continues) as state:
            try:
                outcome = ask(state.value)
            except AragError as error:
                outcome = error
        if looking is not None:
            looking.join()
        elif isinstance(outcome, IndexNotFoundError):
            self._look(at_once=True)
        if looking is not None or isinstance(outcome, AragError):
            with self._held(result, continues=continues) as newest:
                if newest is not state:
                    return ask(newest.value)
        if isinstance(outcome, AragError):
            raise outcome
        return outcome

    @contextmanager
    def use(self, result: Hashable = None, *, continues: bool = False) -> Generator[_T]:
        """Use one state during the block: the newest, or, if the block ``continues`` a result, the
        state of that result while it is kept. Raises IndexClosedError."""
        self._look()
        with self._held(result, continues=continues) as state:
            yield state.value

    @contextmanager
    def _held(self, result: Hashable, *, continues: bool) -> Generator[FollowedState[_T]]:
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
            yield state
        finally:
            with self._changing:
                state.uses -= 1
            self._close_unused()

    def close(self) -> None:
        """Close the states. A state in use is closed when its uses end."""
        with self._looking, self._changing:  # a state that is being opened would outlive the end
            self._closed = True
        self._close_unused()

    def _looking_beside(self) -> threading.Thread | None:
        """Return the thread that looks for another state, which begins if it is time. A look that
        asks no server is over at once, and needs none."""
        if not self._every_s:
            return self._look()
        with self._changing:
            if self._beside is None or not self._beside.is_alive():
                if time.monotonic() < self._next_look_s:
                    return None
                self._beside = threading.Thread(target=self._look, daemon=True)
                self._beside.start()
            return self._beside

    def _look(self, *, at_once: bool = False) -> None:
        """Open the newest state if it is not in use yet, and if it is time or ``at_once``. One
        thread does so; others go on meanwhile."""
        is_due = at_once or time.monotonic() >= self._next_look_s
        if not is_due or not self._looking.acquire(blocking=at_once):
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
            self.failures += 1
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
        self, result: Hashable = None, *, continues: bool = False
    ) -> AbstractContextManager[IndexState]:
        """Use one state during the block, as ``Follower.use`` does. Raises IndexClosedError."""
        ...

    def answer(
        self, ask: Callable[[IndexState], _R], result: Hashable = None, *, continues: bool = False
    ) -> _R:
        """Return what ``ask`` makes of one state, as ``Follower.answer`` does."""
        with self.use(result, continues=continues) as state:
            return ask(state)


class OneState(States):
    """The only state of an index that does not follow updates."""

    def __init__(self, state: IndexState) -> None:
        self._use = nullcontext(state)

    def use(
        self, result: Hashable = None, *, continues: bool = False
    ) -> AbstractContextManager[IndexState]:
        del result, continues
        return self._use


class PartStates:
    """The part of each state that a filter admits, made once for a state. A use raises QueryError
    for the filter."""

    def __init__(self, whole: States, filter: str) -> None:
        self._whole, self._filter = whole, filter
        self._last: tuple[IndexState, IndexState] | None = None

    def answer(
        self, ask: Callable[[IndexState], _R], result: Hashable = None, *, continues: bool = False
    ) -> _R:
        own = None if result is None else (self._filter, result)
        return self._whole.answer(lambda whole: ask(self._part(whole)), own, continues=continues)

    @contextmanager
    def use(self, result: Hashable = None, *, continues: bool = False) -> Generator[IndexState]:
        own = None if result is None else (self._filter, result)
        with self._whole.use(own, continues=continues) as whole:
            yield self._part(whole)

    def _part(self, whole: IndexState) -> IndexState:
        last = self._last
        if last is None or last[0] is not whole:
            last = self._last = whole, whole.within(self._filter)
        return last[1]

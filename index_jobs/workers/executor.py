"""Work on items, at once or one after the other, whose results come back in the order of the items.

The item itself, such as a batch of a build, a block of its sources or a piece of an embedding,
stays in this process. A worker gets its payload and returns the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

_TICK_S = 1.0


class Submitted(Protocol):
    """An item of work."""

    @property
    def payload(self) -> Any:
        """The part of the item that the work needs; it is pickled for other processes."""
        ...


Item = TypeVar("Item", bound=Submitted)
Done = TypeVar("Done")


class Executor(ABC, Generic[Item, Done]):
    """A context manager that works on items: ``ThisProcess``, ``ProcessPool``, ``ClusterExecutor``.

    Entering may raise BuildError. Leaving ends what is under way, however the job ends.
    """

    def __init__(self, most: int) -> None:
        """Let at most ``most`` items be pending, so that memory does not grow."""
        self._most = most
        self._pending: deque[tuple[Item, Any]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pending.clear()

    @property
    def under_way(self) -> Sequence[Item]:
        """The items that were submitted and not yet taken, in order."""
        return [item for item, _ in self._pending]

    def submit(self, item: Item) -> None:
        """Begin to work on an item."""
        self._pending.append((item, self._start(item.payload)))

    def take(self) -> tuple[Item, Done]:
        """Wait for the next item and return it with its result. Raises what the work raised, and
        WorkerLostError."""
        item, handle = self._pending[0]
        done = self._result(handle)
        self._pending.popleft()
        return item, done

    def results(self, items: Iterable[Item]) -> Iterator[tuple[Item, Done] | None]:
        """Work on items, and yield each with its result, in order, and None every second in which
        none is done.

        Raises what ``take`` raises. An error of ``items`` comes after the results of the items
        before it, whose own errors come first.
        """
        waiting = iter(items)
        problem: Exception | None = None
        while problem is None:
            try:
                item = next(waiting)
            except Exception as error:
                problem = error
            else:
                self.submit(item)
                while self._pending and (len(self._pending) >= self._most or self._is_done(0)):
                    yield self._next_result()
        while self._pending:
            yield self._next_result()
        if not isinstance(problem, StopIteration):
            raise problem

    def _next_result(self) -> tuple[Item, Done] | None:
        return self.take() if self._is_done(_TICK_S) else None

    def _is_done(self, timeout_s: float) -> bool:
        return self._wait(self._pending[0][1], timeout_s)

    @abstractmethod
    def _start(self, payload: Any) -> Any:
        """Begin to work on a payload, and return a handle of the result."""

    @abstractmethod
    def _wait(self, handle: Any, timeout_s: float) -> bool:
        """Wait for a result, and return whether it is there."""

    @abstractmethod
    def _result(self, handle: Any) -> Done:
        """Return a result. Raises what the work raised, and WorkerLostError."""


class ThisProcess(Executor[Item, Done]):
    """An Executor that works on each item when its result is taken."""

    def __init__(self, work: Callable[[Any], Done]) -> None:
        super().__init__(most=1)
        self._work = work

    def _start(self, payload: Any) -> Any:
        return payload

    def _wait(self, handle: Any, timeout_s: float) -> bool:
        return True

    def _result(self, handle: Any) -> Done:
        return self._work(handle)

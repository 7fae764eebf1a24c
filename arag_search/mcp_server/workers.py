"""Blocking calls in threads, with bounds on running calls, waiting calls and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import anyio

from arag_search.errors import UnavailableError

AT_ONCE = 8
"""The maximum number of calls that run at the same time."""
WAITING = 248
"""The maximum number of calls that may wait; any more are rejected."""
TIMEOUT_S = 120.0
"""Seconds until a call times out, including its wait; longer than an engine keeps retrying."""
GRACE_S = 5.0
"""Seconds to wait for running calls at the end."""

_Result = TypeVar("_Result")


class Workers:
    """A few threads that run calls.

    A query ends by itself (``--search-timeout-s``), and cannot be stopped from outside. If a call
    was cancelled or took too long, nobody waits for it any more, but it keeps its place until the
    engine is done with it. A call that has not started releases its place at once.
    """

    def __init__(
        self, *, at_once: int = AT_ONCE, waiting: int = WAITING, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.most = at_once + waiting
        self.timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="mcp-call")
        self._calls: set[Future[Any]] = set()

    @property
    def busy(self) -> int:
        """The number of calls that run or wait."""
        return len(self._calls)

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Run a call and return its result, or raise its exception. Raises UnavailableError if
        no place is left, or if the call takes too long."""
        if self.busy >= self.most:
            raise UnavailableError(
                f"{self.busy} calls are running or waiting.",
                allowed=f"at most {self.most} at a time",
                do="Try again in a moment.",
            )
        future = self._threads.submit(call)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        with anyio.move_on_after(self.timeout_s):
            return await asyncio.wrap_future(future)
        raise UnavailableError(
            f"The call timed out after {self.timeout_s:g} s.",
            do="Try again in a moment, or ask for less.",
        )

    def close(self, grace_s: float = GRACE_S) -> bool:
        """Accept no more calls, drop those that wait, and wait at most ``grace_s`` seconds for
        the others; return whether all are done."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._calls), grace_s).not_done

"""Blocking calls in threads, with bounds on running calls, waiting calls and time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

import anyio

from arag_search.errors import BusyError
from arag_search.mcp_server.turns import Turns

AT_ONCE = 8
"""The default of the calls that run at the same time."""
WAITING = 248
"""The maximum number of calls of a client that may wait; any more are rejected."""
TIMEOUT_S = 120.0
"""Seconds until a call times out, including its wait; longer than an engine keeps retrying."""
GRACE_S = 2.0
"""Seconds to wait at the end for running calls, whose clients have gone."""
_BESIDE = 32
"""The number of threads for what is no call."""

_Result = TypeVar("_Result")
_Waiting = tuple[Future[Any], Callable[[], Any]]


class Workers:
    """A few threads that run the calls of clients, in turn (see ``Turns``). If several clients
    share them, one of eight is kept for clients without a running call.

    A query ends by itself (``--search-timeout-s``), and cannot be stopped from outside. If a call
    was cancelled or took too long, nobody waits for it any more. It keeps its place until the
    engine is done with it. A call that has not started releases its place at once.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        *,
        is_shared: bool = False,
        waiting: int = WAITING,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.most_waiting, self.timeout_s = waiting, timeout_s
        kept = max(1, at_once // AT_ONCE) if is_shared else 0
        self.turns = Turns[_Waiting](at_once, kept=kept)
        self._changing = threading.Lock()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="mcp-call")
        self._beside = ThreadPoolExecutor(_BESIDE, thread_name_prefix="mcp-beside")
        self._calls: set[Future[Any]] = set()

    @property
    def busy(self) -> int:
        """The number of calls that run or wait."""
        return len(self._calls)

    async def run(self, call: Callable[[], _Result], client: Hashable = None) -> _Result:
        """Run a call of a client and return its result, or raise its exception. Raises BusyError if
        too many calls of the client wait, or if the call takes too long."""
        waiting: _Waiting = Future(), partial(copy_context().run, call)
        with self._changing:
            if len(self.turns.waiting.get(client, ())) >= self.most_waiting:
                raise BusyError(
                    "Too many calls of this client are waiting.",
                    allowed=f"at most {self.most_waiting} that wait",
                    do="Try again in a moment.",
                )
            self.turns.add(client, waiting)
        waiting[0].add_done_callback(partial(self._leave, client, waiting))
        self._start()
        return await self._result(waiting[0])

    async def beside(self, call: Callable[[], _Result]) -> _Result:
        """Run what no client waits in turn for, such as a list of tools, and return its result. It
        starts at once, beside the calls, and is never refused."""
        return await self._result(self._beside.submit(copy_context().run, call))

    def close(self, grace_s: float = GRACE_S) -> bool:
        """Accept no more calls and drop the calls that wait. Wait at most ``grace_s`` seconds for
        the others, and return whether all are done."""
        for future in list(self._calls):
            future.cancel()  # those that run go on
        for threads in (self._threads, self._beside):
            threads.shutdown(wait=False)
        return not wait(list(self._calls), grace_s).not_done

    async def _result(self, future: Future[_Result]) -> _Result:
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        with anyio.move_on_after(self.timeout_s):
            return await asyncio.wrap_future(future)
        raise BusyError(
            f"The call timed out after {self.timeout_s:g} s.",
            do="Try again in a moment, or ask for less.",
        )

    def _start(self) -> None:
        with self._changing:
            while (turn := self.turns.start()) is not None:
                self._threads.submit(self._work, *turn)

    def _work(self, client: Hashable, waiting: _Waiting) -> None:
        future, call = waiting
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
        with self._changing:
            self.turns.end(client)
        self._start()

    def _leave(self, client: Hashable, waiting: _Waiting, _: object) -> None:
        with self._changing:
            if waiting in self.turns.waiting.get(client, ()):
                self.turns.leave(client, waiting)

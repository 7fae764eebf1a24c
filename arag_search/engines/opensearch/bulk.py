"""Bulk requests of bounded size, which write each document once, or delete it.

Documents are sent with ``create``. If one exists already (status 409), it was written by a request
whose answer was lost, or before the build was interrupted. Sending it again with ``index`` would
leave a deleted document behind, which changes scores.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import orjson

from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.faults import deepest_reason, fault_of_reply
from arag_search.engines.write import BulkCounts
from arag_search.errors import BuildError, RefusedError, UnavailableError

MAX_BULK_BYTES = 8 << 20
FIRST_BULK_BYTES = 1 << 20
"""The first bulks are small, so that the server starts early; they grow as they are accepted."""
MIN_BULK_BYTES = 64 << 10
NODE_WAIT_S = 600.0
"""How long to wait for a node that is lost or overloaded."""
SENDERS = 2
"""Concurrent requests, so that one is prepared while the server works on another."""

_NOT_FOUND, _EXISTS, _TOO_LARGE = 404, 409, 413
BULK_TIMEOUT_S = 120.0
_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 5.0
_REPLY = "items.*.status,items.*.error"
_REPORT_S = 3.0
_RUN_AGAIN = "Then run the same command again to resume."


class Bulks:
    """A sender of documents and deletions, with its own threads. Not safe to use from several
    threads."""

    def __init__(
        self,
        client: Client,
        where: str,
        *,
        max_bytes: int = MAX_BULK_BYTES,
        node_wait_s: float = NODE_WAIT_S,
        senders: int = SENDERS,
        pause: Callable[[float], None] = time.sleep,
        note: Callable[[str], None] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Start without documents.

        ``where`` names the index in errors. A request has at most ``max_bytes`` unless it is one
        document. ``note`` is called, in a thread, with messages about waiting, and ``check``
        before each request.
        """
        self.counts = BulkCounts()
        self._client = client
        self._where = where
        self._max_bytes = max_bytes
        self._limit = min(max_bytes, FIRST_BULK_BYTES)
        self._node_wait_s = node_wait_s
        self._senders = senders
        self._pause = pause
        self._note = note
        self._check = check
        self._is_reported = False
        self._lines: list[bytes] = []
        self._size = 0
        self._threads = ThreadPoolExecutor(senders, thread_name_prefix="arag-bulk")
        self._running: deque[Future[BulkCounts]] = deque()

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Add documents made by ``bulk_line``, or else deletions by ``deletion_line``. They may be
        sent later. Raises BuildError or UnavailableError if earlier ones could not be written."""
        for line in lines:
            if self._size + len(line) > self._limit and self._lines:
                self._submit()
            self._lines.append(line)
            self._size += len(line)

    def drain(self) -> None:
        """Send the remaining documents, and wait until all are written and safe on disk."""
        if self._lines:
            self._submit()
        while self._running:
            self._collect()

    def abort(self) -> None:
        """Drop the remaining documents, and wait for running requests. Never raises."""
        self._lines, self._size = [], 0
        self._node_wait_s = 0.0
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._running.clear()

    def _submit(self) -> None:
        while len(self._running) >= self._senders:
            self._collect()
        self._running.append(self._threads.submit(self._send, self._lines))
        self._lines, self._size = [], 0

    def _collect(self) -> None:
        self.counts.include(self._running.popleft().result())

    # In one of the sender's threads

    def _send(self, lines: list[bytes]) -> BulkCounts:
        counts = BulkCounts()
        waiting = deque(lines)
        since: float | None = None
        pause_s = _FIRST_PAUSE_S
        while waiting:
            batch = self._next(waiting)
            reason, again = self._try(batch, counts)
            waiting.extendleft(reversed(again))
            if not again:
                since, pause_s, self._is_reported = None, _FIRST_PAUSE_S, False
                self._limit = min(self._max_bytes, self._limit * 5 // 4)
                continue
            now = time.monotonic()
            since = now if since is None else since
            if now - since >= self._node_wait_s:
                raise self._unavailable(reason)
            if now - since >= _REPORT_S:
                self._report(reason)
            self._shrink(sum(map(len, batch)))
            self._pause(pause_s)
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)
        return counts

    def _report(self, reason: str) -> None:
        if self._note is not None and not self._is_reported:
            self._is_reported = True
            self._note(f"Waiting up to {self._node_wait_s:,.0f} s for the server: {reason}")

    def _shrink(self, refused_bytes: int) -> None:
        """Halve the size of bulks, once for several that were rejected at the same time."""
        if refused_bytes * 2 > self._limit:
            self._limit = min(self._limit, max(MIN_BULK_BYTES, refused_bytes // 2))

    def _next(self, waiting: deque[bytes]) -> list[bytes]:
        batch = [waiting.popleft()]
        size, most = len(batch[0]), min(self._limit, self._max_bytes)
        while waiting and size + len(waiting[0]) <= most:
            batch.append(waiting.popleft())
            size += len(batch[-1])
        return batch

    def _try(self, batch: list[bytes], counts: BulkCounts) -> tuple[str, list[bytes]]:
        """Send a batch once. Return why documents must be sent again, and which ones."""
        body = b"".join(batch)
        try:
            self._check()
            reply = self._client.call(
                "POST",
                "/_bulk",
                body,
                {"require_alias": "true", "filter_path": _REPLY},
                budget_s=0,
                attempt_timeout_s=BULK_TIMEOUT_S,
            )
        except UnavailableError as error:  # among these status 429 and 503
            counts.retries += 1
            return error.what, batch
        except RefusedError as error:
            if error.status != _TOO_LARGE or len(batch) == 1:
                raise
            counts.retries += 1
            self._max_bytes = min(self._max_bytes, len(body) // 2)
            return error.what, batch
        return self._outcome(batch, self._client.read(_outcomes, reply), counts)

    def _outcome(
        self, batch: list[bytes], outcomes: list[tuple[int, dict[str, Any]]], counts: BulkCounts
    ) -> tuple[str, list[bytes]]:
        again: list[bytes] = []
        reason = ""
        for line, (status, answer) in zip(batch, outcomes, strict=True):
            if status < 300:
                counts.created += 1
            elif status == _NOT_FOUND and "error" not in answer:
                pass  # deleted already
            elif status == _EXISTS:
                counts.existing += 1
            elif (fault := fault_of_reply(status, answer, self._where)).retryable:
                counts.rejected += 1
                again.append(line)
                reason = deepest_reason(answer)
            elif not isinstance(fault.error, RefusedError):  # a block, or no permission
                raise fault.error
            else:
                raise self._unwritable(line, fault.error, deepest_reason(answer))
        return reason, again

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The server took no documents for {self._node_wait_s:,.0f} s: {reason}",
            where=self._where,
            do=f"Check the cluster. {_RUN_AGAIN}",
        )

    def _unwritable(self, line: bytes, error: RefusedError, reason: str) -> BuildError:
        if error.kind == "index_not_found_exception":
            self._check()  # another process may have taken it over
            return BuildError(
                "The index was deleted while it was being written.",
                where=self._where,
                do="Run the same command again when no other build is running.",
            )
        (action,) = orjson.loads(line.partition(b"\n")[0]).values()
        return BuildError(
            f"The server rejects a document: {reason}",
            where=f'{self._where}, document "{action["routing"][:60]}"',
        )


def _outcomes(reply: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the status of each document of a bulk, with all that the server says of it."""
    said: list[dict[str, Any]] = [of for item in reply["items"] for (of,) in (item.values(),)]
    return [(int(of["status"]), of) for of in said]

"""Converting files of strangers in child processes, which are watched. A file that takes too long,
or too much memory, cannot be read, and everything else goes on.

The time that a child waits for a free core does not count. So no file is too slow only because
other programs are busy.
"""

from __future__ import annotations

import math
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import IO, Any, NamedTuple

from arag_search.errors import BuildError, FileLimitError, NotInTimeError, SourceError
from arag_search.system.processes import resident_bytes, waiting_seconds
from index_jobs.sources.converters.child import BYTE_S, OUT_OF_MEMORY, Reply, Request
from index_jobs.sources.converters.registry import FILE_TYPES, ConvertedDocument

_MODULE = "index_jobs.sources.converters"
FAILED_S = 600.0
"""Seconds of waiting for files that failed after which the limit of others falls to SHORT_S."""
SHORT_S = 5.0
_LOOK_S = 0.05
_DOCUMENT_S = 0.02
"""What each document of a table or a mailbox adds to the time of its file, up to BYTE_S a byte."""
_BYTE_MEMORY = 16
"""What each byte of a plain text adds to its memory."""
_KEPT_SHARE = 4
"""A child that keeps more than this part of the memory it may have is replaced."""


class FileLimits(NamedTuple):
    """The most that the conversion of a file may take: seconds, and bytes of memory."""

    seconds: float = 60.0
    memory: int = 1 << 30

    def __str__(self) -> str:
        return f"{self.shown_seconds} and {self.shown_memory}"

    @property
    def shown_seconds(self) -> str:
        return f"{self.seconds:g} s"

    @property
    def shown_memory(self) -> str:
        return f"{self.memory >> 20:,} MiB of memory"


USUAL_LIMITS = FileLimits()


class Conversion:
    """A file that is being converted, or waits for it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.child: _Child | None = None


class Conversions:
    """The children of this process that convert the files of the sources of a run.

    They start when they are needed, serve many files, and end with this object. Another process to
    which it is sent has children of its own. All files together may take ``within_s`` seconds: then
    the file that is under way is broken off, and none is begun. After FAILED_S seconds of waiting
    for files that could not be read, a file may take SHORT_S.
    """

    def __init__(self, limits: FileLimits, within_s: float = math.inf) -> None:
        self._most = 1
        self._limits = limits
        self._within_s = self._left_s = within_s
        self._waited_s = self._failed_s = 0.0
        self._children: list[_Child] = []
        self._waiting: deque[Conversion] = deque()
        self._is_over = threading.Event()
        weakref.finalize(self, _end, self._children, self._is_over)

    def __reduce__(self) -> tuple[type[Conversions], tuple[FileLimits, float]]:
        return Conversions, (self._limits, self._within_s)

    def begin(self, request: Request, at_once: int = 1) -> Conversion:
        """Let a file be converted as soon as one of ``at_once`` children has time for it.
        Conversions must be read in the order in which they began, or be dropped."""
        self._most = at_once
        conversion = Conversion(request)
        self._waiting.append(conversion)
        self._start()
        return conversion

    def entries(self, conversion: Conversion) -> Iterator[ConvertedDocument | SourceError]:
        """Yield what a Converter yields. Raises what it raises, FileLimitError, and SourceError for
        a file that ends its child."""
        if conversion.child is None:
            self._waiting.remove(conversion)
            if self._left_s <= 0:
                raise NotInTimeError(conversion.request.where, is_slow=False)
            self._give(conversion, self._idle() or self._new())
        child = conversion.child
        assert child is not None
        is_last = is_read = False
        before_s = self._waited_s
        try:
            while not is_last:
                reply = self._received(conversion, child)
                is_last = reply.is_last
                yield from reply.entries
                if reply.error is not None:
                    raise reply.error
                if not is_last:
                    child.go_on(len(reply.entries))
            is_read = True
        finally:
            self._failed_s += 0.0 if is_read else self._waited_s - before_s
            conversion.child = None
            if not is_last or child.is_full:
                self._end(child)
            else:
                child.is_idle = True
            self._start()

    def _received(self, conversion: Conversion, child: _Child) -> Reply:
        before_s = child.left_s
        try:
            return child.receive()
        except SourceError:
            if child.is_late and child.is_hurried:
                is_slow = child.limit_s >= min(self._within_s, SHORT_S)
                raise NotInTimeError(conversion.request.where, is_slow=is_slow) from None
            raise
        finally:
            self._waited_s += before_s - child.left_s
            self._left_s = self._within_s - self._waited_s

    def drop(self, conversion: Conversion | None) -> None:
        """Forget a conversion, unless it was read to its end."""
        if conversion in self._waiting:
            self._waiting.remove(conversion)
        if conversion is not None and conversion.child is not None:
            self._end(conversion.child)
            conversion.child = None

    def _start(self) -> None:
        while self._waiting and self._left_s > 0:
            child = self._idle()
            if child is None and len(self._children) < self._most:
                child = self._new()
            if child is None:
                return
            self._give(self._waiting.popleft(), child)

    def _give(self, conversion: Conversion, child: _Child) -> None:
        conversion.child = child
        usual_s = math.inf if self._failed_s < FAILED_S else SHORT_S
        child.begin(conversion.request, self._left_s, usual_s)

    def _idle(self) -> _Child | None:
        return next((child for child in self._children if child.is_idle), None)

    def _new(self) -> _Child:
        child = _Child(self._limits)
        if not self._children:
            self._is_over.clear()
            watching = (self._children, self._is_over)
            threading.Thread(target=_watch, args=watching, daemon=True).start()
        self._children.append(child)
        return child

    def _end(self, child: _Child) -> None:
        child.end()
        self._children.remove(child)
        if not self._children:
            self._is_over.set()


def _watch(children: list[_Child], is_over: threading.Event) -> None:
    while not is_over.wait(_LOOK_S):
        for child in list(children):
            child.look()


def _end(children: list[_Child], is_over: threading.Event) -> None:
    is_over.set()
    for child in children:
        child.end()
    children.clear()


class _Child:
    """A process that converts one file at a time. Another thread looks at it meanwhile."""

    def __init__(self, limits: FileLimits) -> None:
        self._usual = self._limits = limits
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        command = [sys.executable, "-P", "-m", _MODULE]
        command += map(str, (limits.seconds, limits.memory, os.getpid()))
        start = _starter(os.getpid()).submit
        try:
            self._process = start(
                subprocess.Popen[bytes],
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # Ctrl-C in a terminal reaches only its parent
                env={**os.environ, "PYTHONPATH": path},
            ).result()
        except OSError as error:
            raise BuildError(
                f"A process that converts files cannot be started ({error.strerror}).",
                where=sys.executable,
                do="Free memory, or end other processes.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._replies: IO[bytes] = self._process.stdout
        self._where = ""
        self.limit_s = self.left_s = 0.0  # that the file may take, and still may take
        self._more_s = 0.0
        self._deadline: float | None = None
        self.is_late = False
        self._excess = ""
        self._lock = threading.Lock()
        self.is_idle = True

    @property
    def is_full(self) -> bool:
        """Whether the process keeps much of the memory that its next file may take."""
        return resident_bytes(self._process.pid) > self._usual.memory // _KEPT_SHARE

    @property
    def is_hurried(self) -> bool:
        """Whether the file has less time than its limits give."""
        return self.limit_s < self._limits.seconds

    def begin(self, request: Request, most_s: float = math.inf, usual_s: float = math.inf) -> None:
        """Let the process convert a file within its limits. The usual time in them is at most
        ``usual_s``, and all time at most ``most_s``, to which documents add nothing."""
        self.is_idle = False
        self._where = request.where
        self._more_s = request.size * BYTE_S
        self._limits = self._usual
        if not FILE_TYPES[request.type].is_limited:
            memory = self._usual.memory + request.size * _BYTE_MEMORY
            self._limits = FileLimits(round(self._usual.seconds + self._more_s), memory)
        own_s = self._limits.seconds - max(0.0, self._usual.seconds - usual_s)
        self.limit_s = self.left_s = min(own_s, most_s)
        self._more_s = 0.0 if most_s < own_s else self._more_s
        self._send(request)

    def go_on(self, documents: int) -> None:
        """Let the process go on with a file of which it has sent so many documents."""
        more_s = min(documents * _DOCUMENT_S, self._more_s)
        self._more_s -= more_s
        self.left_s += more_s
        self._send(None)

    def receive(self) -> Reply:
        """Wait for what the process has read of its file. Raises SourceError if it has ended."""
        began = self._clock_s()
        try:
            reply: Reply = pickle.load(self._replies)
        except (EOFError, pickle.UnpicklingError):  # it was cut off
            raise self._ended() from None
        finally:
            self.left_s -= max(0.0, self._clock_s() - began)
        with self._lock:
            self._deadline = None
        return reply

    def look(self) -> None:
        """End the process if it takes more than it may, and has not answered yet."""
        with self._lock:
            if self._deadline is None or self._process.returncode is not None:
                return
            if resident_bytes(self._process.pid) > self._limits.memory:
                self._excess = self._limits.shown_memory
            elif self._clock_s() > self._deadline and not _is_readable(self._replies):
                self._excess = self._limits.shown_seconds
                self.is_late = True
            if self._excess:
                self._process.kill()

    def end(self) -> None:
        """End the process at once, and wait for it."""
        with self._lock:
            self._process.kill()
            self._process.wait()
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # buffered data can no longer be sent
                pipe.close()

    def _send(self, request: Request | None) -> None:
        with self._lock:
            self._deadline = self._clock_s() + self.left_s
        with suppress(BrokenPipeError):  # the process has ended: ``receive`` says so
            pickle.dump(request, self._requests)
            self._requests.flush()

    def _clock_s(self) -> float:
        """Return a time that stands still while the process waits for a core."""
        return time.monotonic() - waiting_seconds(self._process.pid)

    def _ended(self) -> SourceError:
        code = self._process.wait()
        limits = self._limits
        if code == OUT_OF_MEMORY:
            self._excess = limits.shown_memory
        elif code == -signal.SIGXCPU:
            self._excess = limits.shown_seconds
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        kind = FileLimitError if self._excess else SourceError
        return kind(
            f"The file cannot be read: it needs more than {self._excess}."
            if self._excess
            else f"The file cannot be read: it ends the process that converts it ({how}).",
            where=self._where,
            allowed=f"{limits} for a file",
            do="Leave it out, or allow more with `file_limits`.",
        )


@cache
def _starter(process: int) -> ThreadPoolExecutor:
    """Return the thread of this process that starts all children: they end with it (see
    ``end_with``), while the thread that needs one may end before."""
    del process
    return ThreadPoolExecutor(1, "starts children")


def _is_readable(pipe: IO[bytes]) -> bool:
    poll: Any = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(0))

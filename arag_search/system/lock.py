"""Locks on files, which end with the process that took them, and queues before locks of any kind.

All locks except locks on bytes are ``flock`` locks. They belong to an open file, so that two
openings in one process exclude each other too.
"""

from __future__ import annotations

import fcntl
import functools
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from arag_search.system.durable import open_plain

WAIT_S = 30.0
"""How long an update of an index waits for others."""

_PAUSE_S = 0.1
_queues: dict[str, threading.Lock] = {}
_T = TypeVar("_T")


class HeldError(Exception):
    """The error that another process holds a file; ``holder`` names it, by its id if that is
    known."""

    def __init__(self, process: str) -> None:
        self.holder = f"process {process}" if process else "a program that left no process id"
        super().__init__(self.holder)


def hold(path: Path, owner: str) -> int:
    """Lock a file, created if it is missing, and write ``owner`` and our process id into it.

    Return the descriptor; closing it releases the lock. Raises HeldError, OSError.
    """
    while True:
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
        if not try_lock(descriptor):
            process = os.pread(descriptor, 200, len(owner)).decode("ascii", "replace")
            os.close(descriptor)
            raise HeldError(process.strip())
        try:
            if is_at(descriptor, path):
                # The owner is never absent, by which others know whose file it is.
                text = f"{owner}{os.getpid()}\n".encode()
                os.pwrite(descriptor, text, 0)
                os.ftruncate(descriptor, len(text))
                return descriptor
        except BaseException:  # such as a full disk: this process must not keep the lock
            os.close(descriptor)
            raise
        os.close(descriptor)  # the previous holder removed the file between the two calls


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting. Return whether the lock was free.

    A shared lock excludes only exclusive ones. Closing the file releases it. Raises OSError.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(descriptor: int) -> Generator[None]:
    """Hold an exclusive lock on an open file during the block, after waiting for it. Raises
    OSError."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def in_turn(
    name: str,
    lock: Callable[[], AbstractContextManager[_T]],
    held: type[Exception],
    wait_s: float,
    on_wait: Callable[[], object] = lambda: None,
) -> Generator[_T]:
    """Hold a lock of any kind, by its name, during the block.

    The threads of this process queue. The first one enters ``lock`` again and again as long as this
    raises ``held``, which passes through ``wait_s`` seconds after the call. ``on_wait`` is called
    once, if there is anything to wait for.
    """
    wait_s = min(max(0.0, wait_s), threading.TIMEOUT_MAX)  # 0 for NaN
    ends = time.monotonic() + wait_s
    queue = _queues.setdefault(name, threading.Lock())
    say_once = functools.cache(on_wait)
    if not (is_first := queue.acquire(blocking=False)) and wait_s:
        say_once()
        is_first = queue.acquire(timeout=wait_s)
    try:
        with ExitStack() as stack:
            while True:
                try:
                    entered = stack.enter_context(lock())
                    break
                except held:
                    if time.monotonic() >= ends:
                        raise
                say_once()
                time.sleep(_PAUSE_S)
            yield entered
    finally:
        if is_first:
            queue.release()


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False

"""A worker process: takes what is to be worked on from its standard input, gives back what it made.

It imports nothing but what the work needs, starts no Java, and ends when its input does, which is
also when the build or embedding is killed. Ctrl-C is for whoever started it.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO, Any

from arag_search.corpus import Chunk, Document
from arag_search.system.terminal import guard_terminals

_SWITCH_S = 0.0005
"""The thread that reads must not wait long for the one that packs: the build waits for it."""

_FIELDS = {kind: tuple(kind.__dataclass_fields__) for kind in (Chunk, Document)}


def _fields(value: Chunk | Document) -> tuple[type[Chunk] | type[Document], tuple[Any, ...]]:
    kind = type(value)
    return kind, tuple(getattr(value, name) for name in _FIELDS[kind])


_REDUCERS: dict[type[Any], Callable[[Any], Any]] = {Chunk: _fields, Document: _fields}


def dumped(value: object) -> bytes:
    """Return the value pickled; chunks and documents faster than dataclasses are by themselves."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    return buffer.getvalue()


def main() -> None:
    """Run until the input ends. The first thing read is the work, which is done with all others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH_S)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be among the replies
    guard_terminals()
    given = sys.stdin.buffer
    work = pickle.load(given)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(given, waiting), daemon=True).start()
    while True:
        item = waiting.get()
        try:
            reply = dumped(work(item))
        except Exception as error:
            reply = _dumped_error(error)
        try:
            replies.write(reply)
            replies.flush()
        except BrokenPipeError:
            os._exit(0)  # who started it has ended, and the thread that reads has not yet seen it


def _read(given: IO[bytes], waiting: queue.SimpleQueue[Any]) -> None:
    """Read ahead, so that whoever writes never waits for the work."""
    try:
        while True:
            waiting.put(pickle.load(given))
    except EOFError:
        os._exit(0)  # who started it has ended; nobody reads what is still being made
    except Exception:
        traceback.print_exc()
        os._exit(1)


def _dumped_error(error: Exception) -> bytes:
    error.add_note(f"In a worker process:\n{traceback.format_exc()}")
    try:
        reply = dumped(error)
        pickle.loads(reply)
    except Exception:
        reply = dumped(RuntimeError(traceback.format_exc()))
    return reply

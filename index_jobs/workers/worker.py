"""A worker process: answers payloads of its parent with their results.

It imports only what the work needs, starts no Java, and ends with the connection, which also
happens when the build or embedding is killed. It ignores Ctrl-C, which its parent handles.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from arag_search.corpus import Chunk, Document
from arag_search.system.processes import read_ahead
from arag_search.system.terminal import guard_terminals

_SWITCH_S = 0.0005
"""A short switch interval: the reading thread must not wait long for the working thread, because
the build waits for it."""

_FIELDS = {kind: tuple(kind.__dataclass_fields__) for kind in (Chunk, Document)}


def _fields(value: Chunk | Document) -> tuple[type[Chunk] | type[Document], tuple[Any, ...]]:
    kind = type(value)
    return kind, tuple(getattr(value, name) for name in _FIELDS[kind])


_REDUCERS: dict[type[Any], Callable[[Any], Any]] = {Chunk: _fields, Document: _fields}


def dumped(value: object) -> bytes:
    """Pickle a value; chunks and documents are pickled faster than other dataclasses."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    return buffer.getvalue()


def main(descriptor: int) -> None:
    """Run until the parent closes the connection. The first object that it sends is the work, a
    function that is then called with each of the following objects."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH_S)
    guard_terminals()
    parent = Connection(descriptor)
    work = pickle.loads(parent.recv_bytes())
    waiting = read_ahead(lambda: pickle.loads(parent.recv_bytes()))
    while True:
        item = waiting.get()
        try:
            reply = dumped(work(item))
        except Exception as error:
            reply = _dumped_error(error)
        try:
            parent.send_bytes(reply)
        except ConnectionError:
            os._exit(0)  # the parent has ended, and the reading thread has not noticed yet


def _dumped_error(error: Exception) -> bytes:
    error.add_note(f"In a worker process:\n{traceback.format_exc()}")
    try:
        reply = dumped(error)
        pickle.loads(reply)
    except Exception:
        reply = dumped(RuntimeError(traceback.format_exc()))
    return reply

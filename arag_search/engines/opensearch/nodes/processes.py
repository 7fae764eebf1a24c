"""Processes of nodes: how they are started and ended."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from arag_search.system.processes import Process, start_of

_POLL_S = 0.05
_KILL_LIMIT_S = 10.0


_children: dict[int, subprocess.Popen[bytes]] = {}


def _forget_ended() -> None:
    """Reap the nodes of this process that have ended."""
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            if child.stdin is not None:
                child.stdin.close()
            del _children[pid]


@atexit.register
def _let_go() -> None:
    """Owned nodes end now, as their standard input does; the others go on without us, of which
    Python would warn."""
    for child in _children.values():
        if child.stdin is not None:
            child.stdin.close()
        child.returncode = child.poll() or 0


def start_node(folder: Path, log: Path, *, owned: bool) -> Process:
    """Start the node of ``folder``; an owned one ends with this process, however that ends.

    Ctrl-C and the end of the terminal do not reach it. Its output is appended to ``log``.
    """
    _forget_ended()
    command = [sys.executable, "-m", "arag_search.engines.opensearch.nodes.node", str(folder)]
    with log.open("ab") as output:
        child = subprocess.Popen(
            command + ["--owned"] * owned,
            stdin=subprocess.PIPE if owned else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[child.pid] = child
    return Process(child.pid, start_of(child.pid) or "ended")


def ask_to_end(process: Process) -> bool:
    """Tell a process to end in order, without waiting; whether it ran."""
    if not process.runs:
        return False
    _signal(process, signal.SIGTERM)
    _signal(process, signal.SIGCONT)  # a stopped one takes no other signal
    return True


def end(process: Process, limit_s: float) -> bool:
    """End a process in order, and by force after ``limit_s``; whether it ran at all.

    Nothing is done to another process that has its number now.
    """
    if not ask_to_end(process):
        return False
    if not _ended_within(process, limit_s):
        _signal(process, signal.SIGKILL)
        _ended_within(process, _KILL_LIMIT_S)
    return True


def _signal(process: Process, number: signal.Signals) -> None:
    if process.runs:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return


def _ended_within(process: Process, limit_s: float) -> bool:
    last = time.monotonic() + limit_s
    while process.runs:
        if time.monotonic() > last:
            return False
        time.sleep(_POLL_S)
    _forget_ended()
    return True

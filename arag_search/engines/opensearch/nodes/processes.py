"""Processes of nodes: starting and stopping them."""

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
def _release_children() -> None:
    """Stop owned nodes by closing their standard input, and leave the others running.

    Python would warn about those.
    """
    for child in _children.values():
        if child.stdin is not None:
            child.stdin.close()
        child.returncode = child.poll() or 0


def start_node(folder: Path, log: Path, *, owned: bool) -> Process:
    """Start the node of ``folder``; an owned node ends with this process, however that ends.

    Ctrl-C and the closing of the terminal do not reach it. Its output is appended to ``log``.
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
    """Ask a process to shut down, without waiting. Return whether it ran."""
    if not process.runs:
        return False
    _signal(process, signal.SIGTERM)
    _signal(process, signal.SIGCONT)  # a suspended process handles no other signal
    return True


def end(process: Process, limit_s: float) -> bool:
    """Shut a process down, by force after ``limit_s``. Return whether it ran.

    Another process that has its number by now is not touched.
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

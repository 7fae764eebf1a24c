"""Processes of nodes: which one a pid means, how one is started, how it is ended."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.05
_KILL_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and its start, which together never come again.

    ``started`` is boot and clock ticks on Linux, elsewhere the date: equal for one process, as long
    as that lives, and different for any other with its number, also after a reboot.
    """

    pid: int
    started: str

    @property
    def runs(self) -> bool:
        """Whether this very process is there and has not ended."""
        return start_of(self.pid) == self.started


def start_of(pid: int) -> str | None:
    """When the process with this number started; None where there is none that has not ended."""
    _forget_if_ended(pid)
    if not sys.platform.startswith("linux"):
        return _start_by_ps(pid)
    try:
        # The name, in brackets, may hold anything; what follows it are state and numbers.
        values = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return None
    return None if values[0] in "ZX" else f"{boot} {values[19]}"


def _start_by_ps(pid: int) -> str | None:
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    state, _, start = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else start.strip()


_children: dict[int, subprocess.Popen[bytes]] = {}


def _forget_if_ended(pid: int) -> None:
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
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
    return True

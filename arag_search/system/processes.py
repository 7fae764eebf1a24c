"""Whether a process is still running, and since when."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_NO_START = "running"


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and its start, which together never recur.

    ``started`` is boot and clock ticks where the system has ``/proc``, elsewhere the date: equal
    for one process as long as it lives, and different for any other process with its number, also
    after a reboot.
    """

    pid: int
    started: str

    @property
    def runs(self) -> bool:
        """Whether this very process is there and has not ended."""
        return start_of(self.pid) == self.started


def this_process() -> Process:
    """Return the process that asks."""
    return Process(os.getpid(), start_of(os.getpid()) or "")


def start_of(pid: int) -> str | None:
    """Return when the process with this number started; None if none runs (a zombie does not)."""
    boot = _PROC / "sys" / "kernel" / "random" / "boot_id"
    try:
        boot_id = boot.read_text("ascii").strip()
    except OSError:  # macOS
        return _start_by_ps(pid)
    try:
        # The name, in brackets, may hold anything; what follows it are state and numbers.
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if stat[0] in "ZX" else f"{boot_id} {stat[19]}"


def _start_by_ps(pid: int) -> str | None:
    try:
        done = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},  # the same text for every asker
        )
    except OSError:
        return _start_by_number(pid)
    state, _, start = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else start.strip()


def _start_by_number(pid: int) -> str | None:
    """Tell only whether the number is in use: all that is left without ``ps``."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # it is there, and another user's
        pass
    return _NO_START

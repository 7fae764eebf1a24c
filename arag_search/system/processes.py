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
    """A process, identified by its id and its start time, which together are never reused.

    ``started`` is the boot id and clock ticks if the system has ``/proc``, otherwise the date. It
    does not change while the process lives, and differs for every other process with the same id,
    also after a reboot.
    """

    pid: int
    started: str

    @property
    def runs(self) -> bool:
        """Whether this process, and not another with its id, is still running."""
        return start_of(self.pid) == self.started


def this_process() -> Process:
    """Return the calling process."""
    return Process(os.getpid(), start_of(os.getpid()) or "")


def start_of(pid: int) -> str | None:
    """Return when the process with this id started; None if it is not running, or a zombie."""
    boot = _PROC / "sys" / "kernel" / "random" / "boot_id"
    try:
        boot_id = boot.read_text("ascii").strip()
    except OSError:  # macOS
        return _start_by_ps(pid)
    try:
        # The name, in parentheses, may contain anything; state and numbers follow it.
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
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},  # the same text in every environment
        )
    except OSError:
        return _start_by_number(pid)
    state, _, start = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else start.strip()


def _start_by_number(pid: int) -> str | None:
    """Return a constant if the id is in use: without ``ps`` nothing else is known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # it is running, as another user
        pass
    return _NO_START

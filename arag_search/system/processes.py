"""Processor cores, processes and signals. It counts cores, bounds the threads of libraries, says
whether a process still runs, ends with a parent, and defers Ctrl-C to a safe moment."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

_SLEEP_WHEN_IDLE = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
    "OPENBLAS_THREAD_TIMEOUT": "4",  # the least: 2^4 ticks
}
"""For the OpenMP runtimes of GCC and LLVM, and for numpy's OpenBLAS. Otherwise idle threads spin on
their core. They slow down any other work on it, in this process or another, far beyond their share
of the cores."""

_THREAD_BOUNDS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def usable_cores() -> int:
    """Return how many cores this process may use; all of them if the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_cores() -> int:
    """Make idle threads of torch, FAISS and numpy sleep, and return how many threads to give them.

    The libraries read the settings when they are loaded, so call this first. Variables that the
    user has set keep their values.
    """
    for variable, value in _SLEEP_WHEN_IDLE.items():
        os.environ.setdefault(variable, value)
    return usable_cores()


def worker_environment(workers: int) -> dict[str, str]:
    """Return the variables that give each of ``workers`` processes an equal share of the cores."""
    threads = str(max(1, usable_cores() // workers))
    return dict.fromkeys(_THREAD_BOUNDS, threads)


_PROC = Path("/proc")


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

    @property
    def has_ended(self) -> bool:
        """Whether this process, which was in the same space, has certainly ended: not if the system
        hides the processes of other users."""
        return bool(self.started and start_of(1)) and not self.runs


def this_process() -> Process:
    """Return the calling process."""
    return Process(os.getpid(), start_of(os.getpid()) or "")


def process_space() -> str:
    """Return in which space of process ids this process is: the boot of a machine, and on Linux the
    PID namespace. Empty if that is not known."""
    own = _PROC / "self"
    try:
        if os.readlink(own) != str(os.getpid()):
            return ""  # it sees the processes of another namespace
        return f"{_boot_id()} {os.readlink(own / 'ns' / 'pid')}"
    except OSError:  # macOS
        pass
    with suppress(OSError):
        command = ["sysctl", "-n", "kern.boottime"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def start_of(pid: int) -> str | None:
    """Return when the process with this id started; None if it is not running, or a zombie."""
    try:
        boot_id = _boot_id()
    except OSError:  # macOS
        return _start_by_ps(pid)
    try:
        # The name, in parentheses, may contain anything; state and numbers follow it.
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if stat[0] in "ZX" else f"{boot_id} {stat[19]}"


def _boot_id() -> str:
    return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text("ascii").strip()


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has; 0 if that is not known."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        pass
    with suppress(OSError, ValueError):  # macOS has no /proc
        command = ["ps", "-o", "rss=", "-p", str(pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return int(done.stdout) << 10
    return 0


def waiting_seconds(pid: int) -> float:
    """Return for how long a process has waited for a free core; 0 if the system does not say."""
    try:
        return int((_PROC / str(pid) / "schedstat").read_text().split()[1]) / 10**9
    except (OSError, IndexError):
        return 0.0


def _start_by_ps(pid: int) -> str | None:
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},  # the same text in every environment
    )
    state, _, start = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else start.strip()


_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Let the system kill this process when its parent, which has this id, ends, whatever it does
    then. Only Linux can; elsewhere ``read_ahead`` notices the end.

    Linux counts the end of the *thread* that started this process.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended meanwhile
        os._exit(0)


def read_ahead(receive: Callable[[], Any]) -> SimpleQueue[Any]:
    """Return a queue that a thread fills with what a parent sends, so that it need not wait for the
    work when it writes. When it has ended, this process ends at once."""
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_fill, args=(waiting, receive), daemon=True).start()
    return waiting


def _fill(waiting: SimpleQueue[Any], receive: Callable[[], Any]) -> None:
    try:
        while True:
            waiting.put(receive())
    except (EOFError, ConnectionError, pickle.UnpicklingError):
        os._exit(0)  # nobody will read further results
    except Exception:
        traceback.print_exc()
        os._exit(1)


class Interrupts:
    """A context manager that defers the first Ctrl-C until ``check``.

    ``on_first`` is called at the first Ctrl-C, in the signal handler, so it must not block. The
    second Ctrl-C interrupts at once. Nothing is deferred outside of the main thread, or if the
    program has already installed its own signal handler.
    """

    def __init__(self, on_first: Callable[[], None] | None = None) -> None:
        self._on_first = on_first
        self.between_batches = False
        """Whether the KeyboardInterrupt was raised by ``check``."""

        self._is_pending = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_pending:
            signal.default_int_handler(number, frame)
        self._is_pending = True
        if self._on_first is not None:
            self._on_first()

    def check(self) -> None:
        """Raise the deferred KeyboardInterrupt, if there is one."""
        if self._is_pending:
            self.between_batches = True
            raise KeyboardInterrupt

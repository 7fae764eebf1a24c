"""Worker processes that a test looks for, and kills."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def worker_processes() -> list[int]:
    """The worker processes of this process."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended meanwhile
            found += [int(each) for each in (task / "children").read_text().split()]
    return [each for each in found if is_worker(each)]


def is_worker(process: int) -> bool:
    try:
        return b"index_jobs.workers.worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def kill_a_worker() -> None:
    """Kill one of the worker processes, where there is one."""
    for worker in worker_processes()[:1]:
        os.kill(worker, signal.SIGKILL)

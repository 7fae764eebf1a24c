"""Worker processes that a test finds and kills."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def worker_processes() -> list[int]:
    """Return the worker processes of this process."""
    children: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended meanwhile
            children += map(int, (task / "children").read_text().split())
    return [child for child in children if is_worker(child)]


def is_worker(process: int) -> bool:
    try:
        return b"index_jobs.workers.worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def kill_a_worker() -> None:
    """Kill one of the worker processes, if there is any."""
    for worker in worker_processes()[:1]:
        os.kill(worker, signal.SIGKILL)

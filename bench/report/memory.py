"""The memory of this process that no file backs: now, and at its peak."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from bench import BenchError

_PEAK_INTERVAL_S = 0.01


def anonymous_bytes() -> int:
    """Return the memory of this process that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise BenchError("The system does not report anonymous memory.")


@contextmanager
def peak_anonymous() -> Generator[Callable[[], int]]:
    """Yield a function that returns the peak of anonymous memory in the block, above its start."""
    before = anonymous_bytes()
    most = [before]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_PEAK_INTERVAL_S):
            most[0] = max(most[0], anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: most[0] - before
    finally:
        over.set()
        watcher.join()

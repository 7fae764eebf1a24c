"""The processor cores of this process, and how numeric libraries use them."""

from __future__ import annotations

import os

_SLEEP_WHEN_IDLE = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""For the OpenMP runtimes of GCC and LLVM. Otherwise idle threads spin on their core, and two
processes that encode at once slow each other down far beyond their share of the cores."""

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
    """Make idle threads of torch and FAISS sleep, and return how many threads to give them.

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

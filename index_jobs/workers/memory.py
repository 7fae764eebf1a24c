"""The peak memory of processes, as far as the system reports it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The peak resident memory of a process, in bytes; ``process`` identifies the process."""

    process: str
    bytes: int


def own_peak() -> PeakMemory:
    """Return the peak memory of this process."""
    import os
    import socket

    return PeakMemory(f"{socket.gethostname()}:{os.getpid()}", _peak_bytes())


def _peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10
    except (OSError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10


def highest(peaks: Iterable[PeakMemory]) -> dict[str, int]:
    """Return the highest peak of each process."""
    peaks_by_process: dict[str, int] = {}
    for peak in peaks:
        peaks_by_process[peak.process] = max(peak.bytes, peaks_by_process.get(peak.process, 0))
    return peaks_by_process

"""Where an experiment reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """``data`` has a folder a data set, ``kept`` the indexes and vectors that all suites share (a
    folder a data set), ``work`` what belongs to this suite."""

    data: Path
    kept: Path
    work: Path

"""Folders of experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of an experiment.

    ``data`` has a folder for each data set, ``kept`` has the indexes and vectors that all suites
    share (a folder for each data set), ``work`` has the files of this suite.
    """

    data: Path
    kept: Path
    work: Path

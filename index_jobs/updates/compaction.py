"""Compacting an index: merging its segments, so that deleted documents take no room."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from arag_search.engines.deletions import Deletions
from arag_search.system.progress import Progress, SilentProgress, duration
from index_jobs.build.report import Report
from index_jobs.updates.recovery import resumable_update


@dataclass(frozen=True, slots=True)
class CompactReport(Report):
    """The result of merging: how many deleted entries (passages, sentences, and the marks that a
    server keeps of deletions) went, and how many are left."""

    location: str
    removed: int
    left: int
    seconds: float

    def to_text(self) -> str:
        """Return the report in words."""
        lines = [
            f"Compacted {self.location}: one segment a shard,"
            f" {self.removed:,} deleted entries gone; {duration(self.seconds)}."
        ]
        if self.left:
            lines.append(f"left: {self.left:,} deleted entries; compact again later")
        return "\n".join(lines)


def compact_index(location: str | Path, progress: Progress | None = None) -> CompactReport:
    """Merge each shard of an index into one segment: scores and order are then those of a build of
    the same documents.

    Finishes or undoes first what a stopped update has begun. Raises IndexNotFoundError,
    IndexLockedError, BuildError, EngineError.
    """
    began = time.monotonic()
    progress = progress or SilentProgress()
    with resumable_update(
        location, progress, "the index is as it was, and it begins anew"
    ) as target:
        settled = target.recover(None)
        if settled.note:
            progress.note(settled.note)
        before: Deletions = target.deletions
        after = target.compact(progress.note)
    removed = max(0, before.documents - after.documents)
    return CompactReport(
        str(location), removed, after.documents, round(time.monotonic() - began, 3)
    )

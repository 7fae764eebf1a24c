"""Compacting an index: merging its segments, so that deleted documents take no room."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from arag_search.engines.base import Deletions
from arag_search.system.progress import Progress, SilentProgress, duration
from index_jobs.build.report import Report
from index_jobs.updates.recovery import resumable_update


@dataclass(frozen=True, slots=True)
class CompactReport(Report):
    """The number of deleted entries that a compaction removed, and the number left. Entries are
    passages, sentences, and the tombstones that a server keeps of deletions."""

    location: str
    removed: int
    left: int
    seconds: float

    def to_text(self) -> str:
        """Return the report in words."""
        lines = [
            f"Compacted {self.location}: one segment per shard,"
            f" {self.removed:,} deleted entries removed; {duration(self.seconds)}."
        ]
        if self.left:
            lines.append(f"left: {self.left:,} deleted entries; compact again later")
        return "\n".join(lines)


def compact_index(location: str | Path, progress: Progress | None = None) -> CompactReport:
    """Merge each shard of an index into one segment, so that scores and order are the same as in a
    new build of the same documents.

    First finishes or undoes an interrupted update. Raises IndexNotFoundError, IndexLockedError,
    BuildError, EngineError.
    """
    began = time.monotonic()
    progress = progress or SilentProgress()
    with resumable_update(
        location, progress, "the index is unchanged, and it starts over"
    ) as target:
        recovery = target.recover(None)
        if recovery.note:
            progress.note(recovery.note)
        before: Deletions = target.deletions
        after = target.compact(progress.note)
    removed = max(0, before.documents - after.documents)
    return CompactReport(
        str(location), removed, after.documents, round(time.monotonic() - began, 3)
    )

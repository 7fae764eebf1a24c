"""Compacting an index: merging its segments, so that deleted documents take no room."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from arag_search.engines.base import Deletions
from arag_search.errors import VectorsNotNamedError
from arag_search.manifest import Manifest
from arag_search.system.extras import check_extra
from arag_search.system.progress import Progress, counted, duration
from arag_search.vectors.folder import state_path, vectors_root
from index_jobs.build.report import Report
from index_jobs.updates.tally import resumable_update


@dataclass(frozen=True, slots=True)
class CompactReport(Report):
    """The number of deleted entries that a compaction removed, and the number left. Entries are
    passages, sentences, and the tombstones that a server keeps of deletions. ``vector_rows`` are
    the vectors without a text that were removed."""

    location: str
    removed: int
    left: int
    vector_rows: int
    seconds: float

    def to_text(self) -> str:
        """Return the report in words."""
        lines = [
            f"Compacted {self.location}: one segment per shard,"
            f" {self.removed:,} deleted entries removed; {duration(self.seconds)}."
        ]
        if self.vector_rows:
            lines.append(f"vectors: {counted(self.vector_rows, 'row')} without a text removed")
        if self.left:
            lines.append(f"left: {self.left:,} deleted entries; compact again later")
        return "\n".join(lines)


def compact_index(
    location: str | Path,
    progress: Progress | None = None,
    *,
    vectors: str | Path | None = None,
) -> CompactReport:
    """Merge each shard of an index into one segment. Scores and order are then the same as in a new
    build of the same documents. Of vectors in the folder ``vectors`` (see ``vectors_root``) that
    fit the index, only the rows of its texts stay.

    First finishes or undoes an interrupted update. Raises IndexNotFoundError, IndexLockedError,
    VectorsLockedError, VectorsDamagedError, BuildError, EngineError.
    """
    began = time.monotonic()
    progress = progress or Progress()
    with resumable_update(
        location, progress, "the index is unchanged, and it starts over"
    ) as target:
        recovery = target.recover(None)
        if recovery.note:
            progress.note(recovery.note)
        rows = _leave_out_dead(str(location), vectors, target.manifest, progress)
        before: Deletions = target.deletions
        after = target.compact(progress.note)
    removed = max(0, before.documents - after.documents)
    return CompactReport(
        str(location), removed, after.documents, rows, round(time.monotonic() - began, 3)
    )


def _leave_out_dead(
    location: str, vectors: str | Path | None, index: Manifest, progress: Progress
) -> int:
    """Remove the vectors without a text, and return how many there were."""
    try:
        root = vectors_root(location, vectors)
    except VectorsNotNamedError:
        return 0
    if not state_path(root, index.placement).exists():
        return 0  # vectors that do not fit are left alone
    check_extra("vectors", "numpy")
    from index_jobs.embedding.publishing import leave_out_dead

    return leave_out_dead(root, location, index, progress)

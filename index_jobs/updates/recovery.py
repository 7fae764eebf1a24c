"""Opening an index for an update, and recovering from an update that was interrupted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from arag_search.engines.open import open_update
from arag_search.engines.write import IndexUpdate, UpdateRecord
from arag_search.system.progress import Progress
from index_jobs.build.corpus import resume_advice, room


@contextmanager
def resumable_update(
    location: str | Path, progress: Progress, outlook: str
) -> Generator[IndexUpdate]:
    """Open an update, report how to resume it if it ends early, and end the progress.

    ``outlook`` says what running the same command again does. Raises what ``open_update`` raises.
    """
    try:
        with (
            resume_advice(lambda: outlook, progress.note),
            open_update(location) as target,
            room(str(location), lambda: outlook),
        ):
            yield target
    finally:
        progress.end()


def digest_of(*parts: object) -> str:
    """Return a digest that identifies the command of an update."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def recover_update(
    target: IndexUpdate, record: UpdateRecord, progress: Progress
) -> tuple[UpdateRecord, bool]:
    """Finish or undo an interrupted update.

    Returns the record of the update to run, and whether the interrupted update was the same one
    and is now complete.
    """
    recovery = target.recover(record)
    if recovery.note:
        progress.note(recovery.note)
    return (record, False) if recovery.done is None else (recovery.done, True)

"""The counts of an index, and its placement, as an update adds and removes documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.engines.open import open_update
from arag_search.engines.write import IndexUpdate, UpdateRecord
from arag_search.errors import ArgumentError, IndexLockedError
from arag_search.manifest import Manifest
from arag_search.query.fields import DOC_ID
from arag_search.search.standing import identity_of
from arag_search.system.lock import in_turn
from arag_search.system.progress import Progress
from index_jobs.build.corpus import explained_stops
from index_jobs.cutting.counts import Counts

LOOKUP_IDS = 64
"""The largest number of documents that are looked up at once."""


class Tally:
    """The counts of an index, as documents are added and removed. ``removed`` has the ordinals of
    the chunks that were removed."""

    def __init__(self, manifest: Manifest) -> None:
        """Start from the counts of ``manifest``."""
        self.counts = Counts.of_index(manifest)
        self.removed: list[int] = []
        self._metadata = manifest.metadata

    def remove(self, chunk: Chunk) -> None:
        """Subtract a chunk; the first chunk of a document also subtracts the document."""
        self.removed.append(chunk.ordinal)
        self.counts.remove(chunk, self._metadata)

    def manifest(self, before: Manifest) -> Manifest:
        """Return the manifest of the next update with these counts."""
        return replace(before, update=before.update + 1, **self.counts.in_manifest())


def existing_chunks(
    target: IndexUpdate, values: Sequence[str], field: str = DOC_ID
) -> Iterator[Chunk]:
    """Yield the chunks that have one of these values in a keyword field before the update."""
    for start in range(0, len(values), LOOKUP_IDS):
        yield from target.existing(values[start : start + LOOKUP_IDS], field)


def check_not_empty(tally: Tally, where: str) -> None:
    """Raise ArgumentError if no document would be left."""
    if not tally.counts.documents:
        raise ArgumentError(
            "That would delete every document of the index.",
            where=where,
            allowed="deletions that leave at least one document",
            do="Build the index again from other sources with `overwrite=True`, or remove the index"
            " itself.",
        )


# Opening an index for an update, and recovering from an update that was interrupted


@contextmanager
def resumable_update(
    location: str | Path, progress: Progress, next_run: str, wait_s: float = 0.0
) -> Generator[IndexUpdate]:
    """Open an update, report how to resume it if it ends early, and end the progress.

    ``next_run`` says what running the same command again does. The update waits up to ``wait_s``
    seconds for others. Raises what ``open_update`` raises.
    """
    opened = partial(open_update, location, progress.note)
    wait = partial(progress.note, f"Waiting up to {wait_s:g} s for another update of the index.")
    try:
        with (
            explained_stops(str(location), lambda: next_run, progress.note),
            in_turn(identity_of(location), opened, IndexLockedError, wait_s, wait) as target,
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

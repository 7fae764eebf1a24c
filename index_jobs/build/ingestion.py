"""The main loop of every job that reads a corpus: batches are read, packed and written in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from arag_search.errors import SourceError
from arag_search.system.interrupts import Interrupts
from arag_search.system.progress import Progress
from index_jobs.cutting.packing import Packed
from index_jobs.sources.reading import Batch, CorpusReader, Position
from index_jobs.workers.pool import Packing

_CHECKPOINT_SHARE = 20  # a checkpoint takes at most a twentieth of the time


class BatchTarget(Protocol):
    """The destination of batches: a new index, an update, or a file of chunks."""

    @property
    def documents(self) -> int:
        """How many documents the target has, for progress."""
        ...

    @property
    def details(self) -> str:
        """Additional figures of this job for the progress line; empty for none."""
        ...

    def has_document(self, doc_id: str) -> bool:
        """Return whether a document with this id was written, by this run or the one it resumes."""
        ...

    def write(self, packed: Packed, position: Position) -> None:
        """Write a batch; ``position`` is the reading position after it."""
        ...


class Ingestion:
    """Batches on their way from a reader through packing to a target.

    Between two batches, the target is consistent. Only then are checkpoints made, and only then
    does a deferred Ctrl-C interrupt.
    """

    def __init__(
        self,
        packing: Packing[Batch, Packed],
        target: BatchTarget,
        progress: Progress,
        interrupts: Interrupts,
        checkpoint: Callable[[], None] | None = None,
        checkpoint_s: float = 0.0,
    ) -> None:
        """``checkpoint`` is called every ``checkpoint_s`` seconds, or less often if it is slow.
        If it is None, no checkpoints are made."""
        self._packing = packing
        self._target = target
        self._progress = progress
        self._interrupts = interrupts
        self._checkpoint = checkpoint
        self._checkpoint_s = checkpoint_s
        self._next_checkpoint = time.monotonic() + checkpoint_s

    def is_taken(self, doc_id: str) -> bool:
        """Return whether a document with this id is being packed or was written."""
        is_packed = any(batch.holds(doc_id) for batch in self._packing.under_way)
        return is_packed or self._target.has_document(doc_id)

    def run(self, reader: CorpusReader, done_bytes: int = 0) -> None:
        """Write all batches of a reader; ``done_bytes`` is the size of the sources read before.

        Raises what reading, packing and writing raise, and KeyboardInterrupt between two batches.
        """
        try:
            for batch in reader.batches():
                self._packing.submit(batch)
                while self._packing.is_ready:
                    self._write_next(done_bytes)
        except SourceError:
            self._write_rest(done_bytes)  # an error in an earlier document must be raised first
            raise
        self._write_rest(done_bytes)

    def _write_rest(self, done_bytes: int) -> None:
        while self._packing.under_way:
            self._write_next(done_bytes)

    def _write_next(self, done_bytes: int) -> None:
        batch, packed = self._packing.take()
        self._target.write(packed, batch.position)
        read_bytes = done_bytes + batch.read_bytes
        figures = (f"{read_bytes / 1e6:,.1f} MB", self._target.details)
        self._progress.update(read_bytes, self._target.documents, "  ".join(filter(None, figures)))
        self._interrupts.check()
        if self._checkpoint is not None and time.monotonic() >= self._next_checkpoint:
            began = time.monotonic()
            self._checkpoint()
            now = time.monotonic()
            wait_s = max(self._checkpoint_s, (now - began) * _CHECKPOINT_SHARE)
            self._next_checkpoint = now + (wait_s if self._checkpoint_s else 0)

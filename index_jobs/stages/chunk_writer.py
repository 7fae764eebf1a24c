"""Writing the file of chunks of one source, with checkpoints to go on from."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from arag_search.system.durable import sync
from index_jobs.cutting.packing import Packed
from index_jobs.sources.duplicates import SeenIds
from index_jobs.sources.reading import Position
from index_jobs.sources.records import CorpusFile
from index_jobs.stages.chunk_folder import ChunkFolder, ShardRecord
from index_jobs.stages.chunk_lines import ready_documents

_BLOCK_BYTES = 1 << 20


class ChunkWriter:
    """Adds batches to the file of a source. What comes after a checkpoint is lost by a kill."""

    def __init__(self, folder: ChunkFolder, number: int, record: ShardRecord) -> None:
        """Resume at ``record``; truncate what the file holds beyond it.

        Raises ValueError where the file does not hold what the record says; OSError.
        """
        self.record = record
        self._folder = folder
        self._number = number
        self._path = folder.chunks_under_way(number)
        finished = folder.chunks(number)
        if record.bytes and not self._path.exists() and finished.exists():
            finished.rename(self._path)  # it was stopped just before the record said so
        self._hash = hashlib.sha256()
        self._file = self._path.open("r+b" if record.bytes else "wb")
        try:
            self._take_up(record)
        except BaseException:
            self._file.close()
            raise

    def _take_up(self, record: ShardRecord) -> None:
        left = record.bytes
        while left:
            block = self._file.read(min(left, _BLOCK_BYTES))
            if not block:
                break
            self._hash.update(block)
            left -= len(block)
        if left or (record.bytes and self._hash.hexdigest() != record.sha256):
            raise ValueError(self._path)
        self._file.truncate()

    def ids(self) -> SeenIds:
        """Return the ids of the documents that are written."""
        seen = SeenIds()
        if self.record.bytes:
            with CorpusFile(self._path, str(self._path)) as file:
                for _, document in ready_documents(file):
                    seen.add(document.id)
        return seen

    def add(self, packed: Packed, position: Position) -> None:
        """Write a batch; ``position`` is the one after it."""
        self._file.write(packed.packed)
        self._hash.update(packed.packed)
        self.record.bytes += len(packed.packed)
        self.record.state.take(packed.counts, position)

    def checkpoint(self) -> None:
        """Let what is written outlive a kill, and a crash of the machine."""
        self._sync()
        self._folder.write_record(self._number, self.record)

    def finish(self) -> None:
        """Complete the file."""
        self._sync()
        self._file.close()
        self._path.replace(self._folder.chunks(self._number))
        sync(self._folder.path)
        self.record.finished = True
        self._folder.write_record(self._number, self.record)

    def close(self) -> None:
        """Leave it for another run. May be called again."""
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self.record.sha256 = self._hash.hexdigest()


def remove_chunks(folder: ChunkFolder, number: int) -> None:
    """Forget a source: its record first, then its files."""
    paths: list[Path] = [
        folder.record_file(number),
        folder.chunks(number),
        folder.chunks_under_way(number),
    ]
    for path in paths:
        path.unlink(missing_ok=True)

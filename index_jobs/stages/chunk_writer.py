"""Writing the file of chunks of one source, with checkpoints to resume from."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from arag_search.system.durable import sync
from index_jobs.cutting.chunking import Packed
from index_jobs.sources.reading import Position, SeenIds
from index_jobs.sources.records import CorpusFile
from index_jobs.stages.chunk_folder import ChunkFolder, ShardRecord
from index_jobs.stages.chunk_lines import ready_documents

_BLOCK_BYTES = 1 << 20


class ChunkWriter:
    """A writer that appends batches to the file of a source. If the process is killed, everything
    after the last checkpoint is lost."""

    def __init__(self, folder: ChunkFolder, number: int, record: ShardRecord) -> None:
        """Resume at ``record``; truncate what the file holds beyond it.

        Raises ValueError if the file does not match the record; OSError.
        """
        self.record = record
        self._folder = folder
        self._number = number
        self._path = folder.chunks_under_way(number)
        finished = folder.chunks(number)
        if record.bytes and not self._path.exists() and finished.exists():
            finished.rename(self._path)  # interrupted just before the record was updated
        self._hash = hashlib.sha256()
        self._file = self._path.open("r+b" if record.bytes else "wb")
        try:
            self._verify(record)
        except BaseException:
            self._file.close()
            raise

    def _verify(self, record: ShardRecord) -> None:
        """Compare the file with the record, and truncate the file after what the record covers."""
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
        """Return the ids of the documents that have been written."""
        seen = SeenIds()
        if self.record.bytes:
            with CorpusFile(self._path, str(self._path)) as file:
                for _, document in ready_documents(file):
                    seen.add(document.id)
        return seen

    def add(self, packed: Packed, position: Position) -> None:
        """Write a batch; ``position`` is the reading position after it."""
        self._file.write(packed.packed)
        self._hash.update(packed.packed)
        self.record.bytes += len(packed.packed)
        self.record.state.take(packed.counts, position)

    def checkpoint(self) -> None:
        """Make what is written survive a kill of the process and a crash of the machine."""
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
        """Close the file; another run can resume it. May be called twice."""
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self.record.sha256 = self._hash.hexdigest()


def remove_chunks(folder: ChunkFolder, number: int) -> None:
    """Remove a source from the folder: its record first, then its files."""
    paths: list[Path] = [
        folder.record_file(number),
        folder.chunks(number),
        folder.chunks_under_way(number),
    ]
    for path in paths:
        path.unlink(missing_ok=True)

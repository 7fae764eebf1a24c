"""Building on a cluster: blocks of the sources, which other processes read, cut, pack and write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from arag_search.engines.write import BlockWriting
from arag_search.field_counts import no_counts
from index_jobs.build.corpus import Corpus
from index_jobs.build.report import BuildState
from index_jobs.cutting.chunking import Work
from index_jobs.cutting.counts import Counts
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.source import CorpusReader, Position, SeenIds, SourcePart

BLOCK_BYTES = 16 << 20
"""The usual size of a block on disk. A resumed build repeats the blocks that were under way."""


class BlockPart(NamedTuple):
    """What another process needs of a block. ``metadata`` is the reader of the source, in one
    pickle with it."""

    shard: int
    part: SourcePart
    metadata: MetadataReader


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the sources, in corpus order. ``read_bytes`` counts the bytes of all sources that
    have been read once the block is read."""

    payload: BlockPart
    read_bytes: int

    @property
    def place(self) -> dict[str, int]:
        """The place in a Position after the block."""
        shard, part, _ = self.payload
        if part.last is None:
            return {"shard": shard + 1, "records": 0, "shard_entries": 0}
        return {"shard": shard, "records": part.last, "shard_entries": part.last_entries}


class WrittenBlock(NamedTuple):
    """The counts of a block, what was left out of it, the ids of its documents, and the result of
    writing it."""

    state: BuildState
    ids: list[str]
    written: Any


@dataclass(frozen=True, slots=True)
class BlockWork:
    """A function that reads, packs and writes a block, in another process.

    Raises what reading, packing and writing raise; DuplicateIdError for ids within the block.
    """

    pack: Work
    write: BlockWriting
    skip_bad_lines: bool
    skip_bad_files: bool

    def __call__(self, block: BlockPart) -> WrittenBlock:
        shard, part, metadata = block
        start = Position(shard=shard, records=part.first, shard_entries=part.entries)
        state = BuildState(Counts(fields=no_counts(metadata.fields)))
        ids: dict[str, None] = {}
        reader = CorpusReader(
            [part.source],
            metadata,
            start,
            SeenIds(),
            ids.__contains__,
            first_shard=shard,
            skip_bad_lines=self.skip_bad_lines,
            skip_bad_files=self.skip_bad_files,
        )

        def packed() -> Iterator[Any]:
            for batch in reader.batches():
                ids.update((document.id, None) for _, _, document in batch.documents)
                done = self.pack(batch.documents)
                state.take(done.counts, batch.position)
                yield done.packed

        written = self.write(packed())
        return WrittenBlock(state, list(ids), written)


def blocks(corpus: Corpus, start: Position) -> Iterator[Block]:
    """Yield the blocks after a position. Raises SourceError."""
    done_bytes = 0
    place = start.records, start.shard_entries
    for shard, source in enumerate(corpus.sources):
        if shard >= start.shard:
            for part in source.parts(*place, BLOCK_BYTES):
                yield Block(BlockPart(shard, part, corpus.metadata), done_bytes + part.read_bytes)
            place = 0, 0
        done_bytes += source.size

"""Reports on the contents of a folder of chunks, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from arag_search.system.progress import counted, duration
from index_jobs.build.corpus import first_large, summed
from index_jobs.build.report import Report, SourcesReport
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import KEPT_FILES, SHOWN_EXAMPLES, Unread, count_unread
from index_jobs.stages.chunk_folder import ChunkFolder

Stage = Literal["finished", "under way", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """The state of one source; counts are as of its last checkpoint. ``bytes`` is the size of its
    file of chunks. A finished source is damaged if its file is missing or has another size."""

    number: int
    name: str
    stage: Stage
    documents: int
    chunks: int
    sentences: int
    tokens: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FolderStatus(Report):
    """The contents of a folder of chunks. ``missing`` counts the sources that are not finished."""

    folder: str
    missing: int
    documents: int
    chunks: int
    sentences: int
    tokens: int
    bytes: int
    shards: tuple[ShardStatus, ...]

    def to_text(self) -> str:
        """Return the status in words, one line for each source."""
        finished = len(self.shards) - self.missing
        lines = [
            f"{self.folder}: {finished:,} of {counted(len(self.shards), 'source')} cut,"
            f" {_sums(self.documents, self.chunks, self.sentences, self.tokens)};"
            f" {self.bytes / 1e6:,.1f} MB."
        ]
        for shard in self.shards:
            line = f"{shard.number:05}  {shard.stage:9}  {shard.name}"
            if shard.stage != "missing":
                line += f": {counted(shard.documents, 'document')}, {shard.bytes / 1e6:,.1f} MB"
            lines.append(line)
        if self.missing:
            lines.append(
                "Next: run the same chunk command again, or copy the files from other machines."
            )
        else:
            lines.append(f"Next: python -m index_jobs load {self.folder} --to INDEX")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ChunkReport(SourcesReport):
    """The result of a run of ``chunk`` over its share. ``continued`` counts the documents of
    earlier runs; ``missing`` counts the sources of the whole list that are not cut in this
    folder."""

    folder: str
    sources: int
    documents: int
    chunks: int
    sentences: int
    tokens: int
    bytes: int
    run_seconds: float
    documents_per_second: float
    continued: int
    missing: int
    workers: int

    def to_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps(asdict(self))

    def to_text(self) -> str:
        """Return the report in words."""
        lines = [
            f"Cut {counted(self.sources, 'source')} into {self.folder}:"
            f" {_sums(self.documents, self.chunks, self.sentences, self.tokens)};"
            f" {self.bytes / 1e6:,.1f} MB; {duration(self.run_seconds)},"
            f" {self.documents_per_second:,.0f} documents/s."
        ]
        if self.missing:
            lines.append(f"not cut in this folder: {counted(self.missing, 'source')}")
        return "\n".join([*lines, *self.warnings()])


def _sums(documents: int, chunks: int, sentences: int, tokens: int) -> str:
    return (
        f"{counted(documents, 'document')} in {counted(chunks, 'chunk')},"
        f" {counted(sentences, 'sentence')}, {counted(tokens, 'token')}"
    )


def folder_status(path: Path) -> FolderStatus:
    """Return the status of a folder of chunks; checksums are not compared. Raises SourceError if it
    is not a folder of chunks."""
    folder = ChunkFolder(path)
    shards = tuple(
        _shard_status(folder, number, name) for number, name in enumerate(folder.manifest().sources)
    )
    return FolderStatus(
        folder=str(path),
        missing=sum(shard.stage != "finished" for shard in shards),
        documents=sum(shard.documents for shard in shards),
        chunks=sum(shard.chunks for shard in shards),
        sentences=sum(shard.sentences for shard in shards),
        tokens=sum(shard.tokens for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        shards=shards,
    )


def _shard_status(folder: ChunkFolder, number: int, name: str) -> ShardStatus:
    record = folder.record(number)
    if record is None:
        return ShardStatus(number, name, "missing", 0, 0, 0, 0, 0)
    stage: Stage = "under way"
    if record.finished:
        stage = "finished" if folder.is_whole(number, record) else "damaged"
    state = record.state
    return ShardStatus(
        number,
        name,
        stage,
        state.documents,
        state.chunks,
        state.sentences,
        state.tokens,
        record.bytes,
    )


def chunk_report(
    folder: ChunkFolder, share: Sequence[int], *, seconds: float, continued: int, workers: int
) -> ChunkReport:
    """Return the report on the sources of a share, which must all be finished."""
    status = folder_status(folder.path)
    shards = [status.shards[number] for number in share]
    records = [record for number in share if (record := folder.record(number)) is not None]
    metadata = MetadataReader({})
    for record in records:
        metadata.take(record.state.undeclared, ())
    examples = [example for record in records for example in record.state.skipped_examples]
    bad_files = [name for record in records for name in record.state.skipped_file_examples]
    documents = sum(shard.documents for shard in shards)
    unread: Unread = {}
    for record in records:
        count_unread(unread, record.state.unread)
    return ChunkReport(
        folder=status.folder,
        sources=len(shards),
        documents=documents,
        chunks=sum(shard.chunks for shard in shards),
        sentences=sum(shard.sentences for shard in shards),
        tokens=sum(shard.tokens for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        run_seconds=round(seconds, 3),
        documents_per_second=round((documents - continued) / seconds, 1),
        continued=continued,
        missing=status.missing,
        skipped_lines=sum(record.state.skipped for record in records),
        skipped_examples=tuple(examples[:SHOWN_EXAMPLES]),
        left_out=summed(record.left_out for record in records),
        undeclared_metadata=metadata.undeclared,
        workers=workers,
        skipped_files=sum(record.state.skipped_files for record in records),
        skipped_file_examples=tuple(bad_files[:KEPT_FILES]),
        large_files=first_large(record.large_files for record in records),
        unread=unread,
    )

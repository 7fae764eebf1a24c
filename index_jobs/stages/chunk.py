"""The ``chunk`` stage: reading, cutting and counting sources once, into a folder of chunks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from arag_search.corpus import Document
from arag_search.errors import ArgumentError, DuplicateIdError, SourceError, WorkerLostError
from arag_search.system.processes import Interrupts
from arag_search.system.progress import Progress
from index_jobs.build.corpus import (
    NO_DOCUMENTS,
    Checkpoints,
    packed_batches,
    recognition,
    reporting_full_disk,
    resume_advice,
)
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildState
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import are_already_chunked, check_names, open_source
from index_jobs.sources.reading import CorpusReader, SeenIds, Source
from index_jobs.stages.chunk_folder import (
    ChunkFolder,
    ChunkWriter,
    ShardRecord,
    manifest_for,
    remove_chunks,
)
from index_jobs.stages.chunk_lines import pack_lines
from index_jobs.stages.chunk_report import ChunkReport, chunk_report
from index_jobs.workers.pool import default_workers, open_packing

_SHARE = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the sources: every ``of``-th one, starting with number ``which`` (from 1)."""

    which: int = 1
    of: int = 1

    def numbers(self, sources: int) -> range:
        """Return the numbers (from 0) of the sources of this share, out of ``sources``."""
        return range(self.which - 1, sources, self.of)


WHOLE = Share()


def parse_share(text: str) -> Share:
    """Parse a share such as ``2/4``. Raises ArgumentError."""
    match = _SHARE.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ArgumentError(
            f'--share: "{text}" is not a share.', allowed="I/N such as 1/4, I from 1 to N"
        )
    return Share(int(match[1]), int(match[2]))


def chunk_sources(
    names: Sequence[str],
    out: Path,
    options: BuildOptions,
    progress: Progress | None = None,
    share: Share = WHOLE,
) -> ChunkReport:
    """Cut a share of ``names`` (folders and files) into the folder ``out``.

    Only the options for reading and cutting are used. The same call resumes an interrupted one,
    and skips sources that are finished. Raises ArgumentError if the folder belongs to other sources
    or options, IndexLockedError, SourceError, BuildError. After a KeyboardInterrupt, a checkpoint
    is written and the interrupt is raised again.
    """
    shown = progress or Progress()
    folder = ChunkFolder(out)
    try:
        return _Cutting(list(names), folder, options, shown, share).run()
    finally:
        folder.release()
        shown.end()


class _Cutting:
    """One run of the stage; ``_writer`` is that of the current source."""

    def __init__(
        self,
        names: list[str],
        folder: ChunkFolder,
        options: BuildOptions,
        progress: Progress,
        share: Share,
    ) -> None:
        check_names(names)
        self._began = time.monotonic()
        self._names = names
        self._files = options.files.rooted(names)
        self._folder = folder
        self._options = options
        self._progress = progress
        self._share = share
        self._metadata = MetadataReader(options.metadata)
        self._sources = {
            number: self._open(number) for number in share.numbers(len(names))
        }  # the other sources may exist only on other machines
        are_already_chunked(list(self._sources.values()))
        size = sum(source.size for source in self._sources.values())
        self._workers = default_workers(size) if options.workers is None else options.workers
        self._documents = self._continued = 0

    def _open(self, number: int, metadata: MetadataReader | None = None) -> Source:
        options = self._options
        reader = metadata or self._metadata
        name = self._names[number]
        return open_source(name, options.format, options.fields, reader, self._files)

    def run(self) -> ChunkReport:
        folder = self._folder
        with (
            resume_advice(self._next_run, self._progress.note),
            reporting_full_disk(str(folder.path), self._next_run, "chunks"),
        ):
            folder.claim(manifest_for(self._names, self._options))
            self._cut_all()
        report = chunk_report(
            folder,
            self._share.numbers(len(self._names)),
            seconds=time.monotonic() - self._began,
            continued=self._continued,
            workers=self._workers,
        )
        if not report.missing and not report.documents and self._share == WHOLE:
            raise SourceError(
                "The corpus is empty: no document was found.",
                where=", ".join(self._names[:5]),
                do=NO_DOCUMENTS,
            )
        return report

    def _cut_all(self) -> None:
        waiting: dict[int, Source] = {}
        done_bytes = 0
        for number, source in self._sources.items():
            if self._is_cut(number, source):
                done_bytes += source.size
            else:
                waiting[number] = source
        total_bytes = sum(source.size for source in self._sources.values())
        self._progress.begin("documents", total_bytes, done_bytes)
        if not waiting:
            return
        work = partial(pack_lines, chunk_tokens=self._options.chunk_tokens)
        with (
            Interrupts() as self._interrupts,
            open_packing(self._workers, work) as self._packing,
        ):
            for number, source in waiting.items():
                self._folder.hold(number)
                if not self._is_cut(number, source):  # by another process, meanwhile
                    self._cut(number, source, done_bytes)
                done_bytes += source.size

    def _is_cut(self, number: int, source: Source) -> bool:
        """Return whether a source is finished. Raises SourceError if it has changed since."""
        record = self._folder.record(number)
        if record is None or not self._folder.is_whole(number, record):
            return False
        if record.source != source.signature():
            raise SourceError(
                "The source was changed after it was cut.",
                where=source.name,
                do=f"Remove {self._folder.record_file(number)} to cut it again, or give another"
                " --out.",
            )
        self._documents += record.state.documents
        self._continued += record.state.documents
        return True

    def _cut(self, number: int, source: Source, done_bytes: int) -> None:
        """Cut one source, from its last checkpoint on."""
        self._number = number
        writer = self._writer = self._open_writer(number, source)
        try:
            self._read(number, source, done_bytes)
            if source.signature() != writer.record.source:
                remove_chunks(self._folder, number)
                raise SourceError(
                    "A source changed while it was being read.",
                    where=source.name,
                    do="Run the same command again once nothing is writing to it.",
                )
            writer.record.left_out = dict(source.left_out)
            writer.record.large_files = list(source.large_files)
            writer.finish()
        except (KeyboardInterrupt, WorkerLostError) as stop:
            if isinstance(stop, WorkerLostError) or self._interrupts.between_batches:
                self._save()
            raise
        except DuplicateIdError as error:
            first = next(self._addresses(number, error.doc_id))
            error.name_first(first)
            raise
        finally:
            writer.close()

    def _open_writer(self, number: int, source: Source) -> ChunkWriter:
        fresh = ShardRecord(
            source.name,
            source.format,
            source.signature(),
            dict(source.left_out),
            BuildState(shard=number),
        )
        if source.recognised:
            self._progress.note(recognition(source))
        record = self._folder.record(number)
        if record is None or (record.source, record.format) != (fresh.source, fresh.format):
            remove_chunks(self._folder, number)
            return ChunkWriter(self._folder, number, fresh)
        record.finished = False
        try:
            writer = ChunkWriter(self._folder, number, record)
        except (ValueError, FileNotFoundError):
            self._progress.note(f"{source.name}: starting over, because its chunks are damaged")
            remove_chunks(self._folder, number)
            return ChunkWriter(self._folder, number, fresh)
        done = record.state.documents
        self._progress.note(f"{source.name}: resuming after {done:,} documents")
        self._documents += done
        self._continued += done
        return writer

    def _read(self, number: int, source: Source, done_bytes: int) -> None:
        writer, options = self._writer, self._options
        # If bad records or files are skipped, duplicate ids are left to the load stage, which sees
        # all sources.
        skips = options.skip_bad_lines
        leaves_duplicates = skips or options.files.skip_bad
        reader = CorpusReader(
            [source],
            self._metadata,
            writer.record.state.position,
            SeenIds() if leaves_duplicates else writer.ids(),
            (lambda _: False) if leaves_duplicates else self._is_repeated,
            first_shard=number,
            skip_bad_lines=skips,
            skip_bad_files=options.files.skip_bad,
        )
        checkpoints = Checkpoints(writer.checkpoint, options.checkpoint_s)
        for packed, position, read_bytes in packed_batches(reader, self._packing, done_bytes):
            writer.add(packed, position)
            self._documents += packed.counts.documents
            self._progress.read(read_bytes, self._documents)
            self._interrupts.check()
            checkpoints.save_if_due()

    def _is_repeated(self, doc_id: str) -> bool:
        """Return whether the current source has two documents with this id."""
        return len(list(islice(self._addresses(self._number, doc_id), 2))) == 2

    def _save(self) -> None:
        try:
            self._writer.checkpoint()
        except OSError as error:
            self._progress.note(f"No checkpoint could be written: {error.strerror}")

    def _addresses(self, number: int, doc_id: str) -> Iterator[str]:
        """Read a source again, and yield the place of each document with this id."""
        again = self._open(number, MetadataReader(self._options.metadata))
        for _, entry in again.documents():
            if isinstance(entry, Document) and entry.id == doc_id:
                yield entry.where

    def _next_run(self) -> str:
        return "it resumes where it stopped"

"""Building an index: reading, cutting, counting and writing the sources, with checkpoints."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from arag_search.engines.open import open_build
from arag_search.engines.write import Build, IndexWriter
from arag_search.errors import (
    AragError,
    ArgumentError,
    BuildError,
    DuplicateIdError,
    IndexDamagedError,
    NotInTimeError,
    UnavailableError,
    WorkerLostError,
)
from arag_search.field_counts import no_counts
from arag_search.manifest import Manifest
from arag_search.query.forms import steps
from arag_search.search.standing import now
from arag_search.system.arguments import checked
from arag_search.system.processes import Interrupts
from arag_search.system.progress import Progress
from index_jobs.build.blocks import Block, BlockWork, WrittenBlock, blocks
from index_jobs.build.corpus import Corpus, explained_stops, is_being_packed
from index_jobs.build.language import AUTO, Detected, detected
from index_jobs.build.options import BuildOptions, check_location
from index_jobs.build.report import CHECKPOINT_VERSION, BuildReport, BuildState, index_counts
from index_jobs.cutting.chunking import Packed, Work, pack
from index_jobs.cutting.counts import Counts
from index_jobs.sources.folders.selection import STDIN
from index_jobs.sources.folders.table import FileTable, Following, note_read
from index_jobs.sources.lines.records import Given, Records, named
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import are_already_chunked, open_sources
from index_jobs.sources.source import Batch, CorpusReader, SeenIds
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.pool import open_executor

_STATE = "build"
CHECKPOINT_S = 15.0
"""Seconds from one checkpoint to the next, if a checkpoint takes little of them."""
CHECKPOINT_SHARE = 20
"""At least so many times as long as a checkpoint takes, until the next one."""


@checked
def build_index(
    sources: Given,
    to: str | Path,
    options: BuildOptions | None = None,
    progress: Progress | None = None,
    *,
    source: str | None = None,
) -> BuildReport:
    """Build an index from ``sources`` at ``to``, a folder or an address.

    ``sources`` are folders and files, or records: an iterable of dicts ``{"id", "title", "text",
    ...metadata}`` or Documents, which are read as they come. ``source`` names them in messages and
    for later additions. Metadata that ``options`` do not declare are ignored, and named by the
    warnings of the report. An error that the iterable raises passes through.

    The index appears, or replaces the earlier one, when it is finished. An interrupted build is
    resumed from its last checkpoint, with Ray or without, if the sources and the options are
    unchanged. Otherwise it starts over; with records it always does. Raises IndexExistsError,
    IndexLockedError, SourceError, BuildError, EngineError, and ArgumentError for an invalid address
    or options that do not apply to the location. With Ray, it also raises what ``Cluster`` raises,
    and DuplicateIdError for an id in two blocks even if bad records are skipped. After a
    KeyboardInterrupt, a checkpoint is written and the interrupt is raised again.
    """
    options = options or BuildOptions()
    progress = progress or Progress()
    check_location(to, options)
    names = named(sources, source)
    if options.ray is not None and (isinstance(names, Records) or STDIN in names):
        what = "records" if isinstance(names, Records) else "standard input"
        raise ArgumentError(
            f"`ray`: other machines cannot read {what}.",
            allowed="files and folders on storage that all machines share",
            do="Save them to a file there, and name that.",
        )
    with (
        Cluster(options.ray) if options.ray is not None else nullcontext() as cluster,
        open_build(to, options, progress.note) as target,
    ):
        try:
            return _Build(names, to, options, progress, target, cluster).run()
        finally:
            progress.end()


class _Build:
    """One run of a build. Between batches, ``_state`` counts exactly what the writer has."""

    def __init__(
        self,
        names: list[str] | Records,
        location: str | Path,
        options: BuildOptions,
        progress: Progress,
        target: Build,
        cluster: Cluster | None,
    ) -> None:
        self._began = time.monotonic()
        self._location = location
        self._options = options
        self._progress = progress
        self._target = target
        self._cluster = cluster
        metadata = MetadataReader(options.metadata)
        self._began_at = now()
        self._is_resumable = not isinstance(names, Records)
        files = [] if isinstance(names, Records) else names
        self._following = Following.of(files, options.format, options.fields, options.files)
        sources = open_sources(names, options.format, options.fields, metadata, options.files)
        self._look = self._following.look_of(sources)
        self._corpus = Corpus(sources, metadata, options.chunk_tokens)
        self._already_chunked = are_already_chunked(sources)
        if cluster is None:
            self._workers = self._corpus.workers(options.workers)
        else:
            self._workers = cluster.workers(options.workers)
            cluster.check({os.path.abspath(source.name): None for source in sources})
        self._language = ""
        self._detected: Detected | None = None
        self._signature = {
            **options.signature(),
            "the checkpoint format": CHECKPOINT_VERSION,
            "the sources": self._corpus.signature,
        }
        self._state = BuildState(Counts(fields=no_counts(metadata.fields)))
        self._ids = SeenIds()
        self._seconds_before = 0.0
        self._resumed_documents = 0
        self._saved_documents = 0

    def run(self) -> BuildReport:
        with (
            Interrupts() as interrupts,
            explained_stops(str(self._location), self._next_run, self._progress.note),
        ):
            if "forms" not in self._options.without:
                self._language = self._chosen_language()
            self._open()
            try:
                if self._cluster is None:
                    self._write_batches(interrupts)
                else:
                    self._write_blocks(interrupts, self._cluster)
                self._finish_writing()
            except BaseException as stop:
                is_between = isinstance(stop, KeyboardInterrupt) and interrupts.between_batches
                self._close(saves=is_between or isinstance(stop, WorkerLostError))
                raise
            self._target.publish(self._generation)
        report = self._report()
        self._note_files(report)
        return report

    # Opening

    def _chosen_language(self) -> str:
        if self._options.language != AUTO:
            return self._options.language
        self._detected = detected(self._corpus.sources, self._corpus.metadata)
        return self._detected.language

    def _open(self) -> None:
        """Find the checkpoint to resume from, or start a new index."""
        self._corpus.note_formats(self._progress.note)
        generation, is_resumed, why = self._target.begin(self._signature)
        if is_resumed:
            try:
                self._writer = self._open_writer(generation, resume=True)
            except IndexDamagedError:
                self._target.discard(generation)
                generation, is_resumed, _ = self._target.begin(self._signature)
                why = "the unfinished index is damaged"
        if not is_resumed:
            self._writer = self._open_writer(generation, resume=False)
        elif _STATE in self._writer.checkpoint:
            why = self._resume(self._writer.checkpoint[_STATE], why)
        else:
            is_resumed, why = False, "it was stopped before its first checkpoint"
        self._generation, self._why = generation, why
        if why:
            self._progress.note(f"{'Resuming' if is_resumed else 'Starting over'}: {why}.")
        done = sum(source.size for source in self._corpus.sources[: self._state.position.shard])
        self._progress.begin("documents", self._corpus.size or None, done)

    def _open_writer(self, generation: str, *, resume: bool) -> IndexWriter:
        fields, language = self._corpus.metadata.fields, self._language
        try:
            return self._target.open_writer(
                generation, metadata=fields, language=language, resume=resume
            )
        except BaseException:
            if not resume:
                self._target.discard(generation)
            raise

    def _resume(self, state: str, why: str) -> str:
        """Restore the counts of an earlier run; return why it is resumed, in words."""
        self._state = BuildState.from_json(state)
        for identifier in self._writer.document_ids():
            self._ids.add(identifier)
        self._seconds_before = self._state.seconds
        self._resumed_documents = self._saved_documents = self._state.counts.documents
        return f"after {self._resumed_documents:,} documents, {why}"

    # Writing

    def _write_batches(self, interrupts: Interrupts) -> None:
        with open_executor(self._workers, self._work()) as executor:
            reader = CorpusReader(
                self._corpus.sources,
                self._corpus.metadata,
                self._state.position,
                self._ids,
                lambda id: is_being_packed(executor, id) or self._writer.has_document(id),
                skip_bad_lines=self._options.skip_bad_lines,
                skip_bad_files=self._options.files.skip_bad_files,
            )
            self._write(executor.results(reader.batches()), self._add_batch, interrupts)

    def _write_blocks(self, interrupts: Interrupts, cluster: Cluster) -> None:
        """Let a cluster read, pack and write the corpus, block by block."""
        options = self._options
        write = self._writer.block_writing()
        cluster.check(write.needs)
        work = BlockWork(self._work(), write, options.skip_bad_lines, options.files.skip_bad_files)
        with cluster.executor(work, self._workers) as executor:
            parts = blocks(self._corpus, self._state.position)
            self._write(executor.results(parts), self._add_block, interrupts)

    def _write(
        self,
        results: Iterator[tuple[Any, Any] | None],
        add: Callable[[Any, Any], None],
        interrupts: Interrupts,
    ) -> None:
        """Add batches or blocks with their results, with a checkpoint every CHECKPOINT_S seconds,
        or less often if it is slow."""
        next_s = time.monotonic() + CHECKPOINT_S if self._is_resumable else math.inf
        for result in results:
            if result is not None:
                add(*result)
                self._show_progress(result[0].read_bytes)
            interrupts.check()
            began = time.monotonic()
            if began >= next_s:
                self._commit()
                took_s = time.monotonic() - began
                next_s = began + took_s + max(CHECKPOINT_S, took_s * CHECKPOINT_SHARE)

    def _add_batch(self, batch: Batch, packed: Packed) -> None:
        self._writer.add_packed(packed.packed)
        self._state.take(packed.counts, batch.position)

    def _add_block(self, block: Block, written: WrittenBlock) -> None:
        """Add a block. Raises DuplicateIdError if a document of an earlier block has one of its
        ids, because a cluster does not take back what it has written."""
        for id in written.ids:
            if self._ids.add(id) and self._writer.has_document(id):
                do = "Remove or rename one of them"
                if self._options.skip_bad_lines:
                    do += ", or build without `ray`, which skips the second"
                raise DuplicateIdError(id, where=block.payload.part.source.name, do=f"{do}.")
        self._writer.add_block(written.written)
        self._state.join(written.state, block.place)

    def _work(self) -> Work:
        return partial(
            pack,
            packer=self._writer.packer,
            chunk_tokens=self._options.chunk_tokens,
            metadata=self._corpus.metadata.fields,
        )

    def _show_progress(self, read_bytes: int) -> None:
        sent = self._writer.sent
        busy = sent.rejected or sent.retries
        details = f"{sent.rejected:,} rejected, {sent.retries:,} retries" if busy else ""
        self._progress.read(read_bytes, self._state.counts.documents, details)

    def _commit(self) -> None:
        self._writer.commit(self._checkpoint_data())
        self._saved_documents = self._state.counts.documents

    def _checkpoint_data(self) -> dict[str, str]:
        self._state.seconds = self._seconds_before + time.monotonic() - self._began
        return {_STATE: self._state.to_json()}

    def _finish_writing(self) -> None:
        if not self._state.counts.documents:
            raise self._corpus.no_documents("The corpus is empty", self._state.position)
        self._corpus.check_unchanged()
        self._verify()
        self._manifest = self._new_manifest()
        self._writer.finish(self._manifest, self._checkpoint_data())
        self._saved_documents = self._state.counts.documents

    def _verify(self) -> None:
        """Compare the counts with the new index."""
        chunks, counted_sentences = self._writer.counts()
        counts = self._state.counts
        sentences = counts.sentences if counted_sentences is None else counted_sentences
        if (chunks, sentences) != (counts.chunks, counts.sentences):
            self._saved_documents = 0
            raise BuildError(
                f"The index holds {chunks:,} passages and {sentences:,} sentences, but"
                f" {counts.chunks:,} and {counts.sentences:,} were written.",
                where=str(self._location),
                do="Run the same command again: it starts over.",
            )

    def _new_manifest(self) -> Manifest:
        options = self._options
        return Manifest(
            engine=self._target.engine,
            engine_version=self._target.engine_version,
            created=now(),
            sources=tuple(name for name, _ in self._corpus.formats),
            source_format=", ".join(sorted({kind for _, kind in self._corpus.formats})),
            chunk_tokens=options.chunk_tokens,
            already_chunked=self._already_chunked,
            k1=options.bm25.k1,
            b=options.bm25.b,
            language=self._language,
            forms=steps(self._language) if self._language else (),
            metadata=self._corpus.metadata.fields,
            file_metadata=tuple(sorted(self._corpus.metadata.file_fields)),
            undeclared_metadata=self._state.position.undeclared,
            without=tuple(options.without),
            skipped_lines=self._state.position.skipped,
            shard_sources=self._corpus.identities,
            reading=options.in_manifest(self._following.names, self._following.files.root),
            **self._state.counts.in_manifest(),
        )

    def _note_files(self, report: BuildReport) -> None:
        """Note which files the index has read."""
        look, table = self._look, None
        if look is not None:
            table = FileTable(self._following.digest(), "", {})
            table = table.after(look, look.files, self._corpus.sources, report.fingerprint)
            late, *_ = report.unread.get(NotInTimeError.kind, (0,))
            has_bad = "" in table.unread.values()
            if (report.skipped_files and not has_bad) or late != len(look.files) - len(table.files):
                table = None  # another run or machine has read some
        left_out, began = report.left_out_lines(), self._began_at
        note_read(self._location, self._following, look, table, began=began, left_out=left_out)

    # Stopping

    def _next_run(self) -> str:
        if self._saved_documents:
            return f"it resumes after {self._saved_documents:,} documents"
        return "it starts over"

    def _close(self, *, saves: bool) -> None:
        """Close the writer, with a checkpoint if the state matches what it has, and discard the
        generation if none was saved."""
        try:
            if saves and self._is_resumable:
                self._commit()
        except AragError as error:
            self._progress.note(f"No checkpoint could be written: {error.what}")
        finally:
            self._writer.abort()
            if not self._saved_documents:
                try:
                    self._target.discard(self._generation)
                except UnavailableError as error:  # report what stopped the build, not this
                    self._progress.note(f"The unfinished index could not be removed: {error.what}")

    # Reporting

    def _report(self) -> BuildReport:
        sent = self._writer.sent
        documents = self._manifest.documents - self._resumed_documents
        seconds = time.monotonic() - self._began
        return BuildReport(
            location=str(self._location),
            generation=self._generation,
            sources=self._corpus.formats,
            seconds=round(self._seconds_before + seconds, 3),
            run_seconds=round(seconds, 3),
            documents_per_second=round(documents / seconds, 1),
            continued=self._resumed_documents,
            why=self._why,
            workers=self._workers,
            rejected=sent.rejected,
            retries=sent.retries,
            notes=self._notes(),
            **index_counts(self._manifest),
            **self._corpus.reading(self._state.position),
        )

    def _notes(self) -> tuple[str, ...]:
        absent = (
            f"declared in `metadata`, but in no record: {name}"
            for name in self._options.metadata
            if name not in self._state.position.seen
        )
        detected = [] if self._detected is None else [str(self._detected)]
        return (*absent, *detected, *self._corpus.notes())

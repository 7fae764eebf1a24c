"""Adding documents to an existing index; a document whose id is in the index is replaced."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from arag_search.corpus import SHARD_BITS, Chunk
from arag_search.engines.update_record import UpdateRecord
from arag_search.engines.write import IndexUpdate
from arag_search.errors import ArgumentError, BuildError, SourceError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.system.interrupts import Interrupts
from arag_search.system.progress import Progress, SilentProgress, duration
from index_jobs.build.corpus import Corpus, summed
from index_jobs.build.ingestion import Ingestion
from index_jobs.build.options import DEFAULT_FIELDS, BuildOptions
from index_jobs.build.report import (
    SHOWN_EXAMPLES,
    BuildState,
    Report,
    counted,
    left_out_lines,
    source_lines,
)
from index_jobs.cutting.packing import Packed, pack
from index_jobs.sources.duplicates import SeenIds
from index_jobs.sources.files.selection import USUAL_FILES, FileSelection
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.reading import CorpusReader, Position
from index_jobs.sources.registry import PRE_CHUNKED, Format
from index_jobs.sources.source import Source
from index_jobs.updates.recovery import digest_of, recover_update, resumable_update
from index_jobs.updates.tally import Tally, existing_chunks, index_counts, with_placement
from index_jobs.workers.pool import open_packing


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of an addition.

    ``format``, ``fields``, ``skip_bad_lines``, ``files`` and ``workers`` are as in BuildOptions.
    The others are properties of the index: each is None or the value that the index already has.
    ``bm25`` is k1 and b.
    """

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = False
    files: FileSelection = USUAL_FILES
    chunk_tokens: int | None = None
    bm25: tuple[float, float] | None = None
    metadata: Mapping[str, MetadataType] | None = None
    without: tuple[str, ...] | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class AddReport(Report):
    """The documents added and replaced, their sources, and the index afterwards.

    ``finished_before`` is true if the same command had already done this before it was interrupted.
    """

    location: str
    sources: tuple[tuple[str, str], ...]
    added: int
    replaced: int
    finished_before: bool
    documents: int
    chunks: int
    sentences: int
    tokens: int
    fingerprint: str
    update: int
    seconds: float
    documents_per_second: float
    skipped_lines: int
    skipped_examples: tuple[str, ...]
    left_out: Mapping[str, int]
    undeclared_metadata: Mapping[str, int]
    skipped_files: int
    skipped_file_examples: tuple[str, ...]
    large_files: tuple[str, ...]

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        lines = [
            f"Updated {self.location}: {counted(self.added, 'document')} added,"
            f" {self.replaced:,} replaced; it holds {counted(self.documents, 'document')} in"
            f" {counted(self.chunks, 'chunk')}; {duration(self.seconds)},"
            f" {self.documents_per_second:,.0f} documents/s."
        ]
        lines += source_lines(self.sources)
        if self.finished_before:
            lines.append("The same command had already done this before it was stopped.")
        if self.replaced:
            lines.append(
                "scores differ a little from a new build until:"
                f" arag-search compact {self.location}"
            )
        return "\n".join([*lines, *self.warnings()])

    def warnings(self) -> list[str]:
        """Return what was left out, one line for each item."""
        return left_out_lines(self, "not declared when the index was built")


def add_documents(
    sources: Sequence[str],
    location: str | Path,
    options: AddOptions | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add the documents of ``sources`` to the index at ``location``.

    They are cut and stored with the options with which the index was built. A document whose id is
    in the index replaces the earlier document. Readers see the whole update or nothing of it.
    Raises IndexNotFoundError, IndexLockedError if a build or another update is running,
    SourceError, ArgumentError for options that contradict those of the index, BuildError,
    EngineError. After a KeyboardInterrupt, the update is undone.
    """
    progress = progress or SilentProgress()
    outlook = "nothing was added, and it begins anew"
    with resumable_update(location, progress, outlook) as target:
        return _Addition(list(sources), location, options or AddOptions(), progress, target).run()


class _Addition:
    """One run of an addition, and the target of its batches."""

    details = ""

    def __init__(
        self,
        names: list[str],
        location: str | Path,
        options: AddOptions,
        progress: Progress,
        target: IndexUpdate,
    ) -> None:
        self._began = time.monotonic()
        self._where = str(location)
        self._options = options
        self._progress = progress
        self._target = target
        _check_options(target.manifest, options, self._where)
        metadata = metadata_reader(target.manifest)
        opened = open_sources(names, options.format, options.fields, metadata, options.files)
        self._corpus = Corpus(opened, metadata)
        _check_formats(target.manifest, opened, self._where)
        self._state = BuildState()
        self._ids: set[str] = set()
        self._replaced = 0

    def run(self) -> AddReport:
        with Interrupts() as interrupts:
            self._corpus.note_formats(self._progress.note)
            record, is_done = recover_update(self._target, self._record(), self._progress)
            if is_done:
                return self._report(record, self._target.manifest, finished=True)
            self._before = with_placement(self._target)
            self._tally = Tally(self._before)
            return self._add(replace(record, update=self._before.update + 1), interrupts)

    def _add(self, record: UpdateRecord, interrupts: Interrupts) -> AddReport:
        first = self._target.first_shard()
        if first + len(self._corpus.sources) > 1 << SHARD_BITS:
            raise BuildError(
                f"The index has had {first:,} sources, and cannot hold more.",
                where=self._where,
                allowed=f"{1 << SHARD_BITS:,} sources, counting those of all updates",
                do="Build it again from all of its sources with --overwrite.",
            )
        self._target.begin(record)
        try:
            self._write_all(first, interrupts)
            after = self._after()
            added = self._state.documents - self._replaced
            record = replace(record, added=added, replaced=self._replaced)
            self._target.publish(after, record)
        except BaseException:
            self._target.give_up()
            raise
        return self._report(record, after)

    def _record(self) -> UpdateRecord:
        options = self._options
        how = [options.format, dataclasses.astuple(options.fields), options.skip_bad_lines]
        if options.files.skip_bad:
            how.append("--skip-bad-files")
        names = " ".join(name for name, _ in self._corpus.formats)
        program = BuildOptions().signature()["the program"]
        return UpdateRecord(
            digest_of("add", self._corpus.signature, how, program),
            f"arag-search index {names} --add --to {self._where}",
            self._target.manifest.update + 1,
        )

    # Writing

    def _write_all(self, first_shard: int, interrupts: Interrupts) -> None:
        """Read, cut and write the sources."""
        self._progress.begin("documents", self._corpus.size)
        self._state.shard = first_shard
        work = partial(pack, packer=list[Chunk], chunk_tokens=self._before.chunk_tokens)
        with open_packing(self._corpus.workers(self._options.workers), work) as packing:
            ingestion = Ingestion(packing, self, self._progress, interrupts)
            reader = CorpusReader(
                self._corpus.sources,
                self._corpus.metadata,
                self._state.position,
                SeenIds(),
                ingestion.is_taken,
                first_shard=first_shard,
                skip_bad_lines=self._options.skip_bad_lines,
                skip_bad_files=self._options.files.skip_bad,
                number_duplicates=False,
            )
            ingestion.run(reader)

    @property
    def documents(self) -> int:
        """See BatchTarget."""
        return self._state.documents

    def has_document(self, doc_id: str) -> bool:
        """See BatchTarget. Documents that were in the index before do not count: they are
        replaced."""
        return doc_id in self._ids

    def write(self, packed: Packed, position: Position) -> None:
        """Write a batch, and delete the documents that it replaces. See BatchTarget."""
        chunks: list[Chunk] = packed.packed
        doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        replaced: dict[str, None] = {}
        for chunk in existing_chunks(self._target, doc_ids):
            replaced[chunk.doc_id] = None
            self._tally.remove(chunk)
        self._replaced += len(replaced)
        self._target.remove(list(replaced))
        self._target.add(chunks)
        self._ids.update(doc_ids)
        self._tally.add(packed.counts)
        self._state.take(packed.counts, position)

    # Finishing

    def _after(self) -> Manifest:
        """Return the manifest after the update. Raises SourceError if the update must not be
        published."""
        state, before = self._state, self._before
        if not state.documents:
            raise self._corpus.no_documents(
                "There is nothing to add", state.skipped, state.skipped_files
            )
        self._corpus.check_unchanged()
        names = (*before.sources, *(name for name, _ in self._corpus.formats))
        formats = {*before.source_format.split(", "), *(kind for _, kind in self._corpus.formats)}
        return replace(
            self._tally.manifest(before),
            sources=tuple(dict.fromkeys(names)),
            source_format=", ".join(sorted(filter(None, formats))),
            undeclared_metadata=summed((before.undeclared_metadata, state.undeclared)),
            skipped_lines=before.skipped_lines + state.skipped,
        )

    def _report(
        self, record: UpdateRecord, after: Manifest, *, finished: bool = False
    ) -> AddReport:
        seconds = time.monotonic() - self._began
        return AddReport(
            location=self._where,
            sources=self._corpus.formats,
            added=record.added,
            replaced=record.replaced,
            finished_before=finished,
            seconds=round(seconds, 3),
            documents_per_second=round(self._state.documents / seconds, 1),
            skipped_lines=self._state.skipped,
            skipped_examples=tuple(self._state.skipped_examples),
            left_out=self._corpus.left_out(),
            undeclared_metadata=self._state.undeclared,
            skipped_files=self._state.skipped_files,
            skipped_file_examples=tuple(self._state.skipped_file_examples),
            large_files=self._corpus.large_files(),
            **index_counts(after),
        )


def metadata_reader(manifest: Manifest) -> MetadataReader:
    """Return the reader of metadata for documents that join an index."""
    automatic = manifest.file_metadata
    fields = manifest.metadata.items()
    declared: dict[str, MetadataType] = {
        name: kind for name, kind in fields if name not in automatic
    }
    return MetadataReader(declared, automatic)


def _check_formats(manifest: Manifest, sources: Sequence[Source], where: str) -> None:
    wrong = [
        source
        for source in sources
        if (source.format in PRE_CHUNKED) is not manifest.already_chunked
    ]
    if wrong:
        kind = "pre-chunked passages" if manifest.already_chunked else "documents"
        formats = ", ".join(sorted(PRE_CHUNKED))
        raise SourceError(
            f"The index holds {kind}, but these sources do not: "
            + ", ".join(f"{source.name} ({source.format})" for source in wrong[:SHOWN_EXAMPLES])
            + ".",
            where=where,
            allowed=formats if manifest.already_chunked else f"every format but {formats}",
            do="Build a separate index for them.",
        )


def _check_options(manifest: Manifest, options: AddOptions, where: str) -> None:
    """Raise ArgumentError if options differ from those with which the index was built."""
    checks: tuple[tuple[str, object, object, Callable[[Any], str]], ...] = (
        ("--chunk-tokens", options.chunk_tokens, manifest.chunk_tokens, lambda n: f"{n:,}"),
        (
            "--bm25",
            options.bm25,
            (manifest.k1, manifest.b),
            lambda pair: ",".join(f"{value:g}" for value in pair),
        ),
        (
            "--metadata",
            None if options.metadata is None else dict(options.metadata),
            metadata_reader(manifest).declared,
            lambda fields: ",".join(f"{n}:{kind}" for n, kind in fields.items()) or "none",
        ),
        (
            "--without",
            None if options.without is None else tuple(sorted(set(options.without))),
            tuple(sorted(manifest.without)),
            lambda names: ",".join(names) or "none",
        ),
    )
    wrong = [
        f"{name} {show(value)} (the index has {show(built)})"
        for name, value, built, show in checks
        if value is not None and value != built
    ]
    if wrong:
        raise ArgumentError(
            f"The index was built with other options: {'; '.join(wrong)}.",
            where=where,
            allowed="with --add, the options of the index, which need not be given",
            do="Leave them out, or build the index again with --overwrite.",
        )

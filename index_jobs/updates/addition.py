"""Adding documents to an existing index.

A document whose id is in the index is compared with the earlier one. It is left alone if it is the
same, and replaced otherwise.
"""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk, source_shard
from arag_search.engines.write import IndexUpdate, UpdateRecord
from arag_search.errors import BuildError
from arag_search.field_counts import no_counts
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.system.arguments import checked
from arag_search.system.lock import WAIT_S
from arag_search.system.processes import Interrupts
from arag_search.system.progress import Progress
from index_jobs.build.corpus import Corpus, is_being_packed
from index_jobs.build.report import AddReport, index_counts
from index_jobs.cutting.chunking import cut_all, program_version
from index_jobs.cutting.counts import Counts, Cut
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.records import RECORDS_MARK, Given, Records, named
from index_jobs.sources.opening import open_sources
from index_jobs.sources.source import CorpusReader, Position, SeenIds
from index_jobs.updates.options import AddOptions, check_formats, metadata_reader
from index_jobs.updates.ordinals import Ordinals
from index_jobs.updates.tally import (
    Tally,
    digest_of,
    existing_chunks,
    recover_update,
    resumable_update,
)
from index_jobs.updates.vectors import VectorUpdate
from index_jobs.workers.pool import open_executor

_TIME_FIELD = "modified"
"""The metadata field whose change alone does not make a document different."""


@checked
def add_documents(
    sources: Given,
    to: str | Path,
    options: AddOptions | None = None,
    progress: Progress | None = None,
    *,
    source: str | None = None,
    wait_s: float = WAIT_S,
) -> AddReport:
    """Add the documents of ``sources`` to the index at ``to``.

    ``sources`` and ``source`` are as in ``build_index``; a synchronisation of other sources leaves
    the documents of records alone. Documents are cut and stored with the options with which the
    index was built. A document whose id is in the index replaces the earlier one, unless both are
    the same. The earlier one also stays if only the metadata field ``modified`` differs. Readers
    see the whole update or no part of it. Updates of one process queue. Raises IndexNotFoundError,
    SourceError, BuildError, EngineError, and IndexLockedError if a build or another update still
    runs after ``wait_s`` seconds. Raises ArgumentError for options that contradict the index. After
    a KeyboardInterrupt, the update is undone.
    """
    return updated(Addition, sources, to, options or AddOptions(), progress, source, wait_s)


def updated(
    kind: type[Addition],
    sources: Given,
    location: str | Path,
    options: AddOptions,
    progress: Progress | None,
    source: str | None,
    wait_s: float,
) -> AddReport:
    progress = progress or Progress()
    names = named(sources, source)
    next_run = "nothing was changed, and it starts over"
    with resumable_update(location, progress, next_run, wait_s) as target:
        return kind(names, location, options, progress, target).run()


class Addition:
    """One run of an addition; ``_ids`` are the ids of the documents of its sources so far."""

    @staticmethod
    def command(names: Iterable[str], where: str) -> str:
        """Return the command that runs it."""
        return shlex.join(["arag-search", "add", *names, "--to", where])

    def __init__(
        self,
        names: list[str] | Records,
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
        self._paths: frozenset[str] | None = None
        metadata = metadata_reader(target.manifest)
        files = options.files if isinstance(names, Records) else self._selected(names)
        opened = open_sources(names, options.format, options.fields, metadata, files)
        self._corpus = Corpus(opened, metadata, target.manifest.chunk_tokens)
        check_formats(target.manifest, opened, self._where)
        self._position = Position()
        self._record = self._new_record()
        self._has_begun = False
        self._ids: set[str] = set()
        self._unchanged = self._kept = 0
        self._others: Counter[str] = Counter()
        self._changes: dict[str, list[str]] = {"added": [], "replaced": [], "deleted": []}

    @property
    def _may_be_empty(self) -> bool:
        """Whether nothing to read is no fault."""
        return False

    def _selected(self, names: Sequence[str]) -> FileSelection:
        """Return the files to read."""
        return self._options.files

    def _new_names(self) -> Sequence[str]:
        """Return the names of the sources."""
        return [name for name, _ in self._corpus.formats]

    def run(self) -> AddReport:
        with Interrupts() as interrupts:
            self._corpus.note_formats(self._progress.note)
            is_done = False
            if not self._options.dry_run:
                self._record, is_done = recover_update(self._target, self._record, self._progress)
            self._before = self._with_new_fields(self._target.manifest)
            self._vectors = VectorUpdate(
                self._where,
                self._options.vectors,
                self._before.placement,
                embeds=self._options.embed,
                encoder=self._options.encoder,
                check=interrupts.check,
            )
            if is_done:
                return self._report(self._before, finished=True)
            self._record = replace(self._record, update=self._before.update + 1)
            self._tally = Tally(self._before)
            self._ordinals = Ordinals(self._target.first_ordinal(), self._before, self._where)
            try:
                self._write_all(interrupts)
                return self._finish()
            except BaseException:
                self._target.give_up()
                raise
            finally:
                self._vectors.close()

    def _with_new_fields(self, manifest: Manifest) -> Manifest:
        """Return a manifest with the fields that the sources add. Raises BuildError if it is not
        the one with whose fields they were read."""
        reader, known = self._corpus.metadata, manifest.metadata
        added = reader.new_fields.items()
        new: dict[str, MetadataType] = {name: kind for name, kind in added if name not in known}
        if reader.fields.items() - {*known.items(), *new.items()}:
            raise BuildError(
                "The update that was completed before has changed the fields of the index.",
                where=self._where,
                do="Run the same command again.",
            )
        return replace(
            manifest,
            metadata={**known, **new},
            file_metadata=tuple(sorted({*manifest.file_metadata, *new})),
            field_counts={**no_counts(new), **manifest.field_counts},
        )

    def _finish(self) -> AddReport:
        after = self._after()
        if not any(self._changes.values()):
            self._target.give_up()
            return self._report(self._before)
        numbers = {name: len(ids) for name, ids in self._changes.items()}
        self._record = replace(self._record, **numbers)
        if not self._options.dry_run:
            self._begin()
            grows = bool(self._changes["added"] or self._changes["replaced"])
            self._vectors.before_publishing(after, self._tally.removed, grows=grows)
            self._target.publish(after, self._record)
            self._vectors.published(after.placement)
        return self._report(after)

    def _new_record(self) -> UpdateRecord:
        options = self._options
        how = [options.format, dataclasses.astuple(options.fields), options.skip_bad_lines]
        if options.files.skip_bad_files:
            how.append("skip_bad_files")
        names = [name for name, _ in self._corpus.formats]
        return UpdateRecord(
            digest_of(type(self).__name__, self._corpus.signature, how, program_version()),
            self.command(names, self._where),
            self._target.manifest.update + 1,
        )

    # Writing

    def _write_all(self, interrupts: Interrupts) -> None:
        self._progress.begin("documents", self._corpus.size or None)
        work = partial(cut_all, chunk_tokens=self._before.chunk_tokens)
        with open_executor(self._corpus.workers(self._options.workers), work) as executor:
            reader = CorpusReader(
                self._corpus.sources,
                self._corpus.metadata,
                self._position,
                SeenIds(),
                lambda id: is_being_packed(executor, id) or id in self._ids,
                skip_bad_lines=self._options.skip_bad_lines,
                skip_bad_files=self._options.files.skip_bad_files,
            )
            for result in executor.results(reader.batches()):
                if result is not None:
                    batch, cuts = result
                    self._write(cuts, batch.position)
                    self._progress.read(batch.read_bytes, len(self._ids))
                interrupts.check()

    def _write(self, cuts: Sequence[Cut], position: Position) -> None:
        """Write the documents of a batch that are new or changed, and delete the documents that
        they replace."""
        self._ids.update(chunks[0].doc_id for chunks, _ in cuts)
        previous = self._previous(cuts)
        written: list[Cut] = []
        replaced: list[str] = []
        for chunks, tokens in cuts:
            doc_id = chunks[0].doc_id
            before = previous.get(doc_id)
            if before is not None and _is_same(before, chunks):
                self._unchanged += 1
                continue
            if before is not None:
                replaced.append(doc_id)
                for chunk in before:
                    self._tally.remove(chunk)
            source = self._corpus.identities[source_shard(chunks[0].ordinal)]
            written.append((self._ordinals.numbered(chunks, source), tokens))
            self._changes["added" if before is None else "replaced"].append(doc_id)
        self._tally.counts.include(Counts.of(written, self._before.metadata))
        self._position = position
        if written and not self._options.dry_run:
            chunks = [chunk for own, _ in written for chunk in own]
            self._vectors.add(chunks, self._progress)
            self._begin()
            self._target.remove(replaced)
            self._target.add(chunks)

    def _previous(self, cuts: Sequence[Cut]) -> dict[str, list[Chunk]]:
        doc_ids = [chunks[0].doc_id for chunks, _ in cuts]
        previous: dict[str, list[Chunk]] = {}
        for chunk in existing_chunks(self._target, doc_ids):
            previous.setdefault(chunk.doc_id, []).append(chunk)
        return previous

    def _begin(self) -> None:
        if not self._has_begun:
            self._target.begin(self._record, self._before.metadata)
            self._has_begun = True

    # Finishing

    def _after(self) -> Manifest:
        """Return the manifest after the update. Raises SourceError if the update must not be
        published."""
        before = self._before
        if not self._ids and not self._may_be_empty:
            raise self._corpus.no_documents("There is nothing to add", self._position)
        self._corpus.check_unchanged()
        names = (*before.sources, *self._new_names())
        undeclared = Counter(before.undeclared_metadata)
        formats = {*before.source_format.split(", "), *(kind for _, kind in self._corpus.formats)}
        return replace(
            self._tally.manifest(before),
            sources=tuple(dict.fromkeys(names)),
            source_format=", ".join(sorted(filter(None, formats))),
            undeclared_metadata=dict(undeclared + Counter(self._position.undeclared)),
            skipped_lines=before.skipped_lines + self._position.skipped,
            shard_sources=self._ordinals.sources,
        )

    def _report(self, after: Manifest, *, finished: bool = False) -> AddReport:
        seconds = time.monotonic() - self._began
        dry_run = self._options.dry_run
        again = ["arag-search", "index", *after.sources, "--to", self._where, "--overwrite"]
        has_records = any(name.startswith(RECORDS_MARK) for name in after.shard_sources)
        return AddReport(
            location=self._where,
            rebuild="" if has_records else shlex.join(again),
            sources=self._corpus.formats,
            added=self._record.added,
            replaced=self._record.replaced,
            unchanged=self._unchanged,
            deleted=self._record.deleted,
            kept=self._kept,
            others=dict(self._others.most_common()),
            dry_run=dry_run,
            changes={name: tuple(ids) for name, ids in self._changes.items()} if dry_run else {},
            finished_before=finished,
            vectors="" if dry_run else self._vectors.described(after.placement),
            seconds=round(seconds, 3),
            documents_per_second=round(len(self._ids) / seconds, 1),
            update=after.update,
            **self._corpus.reading(self._position),
            **index_counts(after),
        )


def _is_same(before: Sequence[Chunk], after: Sequence[Chunk]) -> bool:
    """Return whether a document is the same, regardless of its place in the index and of the time
    of its file."""
    return len(before) == len(after) and all(
        (left.id, left.title, left.content, left.sentence_ends, left.outline)
        == (right.id, right.title, right.content, right.sentence_ends, right.outline)
        and _lasting(left.metadata.items()) == _lasting(right.metadata.items())
        for left, right in zip(before, after, strict=True)
    )


def _lasting(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if name != _TIME_FIELD}

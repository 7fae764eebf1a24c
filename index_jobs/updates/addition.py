"""Adding documents to an existing index, and bringing an index in line with its sources.

A document whose id is in the index is compared with the earlier one: it is left alone if it is the
same, and replaced otherwise. A synchronisation also deletes what its sources no longer have.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from arag_search.corpus import (
    SHARD_BITS,
    Chunk,
    document_number,
    ordinal_of,
    source_shard,
)
from arag_search.engines.write import IndexUpdate, UpdateRecord
from arag_search.errors import ArgumentError, BuildError, MassDeletionError, SourceError
from arag_search.field_counts import no_counts
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.search.standing import note_standing, now, standing_of
from arag_search.system.arguments import checked
from arag_search.system.processes import Interrupts
from arag_search.system.progress import Progress, counted
from index_jobs.build.corpus import Corpus, is_being_packed, summed
from index_jobs.build.language import AUTO
from index_jobs.build.options import DEFAULT_FIELDS
from index_jobs.build.report import SHOWN_EXAMPLES, AddReport, index_counts, shown_ids
from index_jobs.cutting.chunking import Packed, cut_only, program_version
from index_jobs.cutting.counts import Counts, Cut
from index_jobs.sources.file_table import FileTable, Following, Look, note_read, unread_of
from index_jobs.sources.files import path_id
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.reading import CorpusReader, Position, SeenIds, Source
from index_jobs.sources.records import Fields
from index_jobs.sources.registry import PRE_CHUNKED, Format
from index_jobs.sources.selection import SHOWN_LARGE_FILES, USUAL_FILES, FileSelection
from index_jobs.updates.tally import (
    Tally,
    check_not_empty,
    digest_of,
    existing_chunks,
    recover_update,
    resumable_update,
)
from index_jobs.updates.vectors import VectorUpdate
from index_jobs.workers.pool import open_executor

_TIME_FIELD = "modified"
"""The metadata field whose change alone does not make a document different."""

_ADD, _SYNC = "--add", "--sync"


@dataclass(frozen=True, slots=True)
class Followed:
    """What a watcher of folders knows, for one of the synchronisations by which an index follows
    them.

    ``paths`` are absolute paths: only documents of these files, and of those below them, can have
    changed; None if any can. ``peak`` is the largest number of documents that the index
    had of late, because a folder may vanish in several steps. With ``keeps_vanished`` nothing is
    deleted. Sources may change while they are read, because the watcher will hear of it.
    """

    paths: frozenset[str] | None = None
    peak: int = 0
    keeps_vanished: bool = False


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of an addition or a synchronisation.

    ``format``, ``fields``, ``skip_bad_lines``, ``files`` and ``workers`` are as in BuildOptions.
    The others are properties of the index: each is None or the value that the index already has.
    ``bm25`` is k1 and b. With ``allow_deletes``, a synchronisation may delete more than half of the
    documents of a source. With ``dry_run`` nothing is written, and the report has the ids.
    Vectors in the folder ``vectors`` (see ``vectors_root``) that fit the index fit it afterwards
    too: new texts are encoded by the encoder that made them, unless ``embed`` is False. A
    synchronisation by a watcher has what it ``followed``.
    """

    format: Format | None = None
    fields: Fields = DEFAULT_FIELDS
    skip_bad_lines: bool = False
    files: FileSelection = USUAL_FILES
    chunk_tokens: int | None = None
    bm25: tuple[float, float] | None = None
    metadata: Mapping[str, MetadataType] | None = None
    without: tuple[str, ...] | None = None
    language: str | None = None
    workers: int | None = None
    allow_deletes: bool = False
    dry_run: bool = False
    vectors: Path | str | None = None
    embed: bool = True
    followed: Followed | None = None


@checked
def add_documents(
    sources: Sequence[str],
    location: str | Path,
    options: AddOptions | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add the documents of ``sources`` to the index at ``location``.

    They are cut and stored with the options with which the index was built. A document whose id is
    in the index replaces the earlier document, unless both are the same: then, and if only the
    metadata field ``modified`` differs, the earlier one stays. Readers see the whole update or no
    part of it. Raises IndexNotFoundError, IndexLockedError if a build or another update is running,
    SourceError, ArgumentError for options that contradict those of the index, BuildError,
    EngineError. After a KeyboardInterrupt, the update is undone.
    """
    return _updated(_Addition, sources, location, options, progress)


@checked
def sync_documents(
    sources: Sequence[str],
    location: str | Path,
    options: AddOptions | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Make the index at ``location`` equal to ``sources`` as they are now.

    New and changed documents are added as in ``add_documents``; those that came from one of these
    sources and are no longer in it are deleted. Documents of other sources are left alone, and
    counted in the report. Of a file or folder that cannot be read and is skipped, no document is
    deleted; nor of a whole file of records in which bad records are skipped. A source is what its
    name stands for, made absolute. A source of the index that is the same file or folder under
    another name, or that is gone while one of these sources has documents of its ids, counts as
    this one from then on.

    Reads every passage of the index once, unless a watcher names the changed paths; memory grows
    with the number of documents of the sources. Raises what ``add_documents`` raises; ArgumentError
    if it would delete all documents, MassDeletionError if more than half of those of a source
    without ``allow_deletes``; SourceError for a document whose id belongs to another source.
    """
    return _updated(_Sync, sources, location, options, progress)


def _updated(
    kind: type[_Addition],
    sources: Sequence[str],
    location: str | Path,
    options: AddOptions | None,
    progress: Progress | None,
) -> AddReport:
    progress = progress or Progress()
    next_run = "nothing was changed, and it starts over"
    with resumable_update(location, progress, next_run) as target:
        return kind(list(sources), location, options or AddOptions(), progress, target).run()


class _Addition:
    """One run of an addition; ``_ids`` are the ids of the documents of its sources so far."""

    option = _ADD

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
        self._paths: frozenset[str] | None = None
        metadata = metadata_reader(target.manifest)
        self._followed = options.followed
        files = self._selected(names)
        opened = open_sources(names, options.format, options.fields, metadata, files)
        self._corpus = Corpus(opened, metadata)
        _check_formats(target.manifest, opened, self._where)
        self._position = Position()
        self._record = self._new_record()
        self._has_begun = False
        self._ids: set[str] = set()
        self._unchanged = self._kept = 0
        self._others: Counter[str] = Counter()
        self._changes: dict[str, list[str]] = {"added": [], "replaced": [], "deleted": []}

    def _selected(self, names: Sequence[str]) -> FileSelection:
        """Return the files to read."""
        return self._options.files

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
                check=interrupts.check,
            )
            if is_done:
                return self._report(self._before, finished=True)
            self._record = replace(self._record, update=self._before.update + 1)
            self._tally = Tally(self._before)
            self._ordinals = _Ordinals(self._target.first_ordinal(), self._before, self._where)
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
        if options.files.skip_bad:
            how.append("--skip-bad-files")
        names = " ".join(name for name, _ in self._corpus.formats)
        program = program_version()
        return UpdateRecord(
            digest_of(self.option, self._corpus.signature, how, program, options.allow_deletes),
            f"arag-search index {names} {self.option} --to {self._where}",
            self._target.manifest.update + 1,
        )

    # Writing

    def _write_all(self, interrupts: Interrupts) -> None:
        self._progress.begin("documents", self._corpus.size)
        work = partial(cut_only, chunk_tokens=self._before.chunk_tokens)
        with open_executor(self._corpus.workers(self._options.workers), work) as executor:
            reader = CorpusReader(
                self._corpus.sources,
                self._corpus.metadata,
                self._position,
                SeenIds(),
                lambda id: is_being_packed(executor, id) or id in self._ids,
                skip_bad_lines=self._options.skip_bad_lines,
                skip_bad_files=self._options.files.skip_bad,
            )
            for result in executor.results(reader.batches()):
                if result is not None:
                    batch, packed = result
                    self._write(packed, batch.position)
                    self._progress.read(batch.read_bytes, len(self._ids))
                interrupts.check()

    def _write(self, packed: Packed, position: Position) -> None:
        """Write the documents of a batch that are new or changed, and delete those that they
        replace."""
        cuts: list[Cut] = packed.packed
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
        if not self._ids and self._followed is None and self._paths is None:
            raise self._corpus.no_documents("There is nothing to add", self._position)
        self._corpus.check_unchanged()
        names = (*before.sources, *(name for name, _ in self._corpus.formats))
        formats = {*before.source_format.split(", "), *(kind for _, kind in self._corpus.formats)}
        return replace(
            self._tally.manifest(before),
            sources=tuple(dict.fromkeys(names)),
            source_format=", ".join(sorted(filter(None, formats))),
            undeclared_metadata=summed((before.undeclared_metadata, self._position.undeclared)),
            skipped_lines=before.skipped_lines + self._position.skipped,
            shard_sources=self._ordinals.sources,
        )

    def _report(self, after: Manifest, *, finished: bool = False) -> AddReport:
        seconds = time.monotonic() - self._began
        dry_run = self._options.dry_run
        return AddReport(
            location=self._where,
            rebuild=shlex.join(
                ["arag-search", "index", *after.sources, "--to", self._where, "--overwrite"]
            ),
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


class _Sync(_Addition):
    """A synchronisation. ``_paths`` are those of the files that can have changed, None if any can:
    only they are read."""

    option = _SYNC

    def __init__(self, *arguments: Any) -> None:
        self._began_at = now()
        self._table: FileTable | None = None
        self._look: Look | None = None
        super().__init__(*arguments)
        self._owners = self._target.manifest.shard_sources
        real = {os.path.realpath(name): name for name in self._corpus.identities}
        known = set(self._corpus.identities)
        self._renamed = {
            owner: real[os.path.realpath(owner)]
            for owner in set(self._owners) - known
            if os.path.isabs(owner) and os.path.realpath(owner) in real
        }

    def _selected(self, names: Sequence[str]) -> FileSelection:
        """Return the files that have changed since the index read them, as its table says; all if
        there is none, if the index was changed otherwise, or if ids do not tell files."""
        options, manifest = self._options, self._target.manifest
        self._following = Following.of(names, options.format, options.fields, options.files)
        within = None if self._followed is None else self._followed.paths
        table = FileTable.read(self._where, self._following.digest())
        knows_paths = "path" in manifest.file_metadata and options.fields.id is None
        if (
            table is None
            or not knows_paths
            or table.fingerprint != manifest.fingerprint
            or (self._following.is_remote and within is None)
        ):
            table = within = None
        self._look = self._following.look(within)
        if table is not None and self._look is not None:
            self._table = table
            self._paths = frozenset(table.changed(self._look, within))
            if within is None:
                self._paths |= frozenset(table.unread)
        roots = frozenset(map(os.path.realpath, names))
        if self._paths is None:
            return options.files if self._followed is None else replace(options.files, only=roots)
        return replace(options.files, only=self._paths)

    def _finish(self) -> AddReport:
        report, look, table = super()._finish(), self._look, self._table
        is_whole = self._followed is None or self._followed.paths is None
        if table is not None and look is not None and is_whole:
            # Files that were not read again count as unchanged.
            left_alone = len(look.files.keys() - (self._paths or ()))
            report = replace(
                report,
                unchanged=report.unchanged + left_alone,
                left_out=look.left_out,
                large_files=tuple(look.large_files[:SHOWN_LARGE_FILES]),
            )
        # An update that was completed before has made other texts than those of the table.
        is_of_table = table is None or table.fingerprint == self._before.fingerprint
        if is_of_table and not self._options.dry_run:
            self._note(look, report, is_whole=is_whole or table is None)
        return report

    def _note(self, look: Look | None, report: AddReport, *, is_whole: bool) -> None:
        """Note the files that the index has read now, and how it stands beside its sources."""
        keeps_vanished = self._followed is not None and self._followed.keeps_vanished
        table = self._table
        if look is not None:
            table = table or FileTable(self._following.digest(), "", {})
            read: Collection[str] = look.files if self._paths is None else self._paths
            if keeps_vanished:
                read = [path for path in read if path in look.files]
            damaged = (id for source in self._corpus.sources for id in source.damaged)
            table = table.after(look, read, unread_of(look, damaged), report.fingerprint)
        if is_whole and not keeps_vanished:
            left_out, began = report.left_out_lines(), self._began_at
            note_read(self._where, self._following, look, table, began=began, left_out=left_out)
            return
        if table is not None:
            table.save(self._where)
        if not keeps_vanished and (before := standing_of(self._where)) is not None:
            note_standing(before.now_in_step(self._began_at))

    def _previous(self, cuts: Sequence[Cut]) -> dict[str, list[Chunk]]:
        previous = super()._previous(cuts)
        for chunks, _ in cuts:
            doc_id = chunks[0].doc_id
            if doc_id in previous:
                owner = self._owner(previous[doc_id][0])
                if owner not in self._corpus.identities:
                    source = self._corpus.identities[source_shard(chunks[0].ordinal)]
                    self._rename(owner, source, doc_id)
        return previous

    def _rename(self, owner: str, source: str, doc_id: str) -> None:
        """Treat ``owner``, a source of the index that no longer exists, as ``source``, a source of
        this command that has a document with one of its ids. Raises SourceError if it exists."""
        if not os.path.isabs(owner) or os.path.lexists(owner):
            raise SourceError(
                f'Document "{doc_id}" of these sources is in the index from another source.',
                where=owner or "an update or a source that the index does not know",
                do="Name all sources that share ids in one command, or build an index for each."
                f" To replace these documents once: {_ADD}.",
            )
        self._renamed[owner] = source
        self._progress.note(f"{owner} is gone: its documents are taken for those of {source}.")

    def _after(self) -> Manifest:
        vanished = self._vanished()
        for chunk in existing_chunks(self._target, vanished):
            self._tally.remove(chunk)
        check_not_empty(self._tally, self._where)
        after = super()._after()
        after = replace(
            after,
            shard_sources=tuple(self._renamed.get(name, name) for name in after.shard_sources),
        )
        self._changes["deleted"] = vanished
        if vanished and not self._options.dry_run:
            self._begin()
            self._target.remove(vanished)
        return after

    def _vanished(self) -> list[str]:
        """Return the ids of the documents that their source no longer has. Raises ArgumentError if
        they are too many, and none were allowed."""
        had: Counter[str] = Counter()
        sources = zip(self._corpus.identities, self._corpus.sources, strict=True)
        damaged = {name: source.damaged for name, source in sources}
        vanished: dict[str, dict[str, None]] = {name: {} for name in self._corpus.identities}
        for chunk in self._may_have_vanished():
            owner = self._owner(chunk)
            if chunk.part != 1:
                continue
            if owner not in vanished:
                self._others[owner] += 1
                continue
            had[owner] += 1
            if chunk.doc_id not in self._ids and chunk.doc_id not in vanished[owner]:
                if self._may_be_unread(chunk, damaged[owner]):
                    self._kept += 1
                else:
                    vanished[owner][chunk.doc_id] = None
        gone = [doc_id for ids in vanished.values() for doc_id in ids]
        if self._followed is not None and self._followed.keeps_vanished:
            self._kept += len(gone)
            return []
        if gone and not self._options.allow_deletes:
            had = had if self._paths is None else self._documents_by_source()
            self._check_deletions(vanished, had)
        return gone

    def _may_have_vanished(self) -> Iterator[Chunk]:
        """Yield the chunks of the documents that may be gone, some of them perhaps twice."""
        if self._paths is None:
            return self._target.existing(None)
        names = [name for name, _ in self._corpus.formats]
        files = self._options.files.rooted(names)
        ids: list[str] = []
        for name in names:
            real = f"{os.path.realpath(name)}/"
            below = [path[len(real) :] for path in self._paths if path.startswith(real)]
            ids += [path_id(os.path.join(files.relative(name), path)) for path in below]
        return existing_chunks(self._target, [*ids, *(f"{id}/" for id in ids)], "path")

    def _documents_by_source(self) -> Counter[str]:
        owners = {self._renamed.get(owner, owner) for owner in self._owners}
        if len(owners) == 1:
            return Counter(dict.fromkeys(owners, self._before.documents))
        chunks = self._target.existing(None)
        return Counter(self._owner(chunk) for chunk in chunks if chunk.part == 1)

    def _check_deletions(
        self, vanished: Mapping[str, Collection[str]], had: Mapping[str, int]
    ) -> None:
        """Raise MassDeletionError if too many documents of a source are gone. For a watcher, those
        that others replace do not count, because files were moved; those that its last updates
        deleted do."""
        added = len(self._changes["added"]) if self._followed is not None else 0
        peak = 0 if self._followed is None else self._followed.peak
        left = self._before.documents + added - sum(map(len, vanished.values()))
        for name, ids in vanished.items():
            if ids and (2 * (len(ids) - added) > had[name] or 2 * (peak - left) > peak):
                raise MassDeletionError(
                    f"{len(ids):,} of the {counted(had[name], 'document')} from this source are no"
                    f" longer in it: {shown_ids(list(ids))}.",
                    where=name,
                    allowed="deletions of at most half of the documents of a source",
                    do="Check that the source is complete; then repeat with --allow-deletes.",
                )

    def _owner(self, chunk: Chunk) -> str:
        """Return the source that a chunk of the index came from; empty if it is not known."""
        shard = source_shard(chunk.ordinal)
        owner = self._owners[shard] if shard < len(self._owners) else ""
        return self._renamed.get(owner, owner)

    def _may_be_unread(self, chunk: Chunk, damaged: Collection[str]) -> bool:
        if not damaged:
            return False
        path = chunk.metadata.get("path") if "path" in self._before.file_metadata else None
        if path is None and self._options.fields.id is not None:
            return True  # the id does not tell the file
        file = str(path[-1]) if isinstance(path, tuple) else chunk.doc_id
        return any(
            file == part or not part or file.startswith((f"{part}/", f"{part}#"))
            for part in damaged
        )


class _Ordinals:
    """The ordinals of an update's documents, after all others. A source continues in the last shard
    of the index if that shard is its own, and takes a new shard otherwise.

    ``sources`` has the source of each shard.
    """

    def __init__(self, first: int, manifest: Manifest, where: str) -> None:
        """``first`` is the first ordinal that is free."""
        self._where = where
        self._shard, self._number = source_shard(first), document_number(first)
        known = manifest.shard_sources
        self.sources = (*known, *[""] * (self._shard + (self._number > 0) - len(known)))
        self._source = self.sources[self._shard] if self._number else None

    def numbered(self, chunks: Sequence[Chunk], source: str) -> list[Chunk]:
        """Return the chunks of a document with the next ordinals of its source."""
        if source != self._source:
            self._shard += self._number > 0
            self._number = 0
            self._source = source
            if self._shard >= 1 << SHARD_BITS:
                raise BuildError(
                    f"The index has had {self._shard:,} sources, and cannot hold more.",
                    where=self._where,
                    allowed=f"{1 << SHARD_BITS:,} sources, counting those of all updates",
                    do="Build it again from all of its sources with --overwrite.",
                )
            self.sources = (*self.sources[: self._shard], source)
        number, self._number = self._number, self._number + 1
        return [
            replace(chunk, ordinal=ordinal_of(self._shard, number, part))
            for part, chunk in enumerate(chunks)
        ]


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


def metadata_reader(manifest: Manifest) -> MetadataReader:
    """Return the reader of metadata for documents that join an index."""
    declared: dict[str, MetadataType] = {}
    automatic: dict[str, MetadataType] = {}
    for name, kind in manifest.metadata.items():
        (automatic if name in manifest.file_metadata else declared)[name] = kind
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
        (
            "--language",
            None if options.language == AUTO else options.language,
            manifest.language,
            lambda language: language or "words as they are written",
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

"""Bringing an index in line with its sources: an addition that also deletes documents that the
sources no longer have. If the index knows which files have changed, only these are read."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arag_search.corpus import Chunk, source_shard
from arag_search.engines.write import IndexUpdate
from arag_search.errors import MassDeletionError, NotInTimeError, SourceError
from arag_search.manifest import Manifest
from arag_search.search.standing import note_standing, now, standing_of
from arag_search.system.arguments import checked
from arag_search.system.lock import WAIT_S
from arag_search.system.progress import Progress, counted
from index_jobs.build.report import AddReport, shown_ids, unread_lines
from index_jobs.cutting.counts import Cut
from index_jobs.sources.folders.ids import path_id
from index_jobs.sources.folders.secret_files import TO_READ
from index_jobs.sources.folders.selection import SHOWN_LARGE_FILES, STDIN, FileSelection
from index_jobs.sources.folders.table import FileTable, Following, Look, note_read
from index_jobs.sources.source import KEPT_FILES, Unread, count_unread
from index_jobs.updates.addition import Addition, updated
from index_jobs.updates.options import Followed, SyncOptions, as_built
from index_jobs.updates.tally import check_not_empty, existing_chunks

_OVER_LIMITS = "It needed more than it may take, and has not changed (file_limits allows more)."


@checked
def sync_documents(
    sources: Sequence[str],
    location: str | Path,
    options: SyncOptions | None = None,
    progress: Progress | None = None,
    *,
    wait_s: float = WAIT_S,
) -> AddReport:
    """Make the index at ``location`` equal to ``sources`` as they are now. If none are named, it is
    made equal to the sources of its build, which are read as they were read then.

    New and changed documents are added as in ``add_documents``. Documents that came from one of
    these sources and are no longer in it are deleted. Documents of other sources are left alone,
    and counted in the report. If a file or folder cannot be read and is skipped, none of its
    documents is deleted. Nor is one of a whole file of records in which bad records are skipped. A
    source is what its name stands for, made absolute. A source of the index counts as one of these
    from then on if it is the same file or folder under another name. So does a source that is gone
    while one of these has documents of its ids. With ``allow_deletes``, the documents of a source
    that is gone are deleted.

    Reads every passage of the index once, unless a watcher names the changed paths; memory grows
    with the number of documents of the sources. Raises what ``add_documents`` raises, and
    ArgumentError if it would delete all documents. Without ``allow_deletes``, raises
    MassDeletionError if it would delete more than half of a source's documents, and SourceError for
    a source that is gone. SourceError is also for a document whose id belongs to another source.
    """
    how = options or SyncOptions()
    return updated(Synchronisation, sources, location, how, progress, None, wait_s)


class Synchronisation(Addition):
    """A synchronisation. ``_paths`` are the files that can have changed, and only they are read.
    None if any can."""

    @staticmethod
    def command(names: Iterable[str], where: str) -> str:
        return shlex.join(["arag-search", "sync", where, *names])

    def __init__(
        self,
        names: list[str],
        location: str | Path,
        options: SyncOptions,
        progress: Progress,
        target: IndexUpdate,
    ) -> None:
        self._began_at = now()
        self._is_as_built = not names
        if not names:
            names, options = as_built(target.manifest, options, str(location))
        self._how = options
        self._followed = options.followed
        self._gone = self._gone_of(names, target.manifest)
        names = [name for name in names if os.path.abspath(name) not in self._gone]
        self._table: FileTable | None = None
        self._look: Look | None = None
        self._over_limits: list[str] = []
        super().__init__(names, location, options, progress, target)
        self._owners = self._target.manifest.shard_sources
        real = {os.path.realpath(name): name for name in self._corpus.identities}
        known = set(self._corpus.identities)
        self._renamed = {
            owner: real[os.path.realpath(owner)]
            for owner in set(self._owners) - known
            if os.path.isabs(owner) and os.path.realpath(owner) in real
        }

    def _gone_of(self, names: Sequence[str], manifest: Manifest) -> set[str]:
        """Return the sources of the index among these that no longer exist. Raises SourceError if
        their documents must not be deleted, or if nothing else is left."""
        paths = (os.path.abspath(name) for name in names if name != STDIN)
        gone = [
            path for path in paths if path in manifest.shard_sources and not os.path.lexists(path)
        ]
        if not gone or self._followed is not None:
            return set()
        if self._how.allow_deletes and len(gone) < len(names):
            return set(gone)
        raise SourceError(
            "A source of the index is gone.",
            where=", ".join(gone),
            do="Bring it back, or name the source that replaces it."
            + " To delete its documents, repeat with `allow_deletes=True`."
            * (len(gone) < len(names)),
        )

    @property
    def _may_be_empty(self) -> bool:
        return self._followed is not None or self._paths is not None

    def _new_names(self) -> Sequence[str]:
        return () if self._is_as_built else super()._new_names()

    def _selected(self, names: Sequence[str]) -> FileSelection:
        """Return the files that have changed since the index read them, as its table says. Return
        all without a table, if the index was changed otherwise, or if ids do not tell files."""
        options, manifest = self._options, self._target.manifest
        self._following = Following.of(names, options.format, options.fields, options.files)
        within = None if self._followed is None else self._followed.paths
        table = FileTable.read(self._where, self._following.digest())
        knows_paths = "path" in manifest.file_metadata and options.fields.id_field is None
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
                unread = table.unread.keys() - self._paths
                if options.files.skip_bad_files:
                    self._over_limits = sorted(unread & table.slow.keys())
                self._paths |= unread.difference(self._over_limits)
        roots = frozenset(map(os.path.realpath, names))
        files = options.files
        if self._followed is not None:
            files = replace(files, only=roots, within_s=self._followed.within_s)
        return files if self._paths is None else replace(files, only=self._paths)

    def _finish(self) -> AddReport:
        report, look, table = super()._finish(), self._look, self._table
        is_whole = self._followed is None or self._followed.paths is None
        if table is not None and look is not None and is_whole:
            # Files that were not read again count as unchanged.
            over = self._over_limits
            left_alone = len(look.files.keys() - (self._paths or ())) - len(over)
            examples = (f"{path}: {_OVER_LIMITS}" for path in over)
            report = replace(
                report,
                skipped_files=report.skipped_files + len(over),
                skipped_file_examples=(*report.skipped_file_examples, *examples)[:KEPT_FILES],
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
            table = table.after(look, read, self._corpus.sources, report.fingerprint)
        if is_whole and not keeps_vanished:
            left_out, began = report.left_out_lines(), self._began_at
            note_read(self._where, self._following, look, table, began=began, left_out=left_out)
            return
        if table is not None:
            table.save(self._where)
        if (before := standing_of(self._where)) is not None and table is not None:
            renewed = TO_READ, NotInTimeError.kind
            lines = [line for line in before.left_out if not any(kind in line for kind in renewed)]
            lines += unread_lines(self._left_out(table))
            note_standing(replace(before, left_out=tuple(lines)))

    def _left_out(self, table: FileTable) -> Unread:
        root = os.path.realpath(self._following.files.root or "")
        counts: Unread = {}
        for path, kind in sorted(table.unread.items()):
            count_unread(counts, {kind: [1, path_id(os.path.relpath(path, root))]} if kind else {})
        return counts

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
        """Treat ``owner``, a source of the index that no longer exists, as ``source``. That source
        of this command has a document with one of its ids. Raises SourceError if ``owner``
        exists."""
        if not os.path.isabs(owner) or os.path.lexists(owner):
            raise SourceError(
                f'Document "{doc_id}" of these sources is in the index from another source.',
                where=owner or "an update or a source that the index does not know",
                do="Name all sources that share ids in one command, or build an index for each."
                " To replace these documents once, add them.",
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
        names = (*self._corpus.identities, *self._gone)
        vanished: dict[str, dict[str, None]] = {name: {} for name in names}
        for chunk in self._may_have_vanished():
            owner = self._owner(chunk)
            if chunk.part != 1:
                continue
            if owner not in vanished:
                self._others[owner] += 1
                continue
            had[owner] += 1
            if chunk.doc_id not in self._ids and chunk.doc_id not in vanished[owner]:
                if self._may_be_unread(chunk, damaged.get(owner, ())):
                    self._kept += 1
                else:
                    vanished[owner][chunk.doc_id] = None
        gone = [doc_id for ids in vanished.values() for doc_id in ids]
        if self._followed is not None and self._followed.keeps_vanished:
            self._kept += len(gone)
            return []
        if gone and not self._how.allow_deletes:
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
        """Raise MassDeletionError if too many documents of a source are gone. For a watcher,
        documents that others replace do not count, because files were moved. Documents that its
        last updates deleted do. A document has to be left."""
        followed = self._followed or Followed()
        added = len(self._changes["added"]) if self._followed is not None else 0
        moved = added + followed.coming
        left = self._before.documents + added - sum(map(len, vanished.values()))
        lost = followed.peak - left - followed.coming
        for name, ids in vanished.items():
            if ids and (2 * (len(ids) - moved) > had[name] or 2 * lost > followed.peak or not left):
                raise MassDeletionError(
                    f"{len(ids):,} of the {counted(had[name], 'document')} from this source are no"
                    f" longer in it: {shown_ids(list(ids))}.",
                    where=name,
                    allowed="deletions of at most half of the documents of a source",
                    do="Check that the source is complete; then repeat with `allow_deletes=True`.",
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
        if path is None and self._options.fields.id_field is not None:
            return True  # the id does not tell the file
        file = str(path[-1]) if isinstance(path, tuple) else chunk.doc_id
        return any(
            file == part or not part or file.startswith((f"{part}/", f"{part}#"))
            for part in damaged
        )

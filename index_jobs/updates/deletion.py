"""Deleting documents from an index."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from arag_search.engines.write import UpdateRecord
from arag_search.errors import ArgumentError, SourceError, UnknownDocumentError
from arag_search.system.arguments import checked
from arag_search.system.lock import WAIT_S
from arag_search.system.progress import Progress, counted
from index_jobs.build.report import IndexReport, index_counts, shown_ids
from index_jobs.sources.lines.formats import checked_id
from index_jobs.updates.tally import (
    Tally,
    check_not_empty,
    digest_of,
    existing_chunks,
    recover_update,
    resumable_update,
)
from index_jobs.updates.vectors import VectorUpdate


@dataclass(frozen=True, slots=True)
class DeleteReport(IndexReport):
    """The documents deleted, and the index afterwards.

    ``missing`` are the ids that no document has. ``finished_before`` is true if the last update of
    the index was the same command: this run then had nothing to do. ``vectors`` says in words
    whether the vectors of the index fit it.
    """

    deleted: int
    missing: tuple[str, ...]
    finished_before: bool
    vectors: str
    update: int

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        lines = [
            f"Deleted {counted(self.deleted, 'document')} of {self.location}; it holds"
            f" {counted(self.documents, 'document')} in {counted(self.chunks, 'passage')}."
        ]
        if self.missing:
            lines.append(f"not in the index: {shown_ids(self.missing)}")
        if self.finished_before:
            lines.append("The same command had already done this.")
        if self.vectors:
            lines.append(self.vectors)
        return "\n".join(lines)


@checked
def delete_documents(
    location: str | Path,
    doc_ids: Iterable[str],
    *,
    missing_ok: bool = False,
    vectors: str | Path | None = None,
    progress: Progress | None = None,
    wait_s: float = WAIT_S,
) -> DeleteReport:
    """Delete the documents with these ids from the index at ``location``.

    Vectors in the folder ``vectors`` (see ``vectors_root``) that fit the index fit it afterwards
    too. Deletes none of the documents if one is unknown, unless ``missing_ok``. Raises
    UnknownDocumentError, IndexNotFoundError, BuildError, EngineError, and ArgumentError if there
    are no ids or they are the ids of all documents. Raises IndexLockedError if a build or another
    update still runs after ``wait_s`` seconds.
    """
    began = time.monotonic()
    progress = progress or Progress()
    where = str(location)
    wanted = list(dict.fromkeys(doc_ids))
    if not wanted:
        raise ArgumentError(
            "No document id is given.", allowed="ids of documents", do="Name one or more."
        )
    with resumable_update(location, progress, "it deletes all or nothing", wait_s) as target:
        ids = sorted(wanted)
        command = f"arag-search delete {location} {shown_ids(ids)}"
        record = UpdateRecord(digest_of("delete", ids), command, target.manifest.update + 1)
        recover_update(target, record, progress)
        before = after = target.manifest
        kept = VectorUpdate(where, vectors, before.placement, embeds=False)
        tally = Tally(before)
        known_ids: set[str] = set()
        for chunk in existing_chunks(target, [doc_id for doc_id in wanted if _is_id(doc_id)]):
            known_ids.add(chunk.doc_id)
            tally.remove(chunk)
        existing = [doc_id for doc_id in wanted if doc_id in known_ids]
        last = target.last_update
        if not existing and last is not None and last.digest == record.digest:
            # An earlier run was interrupted after the update was complete, or the command was
            # simply given twice.
            deleted, missing, is_done = last.deleted, (), True
        else:
            missing = tuple(doc_id for doc_id in wanted if doc_id not in known_ids)
            deleted, is_done = len(existing), False
        if missing and not missing_ok:
            raise UnknownDocumentError(
                f"Unknown ids: {shown_ids(missing)}; nothing was deleted.",
                where=where,
                allowed="ids of documents, which searches show without the part (vivaldi of"
                " vivaldi.1)",
                do="Correct them, or use `missing_ok=True` to delete the others.",
            )
        if existing:
            check_not_empty(tally, where)
            after = tally.manifest(before)
            record = replace(record, update=after.update, deleted=deleted)
            target.begin(record, before.metadata, existing)
            try:
                target.remove(existing)
                kept.before_publishing(after, tally.removed, grows=False)
                target.publish(after, record)
                kept.published(after.placement)
            except BaseException:
                target.give_up()
                raise
        return DeleteReport(
            location=where,
            deleted=deleted,
            missing=missing,
            finished_before=is_done,
            vectors=kept.described(after.placement),
            seconds=round(time.monotonic() - began, 3),
            update=after.update,
            **index_counts(after),
        )


def _is_id(doc_id: str) -> bool:
    try:
        return checked_id(doc_id, "") == doc_id
    except SourceError:
        return False

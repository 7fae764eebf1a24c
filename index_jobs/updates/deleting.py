"""Updates of an index: what they count and report; deleting documents, and compacting."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.deletions import Deletions
from arag_search.engines.open import open_update
from arag_search.engines.update_record import UpdateRecord
from arag_search.engines.write import IndexUpdate
from arag_search.errors import (
    ArgumentError,
    IndexDamagedError,
    SourceError,
    UnknownDocumentError,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.system.progress import Progress, SilentProgress, duration
from arag_search.tokens import count_tokens
from index_jobs.build.report import counted
from index_jobs.build.resuming import resume_advice, room
from index_jobs.cutting.packing import Counts
from index_jobs.sources.formats import checked_id

LOOKUP_IDS = 64
"""So many documents are looked up at once."""

_SHOWN_IDS = 10


class Tally:
    """The counts of an index, as documents come and go."""

    def __init__(self, manifest: Manifest) -> None:
        """``manifest`` states the placement of the index (see ``with_placement``), unless nothing
        will be published."""
        self.documents = manifest.documents
        self.chunks = manifest.chunks
        self.sentences = manifest.sentences
        self.tokens = manifest.tokens
        self.title_characters = manifest.title_characters
        self._digest = CorpusDigest(
            int(manifest.fingerprint, 16), int(manifest.placement or "0", 16)
        )

    def add(self, counts: Counts) -> None:
        """Add the counts of a batch."""
        self.documents += counts.documents
        self.chunks += counts.chunks
        self.sentences += counts.sentences
        self.tokens += counts.tokens
        self.title_characters += counts.title_characters
        self._digest.include(counts.digest)

    def remove(self, chunk: Chunk) -> None:
        """Subtract a chunk, and with its first chunk the document."""
        self.chunks -= 1
        self.sentences -= len(chunk.sentence_ends)
        self.tokens -= count_tokens(chunk.content)
        if chunk.part == 1:
            self.documents -= 1
            self.title_characters -= len(chunk.title)
        self._digest.add(chunk, -1)

    def manifest(self, before: Manifest) -> Manifest:
        """The manifest of the next update with these counts."""
        return replace(
            before,
            documents=self.documents,
            chunks=self.chunks,
            sentences=self.sentences,
            tokens=self.tokens,
            title_characters=self.title_characters,
            fingerprint=fingerprint_hex(self._digest.fingerprint),
            placement=fingerprint_hex(self._digest.placement),
            update=before.update + 1,
        )


def with_placement(target: IndexUpdate) -> Manifest:
    """Return the manifest before an update, with the placement of the index.

    An index of an earlier version does not state it: then all of its passages are read once.
    Raises IndexDamagedError where they are not those of the manifest.
    """
    manifest = target.manifest
    if manifest.placement:
        return manifest
    digest = CorpusDigest.of(target.existing(None))
    if fingerprint_hex(digest.fingerprint) != manifest.fingerprint:
        raise IndexDamagedError(
            "The passages of the index are not those that its manifest describes: their"
            " fingerprints differ.",
            where=target.where,
            do="Build the index again with --overwrite.",
        )
    return replace(manifest, placement=fingerprint_hex(digest.placement))


def store_placement(location: str | Path) -> None:
    """Let the manifest of an index state where its passages are, if it does not yet.

    Raises IndexNotFoundError, IndexLockedError, BuildError, EngineError.
    """
    with open_update(location) as target:
        target.recover(None)
        if not target.manifest.placement:
            target.describe(with_placement(target))


@contextmanager
def resumable_update(
    location: str | Path, progress: Progress, outlook: str
) -> Generator[IndexUpdate]:
    """Open an update, report how to resume it where it ends early, and end the progress.

    ``outlook`` says what the same command does then. Raises what ``open_update`` raises.
    """
    try:
        with (
            resume_advice(lambda: outlook, progress.note),
            open_update(location) as target,
            room(str(location), lambda: outlook),
        ):
            yield target
    finally:
        progress.end()


def digest_of(*parts: object) -> str:
    """What tells the command of an update from others."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def settle(
    target: IndexUpdate, record: UpdateRecord, progress: Progress
) -> tuple[UpdateRecord, bool]:
    """See to an update that was stopped. The record of the one to do, and whether it was done."""
    settled = target.recover(record)
    if settled.note:
        progress.note(settled.note)
    return (record, False) if settled.done is None else (settled.done, True)


# Deleting


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What was deleted, or would be in a ``dry_run``, and what the index holds after it.

    ``missing`` are the ids that are in no document. ``finished_before``: the same command had done
    it, as the last update of the index.
    """

    location: str
    deleted: int
    missing: tuple[str, ...]
    dry_run: bool
    finished_before: bool
    documents: int
    chunks: int
    sentences: int
    tokens: int
    fingerprint: str
    update: int
    seconds: float

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    def to_text(self) -> str:
        """The report in words, one line for each thing."""
        verb = "Would delete" if self.dry_run else "Deleted"
        lines = [
            f"{verb} {counted(self.deleted, 'document')} of {self.location}; "
            f"{'it would hold' if self.dry_run else 'it holds'} "
            f"{counted(self.documents, 'document')} in {counted(self.chunks, 'chunk')}."
        ]
        if self.missing:
            lines.append(f"not there: {shown_ids(self.missing)}")
        if self.finished_before:
            lines.append("The same command had done so before.")
        return "\n".join(lines)


def delete_documents(
    location: str | Path,
    doc_ids: Iterable[str],
    *,
    missing_ok: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> DeleteReport:
    """Delete the documents with these ids from the index at ``location``.

    All of them or, where one is unknown and not ``missing_ok``, none. Raises UnknownDocumentError,
    ArgumentError for no ids and for those of all documents, IndexNotFoundError, IndexLockedError
    where a build or another update is at work, BuildError, EngineError.
    """
    began = time.monotonic()
    progress = progress or SilentProgress()
    wanted = list(dict.fromkeys(doc_ids))
    if not wanted:
        raise ArgumentError("No document id is given.", allowed="ids of documents", do="Name some.")
    with resumable_update(location, progress, "it deletes all or nothing") as target:
        before = target.manifest
        ids = sorted(wanted)
        command = f"arag-search delete {location} {shown_ids(ids)}"
        record = UpdateRecord(digest_of("delete", ids), command, before.update + 1)
        done = False
        if not dry_run:
            record, done = settle(target, record, progress)
        if done:
            return _delete_report(location, record.deleted, (), before, began, finished=True)
        before = target.manifest if dry_run else with_placement(target)
        tally = Tally(before)
        found = _count_off(target, wanted, tally)
        missing = tuple(each for each in wanted if each not in found)
        last = target.last_update
        if not (found or dry_run) and last is not None and last.digest == record.digest:
            # It was stopped after the update was complete, or is asked for a second time.
            return _delete_report(location, last.deleted, (), before, began, finished=True)
        if missing and not missing_ok:
            raise _unknown(missing, str(location))
        if not tally.documents:
            raise _everything(str(location))
        after = tally.manifest(before) if found else before
        if found and not dry_run:
            record = replace(record, update=after.update, deleted=len(found))
            _delete(target, list(found), after, record)
        return _delete_report(location, len(found), missing, after, began, dry_run=dry_run)


def _count_off(target: IndexUpdate, doc_ids: Sequence[str], tally: Tally) -> dict[str, None]:
    """The ids that are there, in the order asked; their documents are counted off."""
    there: set[str] = set()
    for chunk in existing_chunks(target, [each for each in doc_ids if _is_id(each)]):
        there.add(chunk.doc_id)
        tally.remove(chunk)
    return dict.fromkeys(each for each in doc_ids if each in there)


def existing_chunks(target: IndexUpdate, doc_ids: Sequence[str]) -> Iterator[Chunk]:
    """The chunks that these documents have before the update."""
    for at in range(0, len(doc_ids), LOOKUP_IDS):
        yield from target.existing(doc_ids[at : at + LOOKUP_IDS])


def _is_id(doc_id: str) -> bool:
    """Whether a document may have this id."""
    try:
        return checked_id(doc_id, "") == doc_id
    except SourceError:
        return False


def _delete(target: IndexUpdate, doc_ids: list[str], after: Manifest, record: UpdateRecord) -> None:
    target.begin(record, doc_ids)
    try:
        target.remove(doc_ids)
        target.publish(after, record)
    except BaseException:
        target.give_up()
        raise


def _delete_report(
    location: str | Path,
    deleted: int,
    missing: tuple[str, ...],
    after: Manifest,
    began: float,
    *,
    dry_run: bool = False,
    finished: bool = False,
) -> DeleteReport:
    return DeleteReport(
        location=str(location),
        deleted=deleted,
        missing=missing,
        dry_run=dry_run,
        finished_before=finished,
        seconds=round(time.monotonic() - began, 3),
        **held(after),
    )


def held(manifest: Manifest) -> dict[str, Any]:
    """What reports say of the index after an update."""
    names = ("documents", "chunks", "sentences", "tokens", "fingerprint", "update")
    return {name: getattr(manifest, name) for name in names}


def _unknown(missing: Sequence[str], where: str) -> UnknownDocumentError:
    return UnknownDocumentError(
        f"No document has the id {shown_ids(missing)}; nothing was deleted."
        if len(missing) == 1
        else f"{len(missing):,} ids are of no document: {shown_ids(missing)}; nothing was deleted.",
        where=where,
        allowed="ids of documents, which searches show without the part (vivaldi of vivaldi.1)",
        do="Correct them, or say --missing-ok to delete the others.",
    )


def _everything(where: str) -> ArgumentError:
    return ArgumentError(
        "That would delete every document of the index.",
        where=where,
        allowed="an index with a document or more",
        do="Build it anew from other sources with --overwrite, or remove the index itself.",
    )


# Compacting


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What was merged: how many deleted entries (passages, sentences, and the marks that a server
    keeps of deletions) went, and how many are left."""

    location: str
    removed: int
    left: int
    seconds: float

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    def to_text(self) -> str:
        """The report in words."""
        lines = [
            f"Compacted {self.location}: one segment a shard,"
            f" {self.removed:,} deleted entries gone; {duration(self.seconds)}."
        ]
        if self.left:
            lines.append(f"left: {self.left:,} deleted entries; compact again later")
        return "\n".join(lines)


def compact_index(location: str | Path, progress: Progress | None = None) -> CompactReport:
    """Merge each shard of an index into one segment: scores and order are then those of a build of
    the same documents.

    Finishes or undoes first what a stopped update has begun. Raises IndexNotFoundError,
    IndexLockedError, BuildError, EngineError.
    """
    began = time.monotonic()
    progress = progress or SilentProgress()
    with resumable_update(
        location, progress, "the index is as it was, and it begins anew"
    ) as target:
        settled = target.recover(None)
        if settled.note:
            progress.note(settled.note)
        before: Deletions = target.deletions
        after = target.compact(progress.note)
    removed = max(0, before.documents - after.documents)
    return CompactReport(
        str(location), removed, after.documents, round(time.monotonic() - began, 3)
    )


# Words


def shown_ids(doc_ids: Sequence[str]) -> str:
    """The first ten ids in quotes, and how many more there are."""
    named = ", ".join(f'"{each[:60]}"' for each in doc_ids[:_SHOWN_IDS])
    more = len(doc_ids) - _SHOWN_IDS
    return f"{named} and {more:,} more" if more > 0 else named

"""LuceneUpdate: documents added to and deleted from the live generation of an index on disk.

An update is one commit of the chunks and one of the sentences, with the same number. Until then
nobody sees what was written, and a process that dies leaves nothing of it. Between the two commits,
readers and the next update take the newest update that both have (snapshot.py). Readers keep the
commit that they opened.

``update.json`` in the location names the update from before the first write until it is finished.
A command that is repeated after a crash learns from it whether it was done.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arag_search.corpus import Chunk, next_document, ordinal_of
from arag_search.engines import stored
from arag_search.engines.base import REBUILD, Deletions
from arag_search.engines.lucene import schema
from arag_search.engines.lucene.jvm import java, java_array
from arag_search.engines.lucene.location import BuildSite, hold_live
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.write import Recovery, UpdateRecord
from arag_search.errors import BuildError, IndexDamagedError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import values_of
from arag_search.query.fields import DOC_ID, MetadataType
from arag_search.system.durable import full_disk_advice, read_plain, write_atomically

_LAST_UPDATE_KEY = "arag-last-update"
"""The key, in the user data of a commit, of the record of its update."""

_RECORD = "update.json"


class LuceneUpdate:
    """An IndexUpdate of a folder, which it locks for one writer.

    Entering raises IndexNotFoundError and whatever else opening raises, IndexLockedError if a build
    or another update is running, BuildError if the folder cannot be written.
    """

    def __init__(self, location: Path) -> None:
        self._location = location.absolute()
        self.where = str(location)
        self._writer: _Writer | None = None

    def __enter__(self) -> LuceneUpdate:
        hold_live(
            Path(self.where)
        ).release()  # raises if there is no index, before the lock creates a folder
        self._site = BuildSite(Path(self.where), overwrite=True)
        self._site.__enter__()
        try:
            self._live = hold_live(Path(self.where))
            try:
                self._engine = LuceneEngine.open(self._live.path, self.where)
            except BaseException:
                self._live.release()
                raise
        except BaseException:
            self._site.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.ExitStack() as closing:  # each is closed even if another one fails
            closing.callback(self._site.__exit__)
            closing.callback(self._live.release)
            closing.callback(self._engine.close)
            if self._writer is not None:
                closing.callback(self._writer.abort)

    @property
    def manifest(self) -> Manifest:
        """The manifest before the update."""
        return self._engine.manifest

    @property
    def deletions(self) -> Deletions:
        """The deleted documents that the index holds before the update."""
        return self._engine.deletions()

    @property
    def last_update(self) -> UpdateRecord | None:
        last = self._engine.commit_data().get(_LAST_UPDATE_KEY)
        return None if last is None else UpdateRecord.from_json(json.loads(last))

    def recover(self, record: UpdateRecord | None) -> Recovery:
        """See IndexUpdate. An update that was not committed has left nothing."""
        try:
            loaded: Any = json.loads(read_plain(self._location / _RECORD))
        except FileNotFoundError:
            return Recovery()
        except (OSError, ValueError, RecursionError):
            loaded = None
        stopped = UpdateRecord.from_json(loaded)
        done = self.last_update
        self._tell_readers()
        if stopped is None:
            return Recovery()
        if not stopped.same(done):
            return Recovery(f"An update was interrupted and changed nothing: {stopped.command}")
        if record is not None and stopped.digest == record.digest:
            return Recovery(done=done)
        return Recovery()

    def first_ordinal(self) -> int:
        path = java("java.nio.file.Paths").get(str(self._live.path / schema.CHUNKS_FOLDER))
        directory = java("org.apache.lucene.store.FSDirectory").open(path)
        reader = java("org.apache.lucene.index.DirectoryReader").open(directory)
        try:
            points = java("org.apache.lucene.index.PointValues")
            packed = points.getMaxPackedValue(reader, stored.ORDINAL)
            numbers = java("org.apache.lucene.util.NumericUtils")
            following = next_document(int(numbers.sortableBytesToLong(packed, 0)))
        finally:
            reader.close()
            directory.close()
        return max(following, ordinal_of(len(self.manifest.sources), 0, 0))

    def existing(self, values: Sequence[str] | None, field: str = DOC_ID) -> Iterator[Chunk]:
        if values is None:
            return self._engine.scan(None)
        if not values:
            return iter(())
        return self._engine.scan(values_of(field, values))

    def begin(
        self,
        record: UpdateRecord,
        metadata: Mapping[str, MetadataType],
        doc_ids: Sequence[str] = (),
    ) -> None:
        """See IndexUpdate. The ids are not needed here."""
        try:
            data = json.dumps(record.to_json()).encode() + b"\n"
            write_atomically(self._location / _RECORD, data)
        except OSError as error:
            raise BuildError(
                f"The folder of the index cannot be written ({error.strerror}).",
                where=self.where,
                do=full_disk_advice(error),
            ) from error
        self._writer = self._new_writer(metadata)

    def remove(self, doc_ids: Sequence[str]) -> None:
        self._open_writer().remove(doc_ids)

    def add(self, chunks: Sequence[Chunk]) -> None:
        self._open_writer().add(chunks)

    def publish(self, manifest: Manifest, record: UpdateRecord) -> None:
        writer = self._open_writer()
        counted = writer.counts()
        expected = (manifest.chunks, manifest.sentences if manifest.has_sentences else None)
        if counted != expected:
            raise IndexDamagedError(
                f"The index would hold {counted} passages and sentences, but {expected} are due.",
                where=self.where,
                do=REBUILD,
            )
        writer.finish(manifest, {_LAST_UPDATE_KEY: json.dumps(record.to_json())})
        self._writer = None
        self._tell_readers()

    def give_up(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
            self._remove_record()

    def _tell_readers(self) -> None:
        """Let open readers know of the commit. If that fails, the update is published nevertheless,
        and its record stays, so that the next update tells them."""
        with contextlib.suppress(OSError):
            self._site.note_commit(self._live.name)
            self._remove_record()

    def _remove_record(self) -> None:
        with contextlib.suppress(OSError):  # in a read-only folder the record does no harm
            (self._location / _RECORD).unlink(missing_ok=True)

    def compact(self, note: Callable[[str], None]) -> Deletions:
        writer = self._writer = self._new_writer(self.manifest.metadata)
        writer.merge(note)
        # The state is the same, and so is the number of the update.
        last = self._engine.commit_data().get(_LAST_UPDATE_KEY)
        writer.finish(self.manifest, {} if last is None else {_LAST_UPDATE_KEY: last})
        self._writer = None
        self._tell_readers()
        merged = LuceneEngine.open(self._live.path, self.where)
        try:
            return merged.deletions()
        finally:
            merged.close()

    def _open_writer(self) -> _Writer:
        if self._writer is None:
            raise RuntimeError("the update has not begun")
        return self._writer

    def _new_writer(self, metadata: Mapping[str, MetadataType]) -> _Writer:
        return _Writer(
            self._live.path,
            metadata=metadata,
            language=self.manifest.language,
            sentences=self.manifest.has_sentences,
            resume=True,
        )


class _Writer(LuceneWriter):
    """A LuceneWriter that continues a finished generation and can delete."""

    def remove(self, doc_ids: Iterable[str]) -> None:
        """Delete the chunks and sentences of the documents that were added before."""
        term = java("org.apache.lucene.index.Term")
        terms = [term(DOC_ID, doc_id) for doc_id in doc_ids]
        if not terms:
            return
        self._wait()
        with self._failures():
            for index in self._indexes:
                index.writer.deleteDocuments(java_array("org.apache.lucene.index.Term", terms))

    def merge(self, note: Callable[[str], None]) -> None:
        """Merge each index into one segment without deleted documents."""
        names = (schema.CHUNKS_FOLDER, schema.SENTENCES_FOLDER)
        with self._failures():
            for name, index in zip(names, self._indexes, strict=False):
                note(f"Merging the {name}, {index.writer.getDocStats().numDocs:,} documents.")
                index.writer.forceMerge(1)

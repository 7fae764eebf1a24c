"""LuceneWriter: writes chunks to the two Lucene indexes of a generation, with checkpoints.

A checkpoint is a commit of both indexes with the same number. A process may die between the two
commits; a resumed build then falls back to the newest checkpoint that both have. Therefore a
checkpoint is kept until the next one is complete.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from arag_search.corpus import Chunk
from arag_search.engines import stored
from arag_search.engines.base import REBUILD
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.jvm import java, java_array
from arag_search.engines.lucene.schema import ChunkPacker, PackedChunks
from arag_search.engines.write import BulkCounts
from arag_search.errors import AragError, BuildError, IndexDamagedError, IndexLockedError
from arag_search.manifest import Manifest
from arag_search.query.field_types import MetadataType, columns
from arag_search.query.fields import CONTENT, DOC_ID, FORM_FIELDS, TITLE

_INDEX = "org.apache.lucene.index"
_T = TypeVar("_T")
RAM_BUFFER_MB = 64.0
"""The buffer of each of the two indexes before it writes a segment, unless the heap is small."""
_WRITING_ADVICE = (
    "Check the free space and the permissions there, then run the same command again to resume."
)


class LuceneWriter:
    """A writer of one generation. Not thread-safe.

    Java's exceptions are raised as BuildError, or as IndexDamagedError if files are broken or
    missing. After an error, call only ``abort``.
    """

    checkpoint: Mapping[str, str]
    """The user data of the newest checkpoint of all indexes; empty for a new index."""

    sent = BulkCounts()

    def __init__(
        self,
        folder: Path,
        *,
        metadata: Mapping[str, MetadataType],
        language: str = "",
        sentences: bool,
        resume: bool,
    ) -> None:
        """Write below ``folder``; ``resume`` from its newest checkpoint, or start anew.

        ``metadata`` declares the metadata fields that are indexed. ``language`` is the language of
        the normal forms of words, empty for none. Raises IndexLockedError if another writer works
        there, BuildError if the folder cannot be written.
        """
        self._folder = folder
        _silence_merges()
        names = [schema.CHUNKS_FOLDER, *([schema.SENTENCES_FOLDER] if sentences else [])]
        self._indexes: list[_Index] = []
        # Java works on one batch while Python prepares the next.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="arag-lucene")
        self._pending: Future[None] | None = None
        with self._failures():
            self._indexes = [_Index(folder / name) for name in names]
        try:
            with self._failures():
                self._begin(resume)
        except BaseException:
            self.abort()
            raise
        self._metadata = metadata
        self.packer = ChunkPacker(metadata, language)
        self._documents = self._new_documents()

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Add the chunks of one or several documents, in corpus order.

        They may be written as late as ``commit``. Raises BuildError if an id or keyword is too long
        to be indexed, if text is not Unicode, and if files cannot be written.
        """
        self.add_packed(self.packer(chunks))

    def add_packed(self, packed: PackedChunks) -> None:
        """Add chunks that were packed beforehand, with the metadata fields of this writer."""
        self._wait()
        if packed.chunks:
            self._keep_order(packed)
            self._pending = self._thread.submit(self._add, packed.data)

    def add_block(self, written: Path) -> None:
        """Add the indexes that another writer has finished in a folder, segment by segment, and
        remove the folder. Their chunks come after those added before."""
        self._wait()
        with self._failures():
            data = [index.add(written) for index in self._indexes]
        last = data[0].get(schema.LAST_ORDINAL_KEY)
        if self._last_ordinal is None or last is None:
            self._last_ordinal = None
        else:
            self._last_ordinal = max(self._last_ordinal, int(last))
        shutil.rmtree(written, ignore_errors=True)

    def block_writing(self) -> ShardWriting:
        """Prepare an empty folder in the generation for blocks. Raises OSError."""
        folder = self._folder / _BLOCKS_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        mark = uuid4().bytes
        (folder / _MARK).write_bytes(mark)
        sentences = len(self._indexes) > 1
        return ShardWriting(folder, mark, self._metadata, self.packer.language, sentences)

    def has_document(self, doc_id: str) -> bool:
        """Return whether a document with this id was added, now or before a resume. Slow."""
        self._wait()
        with self._failures(), self._indexes[0].reading() as reader:
            return int(reader.docFreq(java(f"{_INDEX}.Term")(DOC_ID, doc_id))) > 0

    def document_ids(self) -> Iterator[str]:
        """Iterate, sorted, over the ids of all documents of the checkpoint that was resumed."""
        with self._failures():
            reader = self._indexes[0].committed_reader()
            if reader is None:
                return
            try:
                terms = java(f"{_INDEX}.MultiTerms").getTerms(reader, DOC_ID)
                iterator = None if terms is None else terms.iterator()
                while iterator is not None and (term := iterator.next()) is not None:
                    yield str(term.utf8ToString())
            finally:
                reader.close()

    def commit(self, data: Mapping[str, str]) -> None:
        """Write a checkpoint of everything added so far, together with ``data``."""
        self._wait()
        number = int(self._number) + 1
        sentence_data = {**data, schema.CHECKPOINT_KEY: str(number)}
        sentence_data.pop(schema.MANIFEST_KEY, None)
        chunk_data = {**data, schema.CHECKPOINT_KEY: str(number)}
        if self._last_ordinal is not None:
            chunk_data[schema.LAST_ORDINAL_KEY] = str(self._last_ordinal)
        self._at_once(_Index.prepare, (chunk_data, sentence_data))
        with self._failures():
            for index in self._indexes:
                index.commit()
            for index in self._indexes:
                index.forget_previous()
        self._number = number

    def counts(self) -> tuple[int, int | None]:
        """Count the documents of each index, with the written and without the deleted ones."""
        self._wait()
        chunks, *sentences = self._at_once(_Index.count)
        return chunks, sentences[0] if sentences else None

    def _at_once(self, function: Callable[..., _T], *values: Iterable[Any]) -> list[_T]:
        """Call a function for each index, with its value of each of ``values``: all write segments
        and wait for the disk."""
        with self._failures(), ThreadPoolExecutor(len(self._indexes)) as pool:
            return list(pool.map(function, self._indexes, *values))

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        """Commit with the manifest, keep only that commit, and close."""
        self._wait()
        with self._failures():
            for index in self._indexes:
                index.writer.maybeMerge()
        # Opening compares the number of the update, which both indexes have.
        keys = {schema.MANIFEST_KEY: manifest.to_json(), schema.UPDATE_KEY: str(manifest.update)}
        self.commit({**keys, **data})
        with self._failures():
            for index in self._indexes:
                index.close()
        self._thread.shutdown()
        shutil.rmtree(self._folder / _BLOCKS_FOLDER, ignore_errors=True)

    def abort(self) -> None:
        """Close without committing; the newest checkpoint is kept. Never raises."""
        self._thread.shutdown(cancel_futures=True)
        for index in self._indexes:
            index.abort()

    def _begin(self, resume: bool) -> None:
        common = _common_checkpoint(self._indexes) if resume else None
        for index in self._indexes:
            index.open(common)
        data = {} if common is None else self._indexes[0].data_of(common)
        self._number = 0 if common is None else common
        data.pop(schema.CHECKPOINT_KEY, None)
        last = data.pop(schema.LAST_ORDINAL_KEY, None)
        self._last_ordinal = -1 if common is None else None if last is None else int(last)
        self.checkpoint = data

    def _keep_order(self, packed: PackedChunks) -> None:
        """Record whether all chunks come in order of ordinal. Adding from one thread and merging
        neighbours keep that order."""
        last = self._last_ordinal
        if last is None or packed.ordinals is None or packed.ordinals[0] <= last:
            self._last_ordinal = None
        else:
            self._last_ordinal = packed.ordinals[1]

    def _new_documents(self) -> Any:
        """Return the Java object that converts packed chunks to documents of the indexes."""
        names = java("arag.Documents$Names")(
            stored.ID,
            DOC_ID,
            stored.ORDINAL,
            TITLE,
            CONTENT,
            stored.RECORD,
            schema.TEXT,
            stored.NAME,
            *(FORM_FIELDS.values() if self.packer.language else (None, None)),
        )
        own = columns(self._metadata)
        fields = [schema.lucene_field(name) for name in own]
        kinds = "".join(kind.storage[0] for _, kind in own.values())
        writers = [index.writer for index in self._indexes]
        sentences = writers[1] if len(writers) > 1 else None
        fields = java_array("String", fields)
        return java("arag.Documents")(writers[0], sentences, names, fields, kinds)

    def _add(self, data: bytes) -> None:
        with self._failures():
            self._documents.add(java_array("byte", data))

    def _wait(self) -> None:
        """Wait until everything added is written. Raises the error of that."""
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    @contextlib.contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise BuildError(
                f"The index cannot be written: {error.strerror}",
                where=str(self._folder),
                do=_WRITING_ADVICE,
            ) from error
        except jvm.java_error() as error:
            raise _failure(error, str(self._folder)) from error


_BLOCKS_FOLDER = "blocks"
"""The folder of a generation in which other processes write blocks."""
_MARK = "build"


@dataclass(frozen=True, slots=True)
class ShardWriting:
    """A BlockWriting into a shared folder, where each block becomes indexes of its own."""

    folder: Path
    mark: bytes
    metadata: Mapping[str, MetadataType]
    language: str
    sentences: bool

    @property
    def needs(self) -> Mapping[str, bytes | None]:
        return {str(self.folder / _MARK): self.mark}

    def __call__(self, packed: Iterable[PackedChunks]) -> Path:
        """Write indexes into a new folder, and return it. Raises BuildError."""
        folder = self.folder / uuid4().hex
        writer = LuceneWriter(
            folder,
            metadata=self.metadata,
            language=self.language,
            sentences=self.sentences,
            resume=False,
        )
        try:
            for chunks in packed:
                writer.add_packed(chunks)
            writer.commit({})
        except BaseException:
            writer.abort()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        writer.abort()
        return folder


class _Index:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        path = java("java.nio.file.Paths").get(str(folder))
        # Mapped: read by calls, a merge fetches a kilobyte for the few postings of most words.
        self._directory = java("org.apache.lucene.store.FSDirectory").open(path)
        self._policy: Any = None
        self._kept: list[Any] = []
        self.writer: Any = None

    def checkpoints(self) -> dict[int, Any]:
        """Return the commits on disk by checkpoint number."""
        reader = java(f"{_INDEX}.DirectoryReader")
        if not reader.indexExists(self._directory):
            return {}
        commits: dict[int, Any] = {}
        for commit in reader.listCommits(self._directory):
            number = commit.getUserData().get(schema.CHECKPOINT_KEY)
            if number is not None:
                commits[int(str(number))] = commit
        return commits

    def data_of(self, number: int) -> dict[str, str]:
        data = self.checkpoints()[number].getUserData()
        return {str(entry.getKey()): str(entry.getValue()) for entry in data.entrySet()}

    def open(self, number: int | None) -> None:
        """Resume from the checkpoint with this number; None starts anew."""
        mode = java(f"{_INDEX}.IndexWriterConfig$OpenMode")
        if number is None:
            self._empty()
        elif max(self.checkpoints()) != number:
            self._revert_to(number)
        last = java(f"{_INDEX}.KeepOnlyLastCommitDeletionPolicy")()
        self._policy = java(f"{_INDEX}.SnapshotDeletionPolicy")(last)
        config = _config().setIndexDeletionPolicy(self._policy)
        config.setOpenMode(mode.CREATE if number is None else mode.APPEND)
        self.writer = java(f"{_INDEX}.IndexWriter")(self._directory, config)
        if number is not None:
            self._kept.append(self._policy.snapshot())

    def _empty(self) -> None:
        """Remove the files of an earlier build, so that a crash cannot bring them back."""
        lock = self._directory.obtainLock(java(f"{_INDEX}.IndexWriter").WRITE_LOCK_NAME)
        try:
            for name in self._directory.listAll():
                if str(name) != str(java(f"{_INDEX}.IndexWriter").WRITE_LOCK_NAME):
                    self._directory.deleteFile(name)
        finally:
            lock.close()

    def _revert_to(self, number: int) -> None:
        """Make an older checkpoint the newest commit, and keep all others until that is done."""
        keep_all = java(f"{_INDEX}.NoDeletionPolicy").INSTANCE
        config = _config().setIndexDeletionPolicy(keep_all)
        config.setIndexCommit(self.checkpoints()[number])
        writer = java(f"{_INDEX}.IndexWriter")(self._directory, config)
        try:
            _set_data(writer, self.data_of(number))
            writer.commit()
        finally:
            writer.close()

    def add(self, folder: Path) -> dict[str, str]:
        """Append the segments of the index of the same name in a folder; return the data of its
        commit."""
        other = _Index(folder / self._folder.name)
        try:
            directories = java_array("org.apache.lucene.store.Directory", [other._directory])
            self.writer.addIndexes(directories)
            return other.data_of(max(other.checkpoints()))
        finally:
            other.abort()

    def committed_reader(self) -> Any | None:
        """Return a reader of the newest commit, or None if there is none."""
        reader = java(f"{_INDEX}.DirectoryReader")
        return reader.open(self._directory) if reader.indexExists(self._directory) else None

    def count(self) -> int:
        """Count the documents: uncommitted ones too, but not the deleted ones."""
        with self.reading() as reader:
            return int(reader.numDocs())

    def reading(self) -> contextlib.closing[Any]:
        """Open a reader of all that was added; leaving the block closes it."""
        return contextlib.closing(java(f"{_INDEX}.DirectoryReader").open(self.writer))

    def prepare(self, data: Mapping[str, str]) -> None:
        _set_data(self.writer, data)
        self.writer.prepareCommit()

    def commit(self) -> None:
        self.writer.commit()
        self._kept.append(self._policy.snapshot())

    def forget_previous(self) -> None:
        for commit in self._kept[:-1]:
            self._policy.release(commit)
        del self._kept[:-1]
        self.writer.deleteUnusedFiles()

    def close(self) -> None:
        """Close after a commit, with nothing left to commit."""
        self.writer.rollback()
        self._directory.close()

    def abort(self) -> None:
        # A writer that has failed may fail again here, which does not matter any more.
        with contextlib.suppress(jvm.java_error()):
            if self.writer is not None:
                self.writer.rollback()
        with contextlib.suppress(jvm.java_error()):
            self._directory.close()


def _common_checkpoint(indexes: Sequence[_Index]) -> int | None:
    """Return the newest checkpoint that every index has."""
    common = set(indexes[0].checkpoints())
    for index in indexes[1:]:
        common &= set(index.checkpoints())
    return max(common, default=None)


def _config() -> Any:
    analyser = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()
    config = java(f"{_INDEX}.IndexWriterConfig")(analyser)
    heap_mb = java("java.lang.Runtime").getRuntime().maxMemory() / (1 << 20)
    config.setRAMBufferSizeMB(min(RAM_BUFFER_MB, heap_mb / 8))
    # It merges only neighbours: documents stay in corpus order, so that scans read sequentially.
    config.setMergePolicy(java(f"{_INDEX}.LogByteSizeMergePolicy")())
    return config


@functools.cache
def _silence_merges() -> None:
    """Keep Java from printing the stack trace of a merge that fails in a thread of its own.

    The writer raises the error at its next call.
    """
    thread = java("java.lang.Thread")
    handler = jvm.java_callback(
        "java.lang.Thread$UncaughtExceptionHandler", "uncaughtException", lambda *_: None
    )
    thread.setDefaultUncaughtExceptionHandler(handler)


def _set_data(writer: Any, data: Mapping[str, str]) -> None:
    entries = java("java.util.HashMap")()
    for key, value in data.items():
        entries.put(key, value)
    writer.setLiveCommitData(entries.entrySet())


def _failure(error: Exception, where: str) -> AragError:
    if jvm.is_a(error, "LockObtainFailedException"):
        return IndexLockedError(
            "Another writer is using the folder.", where=where, do="Wait until it has finished."
        )
    what = f"The index cannot be written: {jvm.java_reason(error)}"
    if jvm.is_damage(error):
        return IndexDamagedError(what, where=where, do=REBUILD)
    return BuildError(
        what,
        where=where,
        do=jvm.advice(error) or _WRITING_ADVICE,
    )

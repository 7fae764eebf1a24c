"""A Lucene index, open at one commit; its documents are identified by number.

All results are as of the commit that was opened, whatever writers do. Methods are thread-safe; the
caller makes sure that none runs during or after ``close``.

An update commits chunks and sentences one after the other. A reader that opens them in between, or
after a process that died there, sees different updates. ``open_pair`` then opens the newest update
in both.
"""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

from arag_search.engines.base import (
    MAX_TOTAL,
    REBUILD,
    Count,
    Deadline,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    Mask,
    Ordinals,
    Page,
    SortBy,
    ValueCount,
    left_nanoseconds,
)
from arag_search.engines.hits import Hit
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.jvm import java, java_array, java_float
from arag_search.engines.lucene.location import folder_bytes
from arag_search.engines.lucene.schema import (
    LAST_ORDINAL_KEY,
    TEXT,
    UNREADABLE,
    UPDATE_KEY,
    decode_hits,
    escaped,
    lucene_field,
)
from arag_search.engines.stored import ORDINAL, RECORD
from arag_search.errors import EngineError, IndexDamagedError, IndexVersionError
from arag_search.manifest import Manifest
from arag_search.query.fields import CONTENT, DOC_ID, TEXT_FIELDS, MetadataType, type_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Documents: TypeAlias = "NDArray[np.int32]"
"""Numbers of documents in a snapshot; the number of all its documents stands for none."""

_INDEX = "org.apache.lucene.index"
_ORDINALS_AT_ONCE = 1 << 20
_WHOLE = 5
"""The parts of a page whose texts are read whole."""
# What files that are as they should be can meet: permissions, too many open files, no memory.
_NO_DAMAGE = ("AccessDeniedException", "FileSystemException", "OutOfMemoryError")


class Match(NamedTuple):
    """A match: its document number in this snapshot, its score (0.0 if unscored), its ordinal."""

    document: int
    score: float
    ordinal: int


@dataclass(frozen=True, slots=True)
class Top:
    """The first matches in order, and the number of all."""

    matches: list[Match]
    total: Count


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a scan in order of ordinal; the default is the start."""

    document: int = -1
    ordinal: int = -1


@dataclass(frozen=True, slots=True)
class PartStatistics:
    """Counts and size of one of the two Lucene indexes of a generation."""

    documents: int
    deleted: int
    segments: int
    files: int
    bytes: int


VERIFIED_BYTES = 1 << 22
"""Up to this size, the checksums of all files are compared at opening, which takes milliseconds. In
a larger index, damage is met when it is read."""


class Snapshot:
    """A Lucene index opened for searching with BM25, and with plain frequencies."""

    def __init__(self, folder: Path, where: str, update: int | None = None) -> None:
        """Open the newest commit, or the newest commit of an update (see ``updates``).

        ``where`` names the index in errors. Raises IndexDamagedError for files that are missing or
        broken, IndexVersionError for files of another Lucene.
        """
        self._where = where
        self._directory: Any = None
        if not folder.is_dir():  # Lucene would create it
            raise IndexDamagedError(
                f"The folder {folder.name} of the index is missing.", where=where, do=REBUILD
            )
        try:
            path = java("java.nio.file.Paths").get(str(folder))
            self._directory = java("org.apache.lucene.store.FSDirectory").open(path)
            self._reader = java(f"{_INDEX}.DirectoryReader").open(
                self._directory if update is None else _commits(self._directory)[update]
            )
            if folder_bytes(folder) <= VERIFIED_BYTES:
                for leaf in self._reader.leaves():
                    leaf.reader().checkIntegrity()
        except KeyError as error:
            self._close_directory()
            raise IndexDamagedError(
                f"The {folder.name} of the index hold no update {update}.", where=where, do=REBUILD
            ) from error
        except jvm.java_error() as error:
            self._close_directory()
            raise _opening_error(error, folder, where) from error
        self._searcher = java("arag.Searcher")(
            self._reader, LAST_ORDINAL_KEY in self.user_data(), MAX_TOTAL, ORDINAL, RECORD, TEXT
        )
        # Bound once, since looking up a method costs as much as calling it.
        self._page, self._top = self._searcher.page, self._searcher.top

    def user_data(self) -> Mapping[str, str]:
        """Return the data that the writer stored with the commit."""
        data = self._reader.getIndexCommit().getUserData()
        return {str(entry.getKey()): str(entry.getValue()) for entry in data.entrySet()}

    def updates(self) -> set[int]:
        """Return the updates whose commits the folder has now, including newer and older ones."""
        return set(_commits(self._directory))

    def use_bm25(self, k1: float, b: float) -> None:
        """Score with these parameters from now on."""
        self._searcher.useBm25(java_float(k1), java_float(b))

    def page(
        self,
        query: str,
        start: int,
        end: int,
        *,
        scored: bool,
        counting: bool = False,
        with_text: bool,
        sort: str = "",
        deadline: Deadline | None = None,
    ) -> Page:
        """Return matches ``start`` to ``end`` by score, equal and unscored matches by ordinal.

        ``counting`` scores boost x frequency (Eq. 1) instead of BM25. ``sort`` is a sort of
        ``sort_text`` that precedes the score. One call to Java.
        """
        left = left_nanoseconds(deadline)
        data = bytes(self._page(query, start, end, scored, counting, with_text, sort, left))
        head, texts = _split(data)
        try:
            count, exact, before_end, scores, records = orjson.loads(head)
            hits = decode_hits(records, texts, scores)
            passages = before_end if before_end < end else None
            return Page(hits, Count(count, bool(exact)), passages)
        except UNREADABLE as error:
            raise self._damage(error) from error

    def counts_and_pages(
        self,
        counted: Sequence[str],
        queries: Sequence[tuple[str, bool]],
        ends: Sequence[int],
        alike: Sequence[tuple[str, int] | None],
        *,
        with_text: bool,
        deadline: Deadline | None,
    ) -> tuple[list[int], list[Page]]:
        """Return the counts of ``counts``, and the first matches of one or more queries, each with
        whether it is scored. ``ends`` says how many. ``alike`` has a word with its edits for each
        query of whose matches only words like it are read. One call to Java."""
        text = "".join((*counted, *(query for query, _ in queries)))
        signed = [end if scored else -end for (_, scored), end in zip(queries, ends, strict=True)]
        left = left_nanoseconds(deadline)
        words = "".join([f"{like[1]}\0{like[0]}\0" if like else "0\0" for like in alike])
        data = bytes(
            self._searcher.countsAndPages(
                text, len(counted), java_array("long", signed), with_text, CONTENT, words, left
            )
        )
        head, texts = _split(data)
        try:
            answers = orjson.loads(head)
            pages = answers[len(counted) :]
            whole = [page for page in pages if len(page) == _WHOLE]
            rows = [row for page in whole for row in page[4]]
            hits = iter(decode_hits(rows, texts, (score for page in whole for score in page[3])))
            results: list[Page] = []
            for (count, exact, before_end, scores, own, *words), end in zip(
                pages, ends, strict=True
            ):
                passages = before_end if before_end < end else None
                of_page = islice(hits, len(own))
                if words:
                    of_page = (
                        hit._replace(content=text, sentence_ends=(len(text),))
                        for hit, text in zip(decode_hits(own, None, scores), *words, strict=True)
                    )
                results.append(Page(tuple(of_page), Count(count, bool(exact)), passages))
            return answers[: len(counted)], results
        except UNREADABLE as error:
            raise self._damage(error) from error

    def top(
        self,
        query: str,
        n: int,
        *,
        scored: bool,
        sort: str = "",
        deadline: Deadline | None = None,
    ) -> Top:
        """Return the first ``n`` matches (1 or more), in the order of ``page``."""
        return _top(_numbers(self._top(query, n, scored, sort, left_nanoseconds(deadline))))

    def top_per_document(
        self,
        query: str,
        n: int,
        most: int,
        *,
        scored: bool,
        sort: str = "",
        member_bits: int = 0,
        deadline: Deadline | None = None,
    ) -> Top:
        """Return the first ``n`` matches, at most ``most`` of a document, in the order of ``page``.

        If ordinals of matches differ only in the last ``member_bits``, only the first match counts.
        One pass over all matches, in space for ``n`` of them.
        """
        left = left_nanoseconds(deadline)
        flat = self._searcher.topPerGroup(query, n, scored, sort, DOC_ID, most, member_bits, left)
        return _top(_numbers(flat))

    def field_values(
        self, query: str, fields: str, most: int, deadline: Deadline | None = None
    ) -> bytes:
        """Return what ``java/Fields.java`` writes of the fields in the documents that match; an
        empty query matches all. ``fields`` are words of ``java/Searcher.java``."""
        return bytes(self._searcher.fieldValues(query, fields, most, left_nanoseconds(deadline)))

    def after(self, query: str, position: Position, n: int) -> tuple[list[int], Position]:
        """Return the ``n`` matches after a position in order of ordinal, and their end position.

        Fewer than ``n`` matches are the last ones.
        """
        flat = self._after(query, position, n)
        return flat[0::2], Position(*flat[-2:]) if flat else position

    def ordinals_after(self, query: str, position: Position, n: int) -> tuple[list[int], Position]:
        """Return the same as ``after``, but the ordinals of the matches."""
        flat = self._after(query, position, n)
        return flat[1::2], Position(*flat[-2:]) if flat else position

    def _after(self, query: str, position: Position, n: int) -> list[int]:
        """Return the document and the ordinal of each match, one after the other."""
        return _numbers(self._searcher.after(query, position.document, position.ordinal, n))

    def matching(self, query: str, deadline: Deadline | None) -> Mask:
        """Return, for each document, whether it matches. One call to Java."""
        import numpy as np

        bits = bytes(memoryview(self._searcher.matching(query, left_nanoseconds(deadline))))
        marks = np.unpackbits(
            np.frombuffer(bits, np.uint8), count=self._reader.maxDoc(), bitorder="little"
        )
        return marks.view(np.bool_)

    def known(self, field: str, values: Sequence[str]) -> list[str]:
        """Return the values that are terms of a field. One call to Java."""
        words = "".join([f"{escaped(value)}\0" for value in values])
        return list(compress(values, bytes(self._searcher.known(field, words, len(values)))))

    def documents_of(self, ordinals: Ordinals) -> Documents | None:
        """Return the documents with these ordinals; None if they are all documents in order."""
        import numpy as np

        count = int(self._reader.maxDoc())
        stored = np.empty(count, np.int64)
        for first in range(0, count, _ORDINALS_AT_ONCE):
            end = min(first + _ORDINALS_AT_ONCE, count)
            longs = self._searcher.ordinals(first, end)
            stored[first:end] = np.frombuffer(bytes(memoryview(longs)), np.int64)
        if np.array_equal(stored, ordinals):
            return None
        order = np.argsort(stored)
        at = np.searchsorted(stored, ordinals, sorter=order)
        documents = np.append(order, count)[at]
        is_same = np.append(stored, -1)[documents] == ordinals
        return np.where(is_same, documents, count).astype(np.int32)

    def before(self, query: str) -> list[int]:
        """Return the match with the greatest ordinal, if there is any."""
        document = int(self._searcher.last(query))
        return [] if document < 0 else [document]

    def counts(
        self, queries: Sequence[str], deadline: Deadline | None = None, exact: bool = False
    ) -> list[int]:
        """Count the documents that match each query, up to MAX_TOTAL + 1 unless ``exact``."""
        if exact:
            return [self.count(query, deadline) for query in queries]
        nanoseconds = left_nanoseconds(deadline)
        return _numbers(self._searcher.counts("".join(queries), len(queries), nanoseconds))

    def count(self, query: str, deadline: Deadline | None) -> int:
        """Count all documents that match."""
        return int(self._searcher.countAll(query, left_nanoseconds(deadline)))

    def read(self, documents: Sequence[int], *, with_text: bool) -> tuple[Hit, ...]:
        """Return the contents of documents."""
        data = bytes(self._searcher.read(java_array("long", documents), with_text))
        head, texts = _split(data)
        try:
            return decode_hits(orjson.loads(head), texts)
        except UNREADABLE as error:
            raise self._damage(error) from error

    def _damage(self, error: Exception) -> IndexDamagedError:
        """Return the error for a record that cannot be decoded. When it opens an index, Lucene
        compares only checksums that need no reading."""
        return IndexDamagedError(
            f"The record of a passage cannot be read ({error}).",
            where=self._where,
            do=f"Check with: arag-search info {self._where} --checksums. {REBUILD}",
        )

    def statistics(self) -> PartStatistics:
        """Count documents, segments and files.

        Files of other commits are left out, and files that a newer commit has removed.
        """
        names = [str(name) for name in self._reader.getIndexCommit().getFileNames()]
        sizes = [size for name in names if (size := self._size_of(name)) is not None]
        return PartStatistics(
            documents=int(self._reader.numDocs()),
            deleted=int(self._reader.numDeletedDocs()),
            segments=int(self._reader.leaves().size()),
            files=len(sizes),
            bytes=sum(sizes),
        )

    def _size_of(self, name: str) -> int | None:
        try:
            return int(self._directory.fileLength(name))
        except jvm.java_error() as error:
            if jvm.is_a(error, "NoSuchFileException"):
                return None
            raise

    def verify(self) -> None:
        """Read every file and compare checksums, which takes as long as reading the index.

        Raises IndexDamagedError.
        """
        try:
            for leaf in self._reader.leaves():
                leaf.reader().checkIntegrity()
        except jvm.java_error() as error:
            raise IndexDamagedError(
                f"A file of the index is damaged: {jvm.java_reason(error)}",
                where=self._where,
                do=REBUILD,
            ) from error

    def close(self) -> None:
        """Release memory maps and files. May be called again."""
        self._reader.close()
        self._close_directory()

    def _close_directory(self) -> None:
        if self._directory is not None:
            self._directory.close()


def _split(data: bytes) -> tuple[bytes, bytes | None]:
    """Return the line of JSON and the texts after it; None if no texts were requested."""
    head, end, texts = data.partition(b"\n")
    return head, texts if end else None


def _numbers(longs: Any) -> list[int]:
    return array("q", bytes(memoryview(longs))).tolist()


def _top(flat: Sequence[int]) -> Top:
    """Convert total, exactness, and document, bits of the score and ordinal of each match."""
    count, exact, *rest = flat
    matches = list(map(Match, rest[0::3], _floats(rest[1::3]), rest[2::3]))
    return Top(matches, Count(count, bool(exact)))


def _commits(directory: Any) -> dict[int, Any]:
    """Return the newest commit of each update."""
    commits: dict[int, Any] = {}
    for commit in java(f"{_INDEX}.DirectoryReader").listCommits(directory):
        update = commit.getUserData().get(UPDATE_KEY)
        if update is not None:
            commits[int(str(update))] = commit
    return commits


def _floats(bits: Sequence[int]) -> list[float]:
    n = len(bits)
    return list(struct.unpack(f"{n}f", struct.pack(f"{n}i", *bits)))


def _opening_error(error: Exception, folder: Path, where: str) -> Exception:
    if jvm.is_a(error, "IndexFormatTooNewException", "IndexFormatTooOldException"):
        return IndexVersionError(
            f"The index was written by another release of Lucene: {jvm.java_reason(error)}",
            where=where,
            allowed=f"formats that Lucene {jvm.LUCENE_VERSION} reads",
            do=f"Build the index again: arag-search index SOURCE --to {where} --overwrite",
        )
    held = "passages" if folder.name == schema.CHUNKS_FOLDER else "sentences"
    what = f"The {held} of the index cannot be opened: {jvm.java_reason(error)}"
    if jvm.is_a(error, *_NO_DAMAGE):
        return EngineError(what, where=where, do=jvm.advice(error))
    return IndexDamagedError(what, where=where, do=REBUILD)


_ATTEMPTS = 25
_PAUSE_S = 0.02


# Chunks and sentences of the same update


def open_pair(generation: Path, where: str) -> tuple[Snapshot, Snapshot | None, Manifest]:
    """Open the chunks, the sentences (None if the build left them out) and the manifest.

    Raises IndexDamagedError if files are missing or have no update in common, IndexVersionError
    for another format.
    """
    update: int | None = None
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            return _open(generation, where, update)
        except _MixedError as mixed:
            if not attempts_left:
                raise _refusal(mixed, where) from None
            update = max(mixed.common, default=None)
        except IndexDamagedError:
            if update is None or not attempts_left:
                raise
            update = None  # the update has been completed, and the older commit is gone
        if update is None:
            time.sleep(_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


class _MixedError(Exception):
    """Chunks and sentences of different updates; ``common`` are the updates that both have."""

    def __init__(self, chunks: int, sentences: str | None, common: set[int]) -> None:
        super().__init__()
        self.chunks = chunks
        self.sentences = sentences
        self.common = common


def _open(
    generation: Path, where: str, update: int | None
) -> tuple[Snapshot, Snapshot | None, Manifest]:
    chunks = Snapshot(generation / schema.CHUNKS_FOLDER, where, update)
    try:
        manifest = _manifest(chunks, where)
        chunks.use_bm25(manifest.k1, manifest.b)
        if not manifest.has_sentences:
            return chunks, None, manifest
        sentences = Snapshot(generation / schema.SENTENCES_FOLDER, where, update)
    except BaseException:
        chunks.close()
        raise
    sentences_update = sentences.user_data().get(schema.UPDATE_KEY)
    if sentences_update != str(manifest.update):
        try:
            common = chunks.updates() & sentences.updates()
        except jvm.java_error():  # a commit was deleted while they were listed
            common = set[int]()
        sentences.close()
        chunks.close()
        raise _MixedError(manifest.update, sentences_update, common)
    sentences.use_bm25(manifest.k1, manifest.b)
    return chunks, sentences, manifest


def _manifest(chunks: Snapshot, where: str) -> Manifest:
    data = chunks.user_data()
    if schema.MANIFEST_KEY not in data:
        raise IndexDamagedError("The index has no manifest.", where=where, do=REBUILD)
    manifest = Manifest.from_json(data[schema.MANIFEST_KEY], where)
    if manifest.engine != schema.LUCENE:
        raise IndexDamagedError(
            f'The manifest is of an index of engine "{manifest.engine}".',
            where=where,
            allowed=f"engine {schema.LUCENE}",
            do=REBUILD,
        )
    return manifest


def _refusal(mixed: _MixedError, where: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The sentences are of update {mixed.sentences}, the passages of update {mixed.chunks}.",
        where=where,
        do=REBUILD,
    )


_LONG, _INT = struct.Struct(">q"), struct.Struct(">i")
_DOUBLE = struct.Struct(">d")
_SIGN = (1 << 63) - 1


# Values of fields and orders of sorts, in the forms that Java writes and reads


def sort_text(sort: SortBy | None, metadata: Mapping[str, MetadataType]) -> str:
    """Return a sort as ``java/Searcher.java`` reads it; empty for None."""
    if sort is None:
        return ""
    kind = "p" if type_of(sort.field, metadata).is_ordered else "k"
    return f"{kind}{'-' if sort.descending else '+'}{lucene_field(sort.field)}"


def fields_text(request: FieldsRequest, metadata: Mapping[str, MetadataType]) -> str:
    """Return the fields of a request as ``java/Searcher.java`` reads them."""
    words: list[str] = []
    for name in request.fields:
        if name in TEXT_FIELDS:
            words.append(f"t{name}\0")
        else:
            kind = "p" if type_of(name, metadata).is_ordered else "k"
            words.append(f"{kind}{lucene_field(name)}\0")
    return "".join(words)


def fields_page(
    data: bytes, request: FieldsRequest, metadata: Mapping[str, MetadataType]
) -> FieldsPage:
    """Return the values of fields that ``java/Fields.java`` wrote."""
    values = _Values(data)
    chunks = values.long()
    fields: list[FieldValues] = []
    for name in request.fields:
        with_value = values.long()
        if name in TEXT_FIELDS:
            fields.append(FieldValues(name, with_value))
        elif not (kind := type_of(name, metadata)).is_ordered:
            distinct = values.long()
            fields.append(FieldValues(name, with_value, distinct, values.counts()))
        else:
            value = _double if kind.storage == "double" else float
            ends = [value(end) for end in (values.long(), values.long())]
            least, greatest = ends if with_value else (None, None)
            fields.append(FieldValues(name, with_value, least=least, greatest=greatest))
    return FieldsPage(chunks, tuple(fields))


def _double(bits: int) -> float:
    """Return the number with these sortable bits."""
    return float(_DOUBLE.unpack(_LONG.pack(bits if bits >= 0 else bits ^ _SIGN))[0])


class _Values:
    """A reader of numbers and values one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def long(self) -> int:
        """Read a number of eight bytes."""
        (number,) = _LONG.unpack_from(self._data, self._at)
        self._at += _LONG.size
        return int(number)

    def counts(self) -> tuple[ValueCount, ...]:
        """Read values with their counts."""
        (number,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        return tuple(self._count() for _ in range(number))

    def _count(self) -> ValueCount:
        chunks = self.long()
        (length,) = _INT.unpack_from(self._data, self._at)
        start = self._at + _INT.size
        self._at = start + length
        return ValueCount(self._data[start : self._at].decode(), chunks)

"""One Lucene index, open at one commit: what is found in it, by number of document.

Everything here is as of the commit that was opened; writers do not disturb it. Methods may be
called from several threads; who calls sees to it that none runs during or after ``close``.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from arag_search.engines.base import MAX_TOTAL
from arag_search.engines.deadline import Deadline, left_nanoseconds
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.jvm import java, java_array, java_float
from arag_search.engines.lucene.schema import (
    LAST_ORDINAL_KEY,
    ORDINAL,
    RECORD,
    TEXT,
    UPDATE_KEY,
    Record,
    decode_records,
)
from arag_search.errors import IndexDamagedError, IndexVersionError

_INDEX = "org.apache.lucene.index"
REBUILD = "Build the index again with --overwrite."


class Found(NamedTuple):
    """One match: its number in this snapshot, its score (0.0 where unscored), its ordinal."""

    document: int
    score: float
    ordinal: int


@dataclass(frozen=True, slots=True)
class Top:
    """The first matches in order. ``count`` is exact up to MAX_TOTAL, and where it says so."""

    found: list[Found]
    count: int
    count_is_exact: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches with what they hold. ``before_end`` says how many there are up to the end that was
    asked for; the rest is as in Top."""

    records: list[Record]
    scores: list[float]
    count: int
    count_is_exact: bool
    before_end: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading through in order of ordinal has come to."""

    document: int = -1
    ordinal: int = -1


@dataclass(frozen=True, slots=True)
class PartStatistics:
    """What one of the two Lucene indexes of a generation consists of."""

    documents: int
    deleted: int
    segments: int
    files: int
    bytes: int


class Snapshot:
    """A Lucene index opened for searching with BM25, and with plain frequencies."""

    def __init__(self, folder: Path, where: str, update: int | None = None) -> None:
        """Open the newest commit, or the newest one of this update (see ``updates``). ``where``
        names the index in errors.

        Raises IndexDamagedError for files that are missing or broken, IndexVersionError for ones
        of another Lucene.
        """
        self._where = where
        self._directory: Any = None
        if not folder.is_dir():  # Lucene would make it
            raise IndexDamagedError(
                f"The folder {folder.name} of the index is missing.", where=where, do=REBUILD
            )
        try:
            path = java("java.nio.file.Paths").get(str(folder))
            self._directory = java("org.apache.lucene.store.FSDirectory").open(path)
            self._reader = java(f"{_INDEX}.DirectoryReader").open(
                self._directory if update is None else _commits(self._directory)[update]
            )
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
        # Bound once: looking a method up costs as much as calling it.
        self._page, self._top = self._searcher.page, self._searcher.top

    def user_data(self) -> Mapping[str, str]:
        """What the writer wrote beside the commit."""
        data = self._reader.getIndexCommit().getUserData()
        return {str(entry.getKey()): str(entry.getValue()) for entry in data.entrySet()}

    def updates(self) -> set[int]:
        """The updates that the folder holds commits of now, newer and older ones too."""
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
        deadline: Deadline | None = None,
    ) -> Matches:
        """Matches ``start`` to ``end`` by score, equal ones and unscored ones by ordinal.

        ``counting`` scores boost x frequency (Eq. 1) instead of BM25. One call to Java.
        """
        data = bytes(
            self._page(query, start, end, scored, counting, with_text, left_nanoseconds(deadline))
        )
        head, texts = _split(data)
        with self._decoding():
            count, exact, before_end, scores, records = orjson.loads(head)
            return Matches(decode_records(records, texts), scores, count, bool(exact), before_end)

    def top(self, query: str, n: int, *, scored: bool, deadline: Deadline | None = None) -> Top:
        """The first ``n`` matches (1 or more), in the order of ``page``."""
        count, exact, *flat = _numbers(self._top(query, n, scored, left_nanoseconds(deadline)))
        scores = _floats(flat[1::3])
        found = list(map(Found, flat[0::3], scores, flat[2::3]))
        return Top(found, count, bool(exact))

    def after(self, query: str, place: Place, n: int) -> tuple[list[int], Place]:
        """The ``n`` matches that follow a place in order of ordinal, and the place they end at.

        Fewer than ``n`` matches are the last.
        """
        flat = self._after(query, place, n)
        return flat[0::2], Place(*flat[-2:]) if flat else place

    def ordinals_after(self, query: str, place: Place, n: int) -> tuple[list[int], Place]:
        """As ``after``, but the ordinals of the matches."""
        flat = self._after(query, place, n)
        return flat[1::2], Place(*flat[-2:]) if flat else place

    def _after(self, query: str, place: Place, n: int) -> list[int]:
        """Of each match its document and its ordinal."""
        return _numbers(self._searcher.after(query, place.document, place.ordinal, n))

    def before(self, query: str) -> list[int]:
        """The match with the greatest ordinal, if there is one."""
        document = int(self._searcher.last(query))
        return [] if document < 0 else [document]

    def counts(self, queries: Sequence[str], deadline: Deadline | None = None) -> list[int]:
        """How many documents match each, at most MAX_TOTAL + 1; stops counting there."""
        nanoseconds = left_nanoseconds(deadline)
        return _numbers(self._searcher.counts("".join(queries), len(queries), nanoseconds))

    def count(self, query: str, deadline: Deadline | None) -> int:
        """How many documents match, however many there are."""
        return int(self._searcher.countAll(query, left_nanoseconds(deadline)))

    def read(self, documents: Sequence[int], *, with_text: bool) -> list[Record]:
        """What documents hold."""
        data = bytes(self._searcher.read(java_array("long", documents), with_text))
        head, texts = _split(data)
        with self._decoding():
            return decode_records(orjson.loads(head), texts)

    @contextmanager
    def _decoding(self) -> Generator[None]:
        """Turn what decoding raises into IndexDamagedError: Lucene compares checksums on opening
        only where that takes no reading."""
        try:
            yield
        except (ValueError, LookupError, TypeError) as error:
            raise IndexDamagedError(
                f"What is stored of a passage cannot be read ({error}).",
                where=self._where,
                do=f"Look with: arag-search info {self._where} --checksums. {REBUILD}",
            ) from error

    def statistics(self) -> PartStatistics:
        """Documents, segments and files. Files of other commits are not counted, nor those that a
        newer one has removed meanwhile."""
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
        """Read every file and compare checksums; takes as long as reading takes.

        Raises IndexDamagedError.
        """
        try:
            for leaf in self._reader.leaves():
                leaf.reader().checkIntegrity()
        except jvm.java_error() as error:
            raise IndexDamagedError(
                f"A file of the index is broken: {jvm.reason(error)}",
                where=self._where,
                do=REBUILD,
            ) from error

    def close(self) -> None:
        """Free memory maps and files. May be called again."""
        self._reader.close()
        self._close_directory()

    def _close_directory(self) -> None:
        if self._directory is not None:
            self._directory.close()


def _split(data: bytes) -> tuple[bytes, bytes | None]:
    """The line of JSON, and what follows it, if anything was asked for."""
    head, end, texts = data.partition(b"\n")
    return head, texts if end else None


def _numbers(longs: Any) -> list[int]:
    """The numbers of a Java array of long."""
    return array("q", bytes(memoryview(longs))).tolist()


def _commits(directory: Any) -> dict[int, Any]:
    """The newest commit of each update."""
    found: dict[int, Any] = {}
    for commit in java(f"{_INDEX}.DirectoryReader").listCommits(directory):
        update = commit.getUserData().get(UPDATE_KEY)
        if update is not None:
            found[int(str(update))] = commit
    return found


def _floats(bits: Sequence[int]) -> list[float]:
    """The 32-bit floats that have these bits."""
    n = len(bits)
    return list(struct.unpack(f"{n}f", struct.pack(f"{n}i", *bits)))


def _opening_error(error: Exception, folder: Path, where: str) -> Exception:
    if jvm.is_a(error, "IndexFormatTooNewException", "IndexFormatTooOldException"):
        return IndexVersionError(
            f"The index was written by another release of Lucene: {jvm.reason(error)}",
            where=where,
            allowed=f"what Lucene {jvm.LUCENE_VERSION} reads",
            do="Build it again with --overwrite, or use the release that wrote it.",
        )
    return IndexDamagedError(
        f"The {folder.name} of the index cannot be opened: {jvm.reason(error)}",
        where=where,
        do=REBUILD,
    )

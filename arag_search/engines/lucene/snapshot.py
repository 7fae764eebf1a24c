"""One Lucene index, open at one commit: what is found in it, by number of document.

Everything here is as of the commit that was opened; writers do not disturb it. Methods may be
called from several threads; who calls sees to it that none runs during or after ``close``.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from arag_search.engines.base import MAX_TOTAL
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.jvm import java, java_array
from arag_search.engines.lucene.schema import LAST_ORDINAL_KEY, ORDINAL, RECORD, TEXT, UPDATE_KEY
from arag_search.errors import EngineError, IndexDamagedError, IndexVersionError

_INDEX = "org.apache.lucene.index"
_SEARCH = "org.apache.lucene.search"

# doc=3 score=NaN shardIndex=-1 fields=[1.25, 4096], the first field absent where unscored.
_PRINTED_MATCH = re.compile(r"doc=(\d+) score=\S+ shardIndex=-?\d+ fields=\[(?:(\S+), )?(\d+)\]")
# doc=3 score=1.25 shardIndex=-1
_PRINTED_PLAIN_MATCH = re.compile(r"doc=(\d+) score=(\S+) shardIndex=-?\d+()(?=[,\]])")

REBUILD = "Build the index again with --overwrite."


class Found(NamedTuple):
    """One match: its number in this snapshot, its score (0.0 where unscored), its ordinal (-1 where
    it was not asked for)."""

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
        self._searcher = java(f"{_SEARCH}.IndexSearcher")(self._reader)
        self._counting: Any = None
        self._max_documents = int(self._reader.maxDoc())
        self._top_manager = java(f"{_SEARCH}.TopFieldCollectorManager")
        self._plain_manager = java(f"{_SEARCH}.TopScoreDocCollectorManager")
        self._in_order = LAST_ORDINAL_KEY in self.user_data()
        self._sorts = _sorts()
        self._record_column = java(f"{_INDEX}.MultiDocValues").getBinaryValues
        self._printed = java("java.util.Arrays").toString
        self._text_only = java("java.util.Collections").singleton(TEXT)

    @property
    def max_documents(self) -> int:
        """How many documents there are at most (deleted ones count)."""
        return self._max_documents

    def user_data(self) -> Mapping[str, str]:
        """What the writer wrote beside the commit."""
        data = self._reader.getIndexCommit().getUserData()
        return {str(entry.getKey()): str(entry.getValue()) for entry in data.entrySet()}

    def updates(self) -> set[int]:
        """The updates that the folder holds commits of now, newer and older ones too."""
        return set(_commits(self._directory))

    def use_bm25(self, k1: float, b: float) -> None:
        """Score with these parameters from now on."""
        similarity = java(f"{_SEARCH}.similarities.BM25Similarity")(float(k1), float(b))
        self._searcher.setSimilarity(similarity)

    def top(
        self,
        query: Any,
        n: int,
        *,
        scored: bool,
        counting: bool = False,
        with_ordinals: bool = True,
    ) -> Top:
        """The first ``n`` matches (1 or more) by score, equal ones and unscored ones by ordinal.

        ``counting`` scores boost x frequency (Eq. 1) instead of BM25. Without ordinals a scored
        search takes three quarters of the time where documents lie in order of ordinal: equal
        scores then come in that order by themselves.
        """
        searcher = self._counting_searcher() if counting else self._searcher
        n = min(n, max(1, self._max_documents))
        if scored and self._in_order and not with_ordinals:
            top = searcher.search(query, self._plain_manager(n, None, MAX_TOTAL))
            found = _found(top.scoreDocs, self._printed, _PRINTED_PLAIN_MATCH)
        else:
            sort = self._sorts.by_score if scored else self._sorts.by_ordinal
            top = searcher.search(query, self._top_manager(sort, n, None, MAX_TOTAL))
            found = _found(top.scoreDocs, self._printed, _PRINTED_MATCH)
        total = top.totalHits
        count = int(total.value())
        exact = count <= MAX_TOTAL or total.relation() == self._sorts.exactly
        return Top(found, count, exact)

    def after(self, query: Any, place: Any, n: int) -> tuple[list[int], Any]:
        """The ``n`` matches that follow a place in order of ordinal, and the place they end at.

        The place None is the start. Fewer than ``n`` matches are the last.
        """
        manager = self._top_manager(self._sorts.by_ordinal, n, place, n)
        found = list(self._searcher.search(query, manager).scoreDocs)
        return [int(each.doc) for each in found], found[-1] if found else None

    def before(self, query: Any) -> list[int]:
        """The match with the greatest ordinal, if there is one."""
        manager = self._top_manager(self._sorts.by_ordinal_down, 1, None, 1)
        return [int(each.doc) for each in self._searcher.search(query, manager).scoreDocs]

    def count(self, query: Any) -> int:
        """How many documents match, at most MAX_TOTAL + 1; stops counting there."""
        manager = self._top_manager(self._sorts.any_order, 1, None, MAX_TOTAL)
        found = int(self._searcher.search(query, manager).totalHits.value())
        return min(found, MAX_TOTAL + 1)

    def records(self, documents: Sequence[int]) -> list[str]:
        """The record of each document."""
        values, records = self._record_column(self._reader, RECORD), dict[int, str]()
        for each in sorted(set(documents)):  # a column is read forwards only
            values.advanceExact(each)
            records[each] = str(values.binaryValue().utf8ToString())
        return [records[each] for each in documents]

    def texts(self, documents: Iterable[int]) -> list[str]:
        """The text of each document."""
        stored, wanted = self._searcher.storedFields(), self._text_only
        return [str(stored.document(each, wanted).get(TEXT)) for each in documents]

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

    def _counting_searcher(self) -> Any:
        if self._counting is None:
            # Two threads may make one each; they are alike, and one of them stays.
            searcher = java(f"{_SEARCH}.IndexSearcher")(self._reader)
            searcher.setSimilarity(java(f"{_SEARCH}.similarities.RawTFSimilarity")())
            self._counting = searcher
        return self._counting


def _commits(directory: Any) -> dict[int, Any]:
    """The newest commit of each update."""
    found: dict[int, Any] = {}
    for commit in java(f"{_INDEX}.DirectoryReader").listCommits(directory):
        update = commit.getUserData().get(UPDATE_KEY)
        if update is not None:
            found[int(str(update))] = commit
    return found


@dataclass(frozen=True, slots=True)
class _Sorts:
    by_score: Any
    by_ordinal: Any
    by_ordinal_down: Any
    any_order: Any
    exactly: Any


def _sorts() -> _Sorts:
    sort, field = java(f"{_SEARCH}.Sort"), java(f"{_SEARCH}.SortField")
    long = java(f"{_SEARCH}.SortField$Type").LONG

    def by(*fields: Any) -> Any:
        return sort(java_array(f"{_SEARCH}.SortField", fields))

    ordinal = field(ORDINAL, long)
    return _Sorts(
        by_score=by(field.FIELD_SCORE, ordinal),
        by_ordinal=by(ordinal),
        by_ordinal_down=by(field(ORDINAL, long, True)),
        any_order=by(field.FIELD_DOC),
        exactly=java(f"{_SEARCH}.TotalHits$Relation").EQUAL_TO,
    )


def _found(score_docs: Any, printed: Any, form: re.Pattern[str]) -> list[Found]:
    """The documents, scores and ordinals that the matches of a search hold.

    They are read from the text that Java prints of them all at once, which takes a fifth of the
    time of asking each for its parts. Java prints a float in as many digits as tell it from its
    neighbours; as a 32-bit float it is the same again.
    """
    rows = form.findall(str(printed(score_docs)))
    if len(rows) != len(score_docs):
        raise EngineError(
            "Lucene prints its matches in another way than expected.",
            where=str(score_docs[0]),
            allowed=f"Lucene {jvm.LUCENE_VERSION}",
            do=f"Unset {jvm.CLASSPATH_VARIABLE}.",
        )
    scores = array("f", [float(score or 0) for _, score, _ in rows])
    return [
        Found(int(document), score, int(ordinal or -1))
        for (document, _, ordinal), score in zip(rows, scores, strict=True)
    ]


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

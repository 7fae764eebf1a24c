"""The seam between queries and the engines that execute them.

An engine takes plans and returns hits; it never sees query text. All engines return the same hits
in the same order with the same scores. These are BM25 in float32 as Lucene computes it; equal
scores are in corpus order (by ordinal).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from arag_search.corpus import Chunk, nfc
from arag_search.engines.hits import Hit, LeafScore
from arag_search.errors import (
    ArgumentError,
    IndexClosedError,
    IndexProblemError,
    NotServedError,
    QueryTimeoutError,
)
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, float32
from arag_search.system.value_class import value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ordinals: TypeAlias = "NDArray[np.int64]"
"""The ordinals of chunks, ascending, each once."""
Mask: TypeAlias = "NDArray[np.bool_]"

Granularity = Literal["chunk", "sentence"]
Matching = Literal["token", "substring"]

REBUILD = "Build the index again with `overwrite=True`."
"""What to do about a damaged index."""

MAX_TOTAL = 1000
"""Totals and counts are exact up to this number; beyond it, they say "more than 1,000"."""

MAX_LISTED_ORDINALS = 60_000
"""The most chunks in a scope that a search by vectors lists from a server. If there are more, it
asks about the nearest."""


@dataclass(frozen=True, slots=True)
class SortBy:
    """A metadata field that orders matches; equal values are in order of score, then of the corpus.

    A chunk with several values counts with the least in ascending order, with the greatest in
    descending order. A chunk without a value comes last in both. Keywords are in order of code
    points.
    """

    field: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.field}:{'desc' if self.descending else 'asc'}"


@value
class SearchRequest:
    """A logical search. ``offset`` and ``top_k`` count chunks at either granularity.

    ``with_text`` False leaves ``Hit.content`` empty, which is cheaper if no text is shown. At
    sentence granularity, ``whole_text`` False returns sentences that do not match as empty: a
    cluster then answers in one request. A search that reaches its ``deadline`` is stopped and
    raises QueryTimeoutError.

    ``sort`` orders the chunks by a field instead of by score. ``per_document`` keeps only so many
    chunks of each document, the first in this order. ``offset`` and ``top_k`` count the chunks that
    are left; the total of the page counts all matches.

    ``only_alike`` is for a query that is a fuzzy word: only the words that it stands for need be
    read from each text.

    ``from_ordinal`` lists the matches in corpus order instead, from this ordinal of a chunk on, and
    the page counts these; it excludes ``sort`` and ``per_document``.
    """

    query: ResolvedPlan
    top_k: int = 5
    offset: int = 0
    granularity: Granularity = "chunk"
    scope: ResolvedPlan | None = None
    with_text: bool = True
    whole_text: bool = True
    deadline: Deadline | None = field(default=None, compare=False)
    sort: SortBy | None = None
    per_document: int | None = None
    from_ordinal: int | None = None
    only_alike: bool = False


@dataclass(frozen=True, slots=True)
class KeywordRequest:
    """A-RAG's keyword search: score = sum over keywords of count x length in code points (Eq. 1).

    ``token`` counts occurrences of the keyword's tokens in title and content, in both apostrophe
    spellings and including overlaps. A keyword without a token has no occurrences. ``substring``
    scans title and content for the lower-cased text, without overlaps, as the reference
    implementation of the paper does.
    """

    keywords: tuple[str, ...]
    top_k: int = 5
    offset: int = 0
    matching: Matching = "token"
    scope: ResolvedPlan | None = None
    with_text: bool = True
    deadline: Deadline | None = field(default=None, compare=False)


class Count(NamedTuple):
    """The number of all matches of a search: of chunks, at sentence granularity of sentences.

    - ``is_exact``: whether it is the number. False: it is a lower bound above MAX_TOTAL.
    - ``is_common``: whether every engine has this number.
    """

    number: int
    is_exact: bool = True
    is_common: bool = False

    @property
    def told(self) -> tuple[int, bool]:
        """The total that a result tells on every engine: the number and True, or MAX_TOTAL and
        False, which mean "more than 1,000"."""
        is_known = self.is_common or self.number <= MAX_TOTAL
        return (self.number if is_known else MAX_TOTAL), is_known


@value
class Page:
    """Hits ``offset`` to ``offset + top_k`` in order, and how many there are in all.

    ``passages``: the exact number of chunks that can be paged through. None: the page does not
    reach past the last of them.
    """

    hits: tuple[Hit, ...]
    total: Count
    passages: int | None = None

    def with_total(self, number: int) -> Page:
        """Return the same page with a number of matches that every engine has."""
        return Page(self.hits, Count(number, is_common=True), self.passages)


@dataclass(frozen=True, slots=True)
class FieldsRequest:
    """A request for the values of fields, over all chunks, or sentences, in scope.

    ``fields`` are text fields, ``doc_id`` or declared metadata. For a keyword field, the ``values``
    most frequent values are returned. ``quick`` limits the work on a cluster to one round trip. At
    most the MAX_QUICK_VALUES most frequent values are then returned. The number of distinct values
    may be unknown, and so may the count of a value.
    """

    fields: tuple[str, ...]
    values: int = 10
    scope: ResolvedPlan | None = None
    quick: bool = False
    deadline: Deadline | None = field(default=None, compare=False)
    granularity: Granularity = "chunk"


MAX_QUICK_VALUES = 1_000


class ValueCount(NamedTuple):
    """A value of a keyword field, and the number of chunks that have it; None if unknown."""

    value: str
    chunks: int | None


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of a field in the chunks of a scope.

    - ``chunks``: the number of chunks with a value; in a text field, with a word.
    - ``distinct``: the number of all values of a keyword field. None: unknown.
    - ``frequent``: its most frequent values, equal counts in order of code points.
    - ``least``, ``greatest``: the ends of a number or, in milliseconds since 1970, of a date. None:
      no chunk has a value.
    """

    name: str
    chunks: int
    distinct: int | None = None
    frequent: tuple[ValueCount, ...] = ()
    least: float | None = None
    greatest: float | None = None


@dataclass(frozen=True, slots=True)
class FieldsPage:
    """The values of fields, in the order of the request. ``chunks`` is the size of the scope."""

    chunks: int
    fields: tuple[FieldValues, ...]


Neighbours = tuple[str | None, str | None]


class SearchEngine(Protocol):
    """An executor of plans over one index. Thread-safe until it is closed.

    ``is_remote`` says that a call takes a round trip, so that what may be needed is asked at once.
    """

    is_remote: ClassVar[bool]

    withheld: str
    """Why searches ``only_alike`` get empty pages, as a sentence; empty if they do not."""

    @property
    def manifest(self) -> Manifest: ...

    def search(self, request: SearchRequest) -> Page:
        """Return the page of a logical search.

        Raises NotServedError for a granularity that the index leaves out, and QueryTimeoutError.
        """
        ...

    def keyword_search(self, request: KeywordRequest) -> Page:
        """Return the page of a keyword search: best score first, equal scores in corpus order."""
        ...

    def counts(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> list[int]:
        """Count the matches (chunks or sentences) of each query: all of them if ``exact``,
        otherwise up to MAX_TOTAL + 1.

        All queries share one round trip. Raises QueryTimeoutError.
        """
        ...

    def counts_and_pages(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        requests: Sequence[SearchRequest],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> tuple[list[int], list[Page]]:
        """Return what ``counts`` returns, and the pages of searches of chunks.

        All share one round trip. A page is as ``search`` returns it, except that its count may stop
        at MAX_TOTAL for a single clause too. The requests have no ``per_document``. Raises
        QueryTimeoutError.
        """
        ...

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        """Count chunks by the values of fields, exactly. Raises QueryTimeoutError."""
        ...

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """Return, for each chunk id, the contributions of the positive text leaves in leaf order.

        At sentence granularity they come from the chunk's best sentence.
        """
        ...

    def read(self, ids: Sequence[str], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """Return the chunks with these ids; None for an id that is unknown or out of scope."""
        ...

    def neighbours(self, chunks: Sequence[Chunk], scope: ResolvedPlan | None) -> list[Neighbours]:
        """Return the ids of the previous and the next chunk of each, in its document. If the corpus
        was pre-chunked, corpus order counts instead."""
        ...

    def chunks_at(self, ordinals: Sequence[int], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """Return the chunks with these ordinals, in this order; None for an ordinal that is
        unknown or out of scope."""
        ...

    def ordinals(
        self,
        scope: ResolvedPlan | None = None,
        deadline: Deadline | None = None,
        granularity: Granularity = "chunk",
    ) -> Iterator[int]:
        """Iterate over the ordinals of all chunks, or sentences, in scope, ascending.

        Raises QueryTimeoutError.
        """
        ...

    def among(
        self, ordinals: Ordinals, scope: ResolvedPlan, deadline: Deadline | None = None
    ) -> Mask:
        """Return, for each of the chunks with these ordinals, whether the index has it in the
        scope. Raises QueryTimeoutError."""
        ...

    def known(self, field: str, values: Sequence[str]) -> Sequence[str]:
        """Return which terms of a text field of the index, or of NAMES, some passage may have,
        whatever its scope. If a look-up costs as much as a search, return all."""
        ...

    def deletions(self) -> Deletions:
        """Return the deleted documents that the index still holds and that scores count."""
        ...

    def scan(self, scope: ResolvedPlan | None, deadline: Deadline | None = None) -> Iterator[Chunk]:
        """Iterate over all chunks in scope in corpus order. A server stops at the deadline."""
        ...

    def check_ready(self) -> None:
        """Raise an AragError if the index cannot be searched now, after 4 s at most."""
        ...

    def close(self) -> None:
        """Wait for calls in flight, then release all resources. Later calls raise
        IndexClosedError."""
        ...


def no_sentences(where: str = "") -> NotServedError:
    """Return the error for a search of sentences that the index leaves out."""
    allowed, do = "granularity chunk", "Build it again with sentences."
    return NotServedError("The index has no sentences.", where=where, allowed=allowed, do=do)


# The time limit of one query, in any engine


DEFAULT_SEARCH_TIMEOUT_S = 10.0


class Deadline:
    """A point in time, ``until`` of the monotonic clock: ``timeout_s`` seconds after creation."""

    __slots__ = ("timeout_s", "until")

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.until = time.monotonic() + timeout_s

    @staticmethod
    def after(timeout_s: float | None) -> Deadline | None:
        """Return the deadline of a query that begins now; None for a query without a limit."""
        return None if timeout_s is None else Deadline(timeout_s)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline. Raises QueryTimeoutError once it has passed."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise self.exceeded()
        return left

    def check(self) -> None:
        """Raise QueryTimeoutError if the deadline has passed."""
        if time.monotonic() >= self.until:
            raise self.exceeded()

    def exceeded(self) -> QueryTimeoutError:
        """Return the error for a query that took longer."""
        return QueryTimeoutError(
            f"The query took longer than {self.timeout_s:g} s and was stopped.",
            allowed=f"{self.timeout_s:g} s for a query (`search_timeout_s`)",
        )


def left_nanoseconds(deadline: Deadline | None) -> int:
    """Return the time until a deadline; 0 for None. Raises QueryTimeoutError if it has passed."""
    return 0 if deadline is None else max(1, int(deadline.left_s * 1e9))


def check_search_timeout(timeout_s: float | None) -> None:
    """Raise ArgumentError for an invalid time limit."""
    if timeout_s is not None and not 0 < timeout_s < 1e6:
        raise ArgumentError(
            f"The time limit of a search is {timeout_s:g} s.",
            allowed="more than 0 s, below 1,000,000 s",
            do="None, or 0 on the command line, means no limit.",
        )


# Deleted documents that an index still holds: BM25 counts them until they are merged away


MAX_DELETED_SHARE = 0.05
"""Above this share, ``arag-search info`` recommends to compact."""


class DocumentCounts(Protocol):
    """The counts of one of the two indexes that an engine searches."""

    @property
    def documents(self) -> int: ...

    @property
    def deleted(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deleted documents that statistics still count: how many there are, and their share of the
    chunks or of the sentences, whichever is greater."""

    documents: int
    share: float


def deletions_of(*parts: DocumentCounts | None) -> Deletions:
    """Return the deletions of several indexes together; None is an index that was left out."""
    counts = [part for part in parts if part is not None]
    shares = [part.deleted / max(1, part.documents + part.deleted) for part in counts]
    return Deletions(sum(part.deleted for part in counts), max(shares, default=0.0))


def check_compact(deletions: Deletions, where: str) -> None:
    """Raise IndexProblemError if deleted documents change the scores.

    Comparisons and measurements call this.
    """
    if deletions.documents:
        raise IndexProblemError(
            f"{deletions.share:.1%} of the index are deleted documents, which change its scores.",
            where=where,
            allowed="an index without deleted documents",
            do=f"Run: arag-search compact {where}",
        )


# Keyword search by substrings: a scan, as in the reference implementation of the paper


def substring_page(chunks: Iterable[Chunk], request: KeywordRequest) -> Page:
    """Return the chunks in scope that are best by occurrences of the lower-cased keywords.

    Raises QueryTimeoutError.
    """
    wanted = [(word.lower(), len(word)) for word in map(nfc, request.keywords) if word]
    count = 0

    def scored() -> Iterator[tuple[float, Chunk]]:
        nonlocal count
        for chunk in chunks:
            if request.deadline is not None:
                request.deadline.check()
            title, content = chunk.title.lower(), chunk.content.lower()
            score = sum((title.count(w) + content.count(w)) * size for w, size in wanted)
            if score:
                count += 1
                yield float32(score), chunk

    end = request.offset + request.top_k
    best = nsmallest(end, scored(), key=lambda pair: (-pair[0], pair[1].ordinal))
    hits = (Hit.of(chunk, score, text=request.with_text) for score, chunk in best[request.offset :])
    return Page(tuple(hits), Count(count), count if end > count else None)


# The calls in flight of an engine that threads share, so that ``close`` waits for them


class Calls:
    """A context manager around every call of an engine over the index ``where``."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._in_flight = 0
        self._closed = False
        self._pid = os.getpid()

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked from the process that opened the engine."""
        return os.getpid() != self._pid

    def __enter__(self) -> None:
        """Count a call as in flight. Raises IndexClosedError after ``close``."""
        with self._lock:
            if self._closed:
                raise IndexClosedError(
                    f"The index {self.where} is closed.", do="Open it again with open_index."
                )
            self._in_flight += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._in_flight -= 1
            if self._closed:
                self._changed.notify_all()

    def close(self) -> bool:
        """Reject further calls and wait for those in flight. Return True to the first caller.

        In a forked process, return False at once: what to free and wait for is its parent's.
        """
        if self.is_inherited:
            self._closed = True
            return False
        with self._changed:
            first = not self._closed
            self._closed = True
            self._changed.wait_for(lambda: self._in_flight == 0)
            return first

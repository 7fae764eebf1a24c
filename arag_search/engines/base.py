"""The seam between queries and what executes them.

An engine takes trees and gives hits; it never sees query text. All engines give the same hits in
the same order with the same scores: BM25 in float32 as Lucene computes it, equal scores in corpus
order (by ordinal).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol

from arag_search.corpus import Chunk, MetadataValue, split_at
from arag_search.engines.deadline import Deadline
from arag_search.engines.deletions import Deletions
from arag_search.manifest import Manifest
from arag_search.query.tree import And, Node, Or, Scope, TextLeaf

Granularity = Literal["chunk", "sentence"]
Matching = Literal["token", "substring"]

MAX_TOTAL = 1000
"""Totals and counts are exact up to here; beyond, they say "more than 1,000"."""


def is_counted(query: Node) -> bool:
    """Whether the matches of a query are counted exactly, however many: of one clause that an
    engine need not look into documents for, which all but phrases are."""
    if isinstance(query, TextLeaf):
        return all(len(words) == 1 for words in query.spellings)
    return not isinstance(query, And | Or)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A logical search. ``offset`` and ``top_k`` count chunks at either granularity.

    ``with_text`` False leaves ``Hit.content`` None, which is cheaper where no text is shown.
    ``whole_text`` False leaves empty, at sentence granularity, the sentences that do not match: a
    cluster then answers in one request. Where the execution goes on until the ``deadline``, it is
    stopped and QueryTimeoutError raised.
    """

    query: Node
    top_k: int = 5
    offset: int = 0
    granularity: Granularity = "chunk"
    scope: Scope | None = None
    with_text: bool = True
    whole_text: bool = True
    deadline: Deadline | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KeywordRequest:
    """A-RAG's keyword search: score = sum over keywords of count x length in code points (Eq. 1).

    ``token`` counts occurrences of the keyword's tokens in title and content, in each of the two
    apostrophe spellings, overlapping ones too; a keyword without a token counts nowhere.
    ``substring`` scans title and content for the lower-cased text, without overlaps, as the
    paper's reference does.
    """

    keywords: tuple[str, ...]
    top_k: int = 5
    offset: int = 0
    matching: Matching = "token"
    scope: Scope | None = None
    with_text: bool = True
    deadline: Deadline | None = field(default=None, compare=False)


class Hit(NamedTuple):
    """One chunk that was found. ``matched_sentences`` (0-based numbers within the chunk, growing)
    are given at sentence granularity only. ``content`` is None and ``sentence_ends`` empty where
    the request asked for no text; where it asked for less than the whole text, ``content`` is the
    matched sentences, and all others end where they begin.
    """

    id: str
    doc_id: str
    title: str
    part: int
    parts: int
    ordinal: int
    metadata: Mapping[str, MetadataValue]
    score: float
    content: str | None = None
    sentence_ends: tuple[int, ...] = ()
    matched_sentences: tuple[int, ...] = ()

    def with_matched_text(self) -> Hit:
        """The same with the text of the matched sentences alone."""
        if self.content is None:
            return self
        texts = split_at(self.content, self.sentence_ends)
        matched = {number: texts[number] for number in self.matched_sentences}
        content, ends = only_matched(matched, len(texts))
        return self._replace(content=content, sentence_ends=ends)


def only_matched(texts: Mapping[int, str], sentences: int) -> tuple[str, tuple[int, ...]]:
    """Content and sentence ends of a chunk of so many sentences that has the text of these only,
    given by number."""
    ends: list[int] = []
    end = 0
    for number in range(sentences):
        end += len(texts.get(number, ""))
        ends.append(end)
    return "".join(texts[number] for number in sorted(texts)), tuple(ends)


@dataclass(frozen=True, slots=True)
class Page:
    """Hits ``offset`` to ``offset + top_k`` in order, and how many there are.

    ``count`` is of chunks, at sentence granularity of sentences; where ``count_is_exact`` is False
    it is a lower bound above MAX_TOTAL. ``counted`` says that the count is exact because the query
    is one clause (see ``is_counted``), on whichever engine. ``passages`` is the exact number of
    matching chunks where the page reached past their end, else None.
    """

    hits: tuple[Hit, ...]
    count: int
    count_is_exact: bool
    passages: int | None = None
    counted: bool = False

    @property
    def total(self) -> int:
        """The count, at most MAX_TOTAL unless it is counted."""
        return self.count if self.counted else min(self.count, MAX_TOTAL)

    @property
    def total_is_exact(self) -> bool:
        """False means "more than 1,000"."""
        return self.counted or (self.count_is_exact and self.count <= MAX_TOTAL)

    def with_count(self, count: int) -> Page:
        """The same with an exact count, which only says more where it is above MAX_TOTAL."""
        counted = count > MAX_TOTAL
        return replace(self, count=count, count_is_exact=True, counted=counted)

    def with_matched_text(self) -> Page:
        """The same, its hits with the text of their matched sentences alone."""
        return replace(self, hits=tuple(hit.with_matched_text() for hit in self.hits))


@dataclass(frozen=True, slots=True)
class LeafScore:
    """What one leaf of a query adds to one hit, by field: BM25 (or weight, for a prefix).

    ``scores`` maps "title" and "content" to the score there, absent where it does not match. The
    leaf counts with the greater of them.
    """

    leaf: str
    scores: Mapping[str, float]


class SearchEngine(Protocol):
    """What executes trees over one index. Safe to use from several threads until closed."""

    @property
    def manifest(self) -> Manifest: ...

    def search(self, request: SearchRequest) -> Page:
        """The page of a logical search. Raises NotServedError for a granularity left out, and
        QueryTimeoutError."""
        ...

    def keyword_search(self, request: KeywordRequest) -> Page:
        """The page of a keyword search, best score first, equal scores in corpus order."""
        ...

    def counts(
        self,
        queries: Sequence[tuple[Node, Granularity]],
        scope: Scope | None,
        deadline: Deadline | None = None,
    ) -> list[int]:
        """For each query its matches (chunks or sentences), MAX_TOTAL + 1 for any more. One
        round trip for all of them. Raises QueryTimeoutError."""
        ...

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """For each chunk id what each positive text leaf adds, in leaf order.

        At sentence granularity for the best sentence of the chunk.
        """
        ...

    def read(self, ids: Sequence[str], scope: Scope | None) -> list[Chunk | None]:
        """The chunks with these ids; None for one that is not there or not in scope."""
        ...

    def neighbours(self, chunk: Chunk, scope: Scope | None) -> tuple[str | None, str | None]:
        """Ids of the previous and the next chunk: of the document, or in corpus order where the
        corpus came already chunked."""
        ...

    def chunks_at(self, ordinals: Sequence[int], scope: Scope | None) -> list[Chunk | None]:
        """The chunks with these ordinals, in the order asked; None for one that is not there or
        not in scope."""
        ...

    def ordinals(self) -> Iterator[int]:
        """The ordinals of all chunks, growing, streamed."""
        ...

    def deletions(self) -> Deletions:
        """The deleted documents that the index still holds, and its scores count."""
        ...

    def scan(self, scope: Scope | None) -> Iterator[Chunk]:
        """All chunks in corpus order, streamed."""
        ...

    def close(self) -> None:
        """Wait for calls in flight, then free what is held. Calls after it raise
        IndexClosedError."""
        ...

"""LuceneEngine: the SearchEngine over one generation of an index in a local folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from arag_search.corpus import MAX_SENTENCES, SENTENCE_BITS, Chunk, chunk_ordinal
from arag_search.engines.base import (
    REBUILD,
    Calls,
    Count,
    Deadline,
    Deletions,
    FieldsPage,
    FieldsRequest,
    Granularity,
    KeywordRequest,
    Mask,
    Neighbours,
    Ordinals,
    Page,
    SearchRequest,
    deletions_of,
    no_sentences,
    substring_page,
)
from arag_search.engines.hits import Hit, LeafScore
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.compile import (
    LAST_ORDINAL,
    any_query,
    between,
    chunk_ids,
    compiled,
    document_ids,
    filtered,
    keywords_query,
    ordinals,
)
from arag_search.engines.lucene.snapshot import (
    Documents,
    Match,
    PartStatistics,
    Position,
    Snapshot,
    Top,
    fields_page,
    fields_text,
    open_pair,
    sort_text,
)
from arag_search.engines.stored import NAME
from arag_search.errors import (
    EngineError,
    IndexDamagedError,
    QueryTimeoutError,
    UnknownChunkError,
)
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, scored_leaves
from arag_search.query.fields import NAMES

_SCAN_BATCH = 256
_ORDINALS_BATCH = 65_536
_FIRST_SENTENCES = 16
"""The least number of sentences that are fetched to find their chunks."""


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The Lucene indexes of a generation on disk; ``sentences`` is None if they were left out."""

    chunks: PartStatistics
    sentences: PartStatistics | None


class LuceneEngine:
    """See SearchEngine. Threads may share it; ``close`` waits for their calls."""

    is_remote: ClassVar[bool] = False
    withheld = ""

    def __init__(
        self, chunks: Snapshot, sentences: Snapshot | None, manifest: Manifest, where: str
    ) -> None:
        """Use ``LuceneEngine.open``."""
        self._chunks = chunks
        self._sentences = sentences
        self._manifest = manifest
        self._calls = _Calls(where)
        self._last_scope: tuple[ResolvedPlan, str] | None = None
        self._documents: tuple[Ordinals, Documents | None] | None = None

    @staticmethod
    def open(generation: Path, where: str) -> LuceneEngine:
        """Open the newest update in a generation's folder; ``where`` names the index in errors.

        Raises IndexDamagedError if files are missing or do not belong together, IndexVersionError
        for another format, JvmError if Java cannot be started.
        """
        chunks, sentences, manifest = open_pair(generation, where)
        return LuceneEngine(chunks, sentences, manifest, where)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the index."""
        return self._manifest

    def search(self, request: SearchRequest) -> Page:
        with self._calls:
            query, scored = compiled(request.query.root)
            if request.scope is not None:
                query = filtered(query, self._scope(request.scope))
            if request.from_ordinal is not None:
                query, scored = filtered(query, between(request.from_ordinal, LAST_ORDINAL)), False
            sort = sort_text(request.sort, self._manifest.metadata)
            if request.per_document is not None:
                page = self._search_per_document(request, query, scored, sort)
            elif request.granularity == "sentence":
                page = self._search_sentences(request, query, scored, sort)
            else:
                page = self._page(request, query, scored=scored, sort=sort)
            if not request.query.root.is_counted or request.from_ordinal is not None:
                return page
            if page.total.is_exact:
                return page.with_total(page.total.number)
            index = self._index(request.granularity)
            return page.with_total(index.count(query, request.deadline))

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine. Substring matching reads every chunk in scope."""
        with self._calls:
            if request.matching == "substring":
                return substring_page(
                    self._all(filtered(None, self._scope(request.scope))), request
                )
            query = keywords_query(request.keywords)
            if query is None:
                return Page((), Count(0), 0)
            query = filtered(query, self._scope(request.scope))
            return self._page(request, query, scored=True, counting=True)

    def counts(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> list[int]:
        with self._calls:
            within = self._scope(scope)
            counts: dict[Granularity, dict[str, int]] = {"chunk": {}, "sentence": {}}
            pairs: list[tuple[str, Granularity]] = [
                (filtered(compiled(plan.root)[0], within), unit) for plan, unit in queries
            ]
            for query, unit in pairs:
                counts[unit][query] = 0
            for unit, by_query in counts.items():
                if by_query:
                    numbers = self._index(unit).counts(list(by_query), deadline, exact)
                    by_query.update(zip(by_query, numbers, strict=True))
            return [counts[unit][query] for query, unit in pairs]

    def counts_and_pages(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        requests: Sequence[SearchRequest],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> tuple[list[int], list[Page]]:
        are_plain = bool(requests) and all(map(_is_plain, requests))
        if exact or not are_plain or any(unit != "chunk" for _, unit in queries):
            return self.counts(queries, scope, deadline, exact), list(map(self.search, requests))
        with self._calls:
            within = self._scope(scope)
            counted = [filtered(compiled(plan.root)[0], within) for plan, _ in queries]
            asked: list[tuple[str, bool]] = []
            for request in requests:
                query, scored = compiled(request.query.root)
                asked.append((filtered(query, self._scope(request.scope)), scored))
            distinct = list(dict.fromkeys(counted))
            numbers, pages = self._chunks.counts_and_pages(
                distinct,
                asked,
                [request.top_k for request in requests],
                [_alike(request) for request in requests],
                with_text=any(request.with_text for request in requests),
                deadline=deadline,
            )
            counts = dict(zip(distinct, numbers, strict=True))
            return [counts[query] for query in counted], pages

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        """See SearchEngine. One pass over the values of the fields, in one call to Java."""
        with self._calls:
            metadata = self._manifest.metadata
            query = self._scope(request.scope) or ""
            fields = fields_text(request, metadata)
            index = self._index(request.granularity)
            data = index.field_values(query, fields, request.values, request.deadline)
            return fields_page(data, request, metadata)

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """See SearchEngine. A leaf in a group that does not match adds nothing. Page and scope of
        the request are ignored. Raises UnknownChunkError for an unknown id."""
        with self._calls:
            explained = self._ordinals(ids)
            index = self._index(request.granularity)
            if request.granularity == "sentence":
                explained = self._best_sentences(request, explained)
            within = ordinals(sorted({ordinal for ordinal in explained.values() if ordinal >= 0}))
            leaves: list[tuple[str, list[tuple[str, dict[int, float]]]]] = []
            for text, queries in scored_leaves(request.query.root):
                by_field: list[tuple[str, dict[int, float]]] = []
                for leaf in queries:
                    conditions = (compiled(condition)[0] for condition in leaf.conditions)
                    query = filtered(compiled(leaf.clause)[0], within, *conditions)
                    top = index.top(query, max(1, len(ids)), scored=True, deadline=request.deadline)
                    scores = {match.ordinal: match.score for match in top.matches}
                    by_field.append((leaf.field, scores))
                leaves.append((text, by_field))
        return [
            [
                LeafScore(
                    text, {name: scores[ordinal] for name, scores in fields if ordinal in scores}
                )
                for text, fields in leaves
            ]
            for ordinal in map(explained.__getitem__, ids)
        ]

    def read(self, ids: Sequence[str], scope: ResolvedPlan | None) -> list[Chunk | None]:
        with self._calls:
            query = filtered(chunk_ids(ids), self._scope(scope))
            end = max(1, len(ids))
            page = self._chunks.page(query, 0, end, scored=False, with_text=True)
            chunks = {hit.id: _chunk(hit) for hit in page.hits}
        return [chunks.get(chunk_id) for chunk_id in ids]

    def neighbours(self, chunks: Sequence[Chunk], scope: ResolvedPlan | None) -> list[Neighbours]:
        """See SearchEngine. Neighbours that are out of scope are skipped."""
        with self._calls:
            within = self._scope(scope)
            return [self._neighbours(chunk, within) for chunk in chunks]

    def _neighbours(self, chunk: Chunk, within: str | None) -> Neighbours:
        same = None if self._manifest.already_chunked else document_ids([chunk.doc_id])
        previous = filtered(between(0, chunk.ordinal - 1), same, within)
        later = filtered(between(chunk.ordinal + 1, LAST_ORDINAL), same, within)
        before = self._chunks.before(previous)
        after = self._chunks.after(later, Position(), 1)[0]
        return self._first_id(before), self._first_id(after)

    def scan(self, scope: ResolvedPlan | None, deadline: Deadline | None = None) -> Iterator[Chunk]:
        """See SearchEngine. Reads 256 chunks at a time."""
        with self._calls:
            query = filtered(None, self._scope(scope))
        return self._scan(query)

    def chunks_at(self, ordinals: Sequence[int], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """See SearchEngine. One call to Java."""
        distinct = list(dict.fromkeys(ordinals))
        with self._calls:
            records = self._existing_at(distinct, True, self._scope(scope))
        chunks = {record.ordinal: _chunk(record) for record in records}
        return [chunks.get(ordinal) for ordinal in ordinals]

    def ordinals(
        self,
        scope: ResolvedPlan | None = None,
        deadline: Deadline | None = None,
        granularity: Granularity = "chunk",
    ) -> Iterator[int]:
        """See SearchEngine. Reads 65,536 at a time."""
        position = Position()
        with self._calls:
            query = filtered(None, self._scope(scope))
            snapshot = self._index(granularity)
        while True:
            if deadline is not None:
                deadline.check()
            with self._calls:
                batch, position = snapshot.ordinals_after(query, position, _ORDINALS_BATCH)
            yield from batch
            if len(batch) < _ORDINALS_BATCH:
                return

    def among(
        self, ordinals: Ordinals, scope: ResolvedPlan, deadline: Deadline | None = None
    ) -> Mask:
        """See SearchEngine. One call to Java, which answers with a bit for each document. The
        documents of the ordinals are looked up once for an array that is asked about again."""
        import numpy as np

        with self._calls:
            asked = self._documents
            if asked is None or asked[0] is not ordinals:
                asked = self._documents = ordinals, self._chunks.documents_of(ordinals)
            matching = self._chunks.matching(filtered(None, self._scope(scope)), deadline)
        documents = asked[1]
        return matching if documents is None else np.append(matching, False)[documents]

    def known(self, field: str, values: Sequence[str]) -> Sequence[str]:
        """See SearchEngine. One call to Java."""
        with self._calls:
            return self._chunks.known(NAME if field == NAMES else field, values)

    def statistics(self) -> IndexStatistics:
        """Count documents, segments and files on disk."""
        with self._calls:
            sentences = None if self._sentences is None else self._sentences.statistics()
            return IndexStatistics(self._chunks.statistics(), sentences)

    def deletions(self) -> Deletions:
        statistics = self.statistics()
        return deletions_of(statistics.chunks, statistics.sentences)

    def check_ready(self) -> None:
        """See SearchEngine. Until it is closed, an index on disk is ready."""
        with self._calls:
            pass

    def commit_data(self) -> Mapping[str, str]:
        """Return the data that the writer stored with the commit of the chunks."""
        with self._calls:
            return self._chunks.user_data()

    def verify(self) -> None:
        """Compare the checksums of all files. Raises IndexDamagedError."""
        with self._calls:
            self._chunks.verify()
            if self._sentences is not None:
                self._sentences.verify()

    def close(self) -> None:
        """See SearchEngine. May be called again."""
        if self._calls.close():
            self._chunks.close()
            if self._sentences is not None:
                self._sentences.close()

    # Parts of a search

    def _index(self, granularity: Granularity) -> Snapshot:
        if granularity == "chunk":
            return self._chunks
        if self._sentences is None:
            raise no_sentences()
        return self._sentences

    def _scope(self, scope: ResolvedPlan | None) -> str | None:
        """Return the filter of a scope. The last one is cached, since it is often the same."""
        if scope is None:
            return None
        last = self._last_scope
        if last is not None and last[0] is scope:
            return last[1]
        query = compiled(scope.root)[0]
        self._last_scope = (scope, query)
        return query

    def _page(
        self,
        request: SearchRequest | KeywordRequest,
        query: str,
        *,
        scored: bool,
        counting: bool = False,
        sort: str = "",
    ) -> Page:
        return self._chunks.page(
            query,
            request.offset,
            request.offset + request.top_k,
            scored=scored,
            counting=counting,
            with_text=request.with_text,
            sort=sort,
            deadline=request.deadline,
        )

    def _search_per_document(
        self, request: SearchRequest, query: str, scored: bool, sort: str
    ) -> Page:
        """Return a page of at most ``per_document`` chunks of a document. One pass over all matches
        for their places, then the contents of the page."""
        by_sentence = request.granularity == "sentence"
        index = self._index(request.granularity)
        end = request.offset + request.top_k
        top = index.top_per_document(
            query,
            end,
            request.per_document or 1,
            scored=scored,
            sort=sort,
            member_bits=SENTENCE_BITS if by_sentence else 0,
            deadline=request.deadline,
        )
        passages = len(top.matches) if len(top.matches) < end else None
        shown = top.matches[request.offset :]
        if by_sentence:
            best = {chunk_ordinal(match.ordinal): match.score for match in shown}
            matches = self._sentences_within(index, query, list(best), request.deadline)
            return self._sentence_page(request, best, matches, top, passages)
        documents = [match.document for match in shown]
        read = self._chunks.read(documents, with_text=request.with_text)
        hits = [hit._replace(score=match.score) for hit, match in zip(read, shown, strict=True)]
        return Page(tuple(hits), top.total, passages)

    def _search_sentences(
        self, request: SearchRequest, query: str, scored: bool, sort: str
    ) -> Page:
        index = self._index("sentence")
        end = request.offset + request.top_k
        fetch = max(_FIRST_SENTENCES, 3 * end)
        while True:
            top = index.top(query, fetch, scored=scored, sort=sort, deadline=request.deadline)
            best: dict[int, float] = {}
            for match in top.matches:
                best.setdefault(chunk_ordinal(match.ordinal), match.score)
            complete = len(top.matches) < fetch
            if complete or len(best) >= end:
                break
            fetch *= 4
        chosen = dict(list(best.items())[request.offset : end])
        matches = (
            top.matches
            if complete
            else self._sentences_within(index, query, list(chosen), request.deadline)
        )
        passages = len(best) if complete and len(best) < end else None
        return self._sentence_page(request, chosen, matches, top, passages)

    def _sentence_page(
        self,
        request: SearchRequest,
        best: Mapping[int, float],
        matches: Sequence[Match],
        top: Top,
        passages: int | None,
    ) -> Page:
        """Return the page of chunks, given by ordinal with the scores of their best sentences;
        ``matches`` are their matching sentences, and perhaps others."""
        matched: dict[int, tuple[int, ...]] = dict.fromkeys(best, ())
        for sentence in sorted(match.ordinal for match in matches):
            ordinal = chunk_ordinal(sentence)
            if ordinal in matched:
                matched[ordinal] = (*matched[ordinal], sentence - ordinal)
        hits = (
            hit._replace(score=best[hit.ordinal], matched_sentences=matched[hit.ordinal])
            for hit in self._hits_at(list(best), request.with_text)
        )
        if not request.whole_text:
            hits = map(Hit.with_matched_text, hits)
        return Page(tuple(hits), top.total, passages)

    def _sentences_within(
        self, index: Snapshot, query: str, chunks: Sequence[int], deadline: Deadline | None
    ) -> list[Match]:
        """Return all matches in the chunks with these ordinals."""
        if not chunks:
            return []
        ranges = any_query(between(ordinal, ordinal + MAX_SENTENCES - 1) for ordinal in chunks)
        most = MAX_SENTENCES * len(chunks)
        within = filtered(query, ranges)
        return index.top(within, most, scored=False, deadline=deadline).matches

    def _hits_at(self, wanted: Sequence[int], with_text: bool) -> list[Hit]:
        """Return the chunks with these ordinals, in this order."""
        hits = {hit.ordinal: hit for hit in self._existing_at(wanted, with_text)}
        if len(hits) < len(wanted):
            raise IndexDamagedError(
                "There are sentences of passages that do not exist.",
                where=self._calls.where,
                do=REBUILD,
            )
        return [hits[ordinal] for ordinal in wanted]

    def _existing_at(
        self, distinct: Sequence[int], with_text: bool, within: str | None = None
    ) -> tuple[Hit, ...]:
        """Return the chunks that exist at distinct ordinals, in ascending order."""
        if not distinct:
            return ()
        query = filtered(ordinals(distinct), within)
        return self._chunks.page(query, 0, len(distinct), scored=False, with_text=with_text).hits

    # Explaining

    def _ordinals(self, ids: Sequence[str]) -> dict[str, int]:
        end = max(1, len(ids))
        page = self._chunks.page(chunk_ids(ids), 0, end, scored=False, with_text=False)
        by_id = {hit.id: hit.ordinal for hit in page.hits}
        for chunk_id in ids:
            if chunk_id not in by_id:
                raise UnknownChunkError(f'No passage "{chunk_id}".')
        return by_id

    def _best_sentences(self, request: SearchRequest, chunks: Mapping[str, int]) -> dict[str, int]:
        """Return the ordinal of the best sentence of each chunk id, or -1 if none matches."""
        index = self._index("sentence")
        query, scored = compiled(request.query.root)
        best: dict[str, int] = {}
        for name, ordinal in chunks.items():
            within = filtered(query, between(ordinal, ordinal + MAX_SENTENCES - 1))
            top = index.top(within, 1, scored=scored, deadline=request.deadline)
            best[name] = top.matches[0].ordinal if top.matches else -1
        return best

    # Scans

    def _scan(self, query: str) -> Iterator[Chunk]:
        position = Position()
        while True:
            # Released between batches, so that ``close`` does not wait for a paused reader.
            with self._calls:
                hits, position = self._batch(query, position)
            yield from map(_chunk, hits)
            if len(hits) < _SCAN_BATCH:
                return

    def _batch(self, query: str, position: Position) -> tuple[tuple[Hit, ...], Position]:
        documents, position = self._chunks.after(query, position, _SCAN_BATCH)
        return self._chunks.read(documents, with_text=True), position

    def _first_id(self, documents: Sequence[int]) -> str | None:
        for hit in self._chunks.read(documents, with_text=False):
            return hit.id
        return None

    def _all(self, query: str) -> Iterator[Chunk]:
        """Iterate as ``_scan`` does, within one call."""
        position = Position()
        while True:
            hits, position = self._batch(query, position)
            yield from map(_chunk, hits)
            if len(hits) < _SCAN_BATCH:
                return


def _alike(request: SearchRequest) -> tuple[str, int] | None:
    """Return the fuzzy word and its edits, if only the words that are like it are read of texts."""
    root = request.query.root
    if request.only_alike and not root.words[1:]:
        return root.words[0][0], root.edits
    return None


def _is_plain(request: SearchRequest) -> bool:
    """Return whether a request is for the first chunks, by score if they have any."""
    return (
        request.granularity == "chunk"
        and not request.offset
        and request.sort is None
        and request.per_document is None
        and request.from_ordinal is None
    )


def _chunk(hit: Hit) -> Chunk:
    id_, doc_id, title, part, parts, ordinal, metadata, ends, content, outline, *_ = hit
    return Chunk(id_, doc_id, title, content, part, parts, ordinal, ends, metadata, outline)


class _Calls(Calls):
    """Calls in flight whose Java exceptions are raised as EngineError."""

    def __enter__(self) -> None:
        if self.is_inherited:
            jvm.check_process()
        super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is not None and isinstance(error, jvm.java_error()):
            if jvm.is_a(error, "Exceeded"):
                raise QueryTimeoutError("The query ran out of time.", where=self.where) from None
            check = f"Check the index: arag-search info {self.where} --checksums"
            raise EngineError(
                f"Lucene failed: {jvm.java_reason(error)}",
                where=self.where,
                do=jvm.advice(error) or check,
            ) from error

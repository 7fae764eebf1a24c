"""LuceneEngine: the SearchEngine over one generation of an index on this machine's disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from arag_search.corpus import MAX_SENTENCES, Chunk, chunk_ordinal
from arag_search.engines.base import (
    Granularity,
    Hit,
    KeywordRequest,
    LeafScore,
    Page,
    SearchRequest,
    is_counted,
)
from arag_search.engines.calls import Calls
from arag_search.engines.deadline import Deadline
from arag_search.engines.deletions import Deletions, deletions_of
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.compile import (
    EVERYTHING,
    LAST_ORDINAL,
    any_of,
    between,
    chunk_ids,
    compiled,
    document_ids,
    filtered,
    keywords_query,
    leaf_queries,
    ordinals,
    scope_query,
)
from arag_search.engines.lucene.pair import open_pair
from arag_search.engines.lucene.schema import Record
from arag_search.engines.lucene.snapshot import (
    REBUILD,
    Found,
    PartStatistics,
    Place,
    Snapshot,
)
from arag_search.engines.substrings import substring_page
from arag_search.errors import (
    EngineError,
    IndexDamagedError,
    NotServedError,
    QueryTimeoutError,
    UnknownChunkError,
)
from arag_search.manifest import Manifest
from arag_search.query.tree import Node, Scope

_SCAN_BATCH = 256
_ORDINALS_BATCH = 65_536
_FIRST_SENTENCES = 16
"""The fewest sentences that are fetched to find the chunks they lie in."""


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The Lucene indexes of a generation as they are on disk; ``sentences`` None if left out."""

    chunks: PartStatistics
    sentences: PartStatistics | None


class LuceneEngine:
    """See SearchEngine. Threads may share it; ``close`` waits for their calls."""

    def __init__(
        self, chunks: Snapshot, sentences: Snapshot | None, manifest: Manifest, where: str
    ) -> None:
        """Use ``LuceneEngine.open``."""
        self._chunks = chunks
        self._sentences = sentences
        self._manifest = manifest
        self._calls = _Calls(where)
        self._last_scope: tuple[Scope, str] | None = None

    @staticmethod
    def open(generation: Path, where: str) -> LuceneEngine:
        """Open the newest update in a generation's folder; ``where`` names the index in errors.

        Raises IndexDamagedError where files are missing or do not belong together,
        IndexVersionError for another format, JvmError where Java cannot be started.
        """
        chunks, sentences, manifest = open_pair(generation, where)
        return LuceneEngine(chunks, sentences, manifest, where)

    @property
    def manifest(self) -> Manifest:
        """What the index is."""
        return self._manifest

    def search(self, request: SearchRequest) -> Page:
        """See SearchEngine."""
        with self._calls:
            query, scored = compiled(request.query)
            if request.scope is not None:
                query = filtered(query, self._scope(request.scope))
            if request.granularity == "sentence":
                page = self._search_sentences(request, query, scored)
            else:
                page = self._page(request, query, scored=scored)
            if not is_counted(request.query):
                return page
            if page.count_is_exact:
                return page.with_count(page.count)
            index = self._index(request.granularity)
            return page.with_count(index.count(query, request.deadline))

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine. Substring matching reads every chunk in scope."""
        with self._calls:
            if request.matching == "substring":
                return substring_page(
                    self._all(filtered(None, self._scope(request.scope))), request
                )
            query = keywords_query(request.keywords)
            if query is None:
                return Page((), 0, True, 0)
            query = filtered(query, self._scope(request.scope))
            return self._page(request, query, scored=True, counting=True)

    def counts(
        self,
        queries: Sequence[tuple[Node, Granularity]],
        scope: Scope | None,
        deadline: Deadline | None = None,
    ) -> list[int]:
        """See SearchEngine."""
        with self._calls:
            within = self._scope(scope)
            wanted: dict[Granularity, dict[str, int]] = {"chunk": {}, "sentence": {}}
            made: list[tuple[str, Granularity]] = [
                (filtered(compiled(node)[0], within), unit) for node, unit in queries
            ]
            for query, unit in made:
                wanted[unit][query] = 0
            for unit, counted in wanted.items():
                if counted:
                    found = self._index(unit).counts(list(counted), deadline)
                    counted.update(zip(counted, found, strict=True))
            return [wanted[unit][query] for query, unit in made]

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """See SearchEngine. A leaf in a group that does not match adds nothing. Page and scope of
        the request do not count. Raises UnknownChunkError for an id that is not there."""
        with self._calls:
            places = self._ordinals(ids)
            index = self._index(request.granularity)
            if request.granularity == "sentence":
                places = self._best_sentences(request, places)
            here = ordinals(sorted({p for p in places.values() if p >= 0}))
            leaves: list[tuple[str, list[tuple[str, dict[int, float]]]]] = []
            for text, queries in leaf_queries(request.query):
                by_field: list[tuple[str, dict[int, float]]] = []
                for each in queries:
                    query = filtered(each.query, here, *each.held)
                    top = index.top(query, max(1, len(ids)), scored=True, deadline=request.deadline)
                    by_field.append((each.field, {hit.ordinal: hit.score for hit in top.found}))
                leaves.append((text, by_field))
        return [
            [
                LeafScore(
                    text,
                    {name: found[places[each]] for name, found in fields if places[each] in found},
                )
                for text, fields in leaves
            ]
            for each in ids
        ]

    def read(self, ids: Sequence[str], scope: Scope | None) -> list[Chunk | None]:
        """See SearchEngine."""
        with self._calls:
            query = filtered(chunk_ids(ids), self._scope(scope))
            end = max(1, len(ids))
            found = self._chunks.page(query, 0, end, scored=False, with_text=True)
            chunks = {record.id: _chunk(record) for record in found.records}
        return [chunks.get(each) for each in ids]

    def neighbours(self, chunk: Chunk, scope: Scope | None) -> tuple[str | None, str | None]:
        """See SearchEngine. Where a neighbour is not in scope, it is the next one that is."""
        with self._calls:
            within = self._scope(scope)
            same = None if self._manifest.already_chunked else document_ids([chunk.doc_id])
            earlier = filtered(between(0, chunk.ordinal - 1), same, within)
            later = filtered(between(chunk.ordinal + 1, LAST_ORDINAL), same, within)
            before, after = self._chunks.before(earlier), self._chunks.after(later, Place(), 1)[0]
            return self._first_id(before), self._first_id(after)

    def scan(self, scope: Scope | None) -> Iterator[Chunk]:
        """See SearchEngine. Reads 256 chunks at a time."""
        with self._calls:
            query = filtered(None, self._scope(scope))
        return self._scan(query)

    def chunks_at(self, ordinals: Sequence[int], scope: Scope | None) -> list[Chunk | None]:
        """See SearchEngine. One call to Java."""
        wanted = list(dict.fromkeys(ordinals))
        with self._calls:
            records = self._found_at(wanted, True, self._scope(scope))
        chunks = {record.ordinal: _chunk(record) for record in records}
        return [chunks.get(ordinal) for ordinal in ordinals]

    def ordinals(self) -> Iterator[int]:
        """See SearchEngine. Reads 65,536 at a time."""
        place = Place()
        while True:
            with self._calls:
                batch, place = self._chunks.ordinals_after(EVERYTHING, place, _ORDINALS_BATCH)
            yield from batch
            if len(batch) < _ORDINALS_BATCH:
                return

    def statistics(self) -> IndexStatistics:
        """Documents, segments and files on disk."""
        with self._calls:
            sentences = None if self._sentences is None else self._sentences.statistics()
            return IndexStatistics(self._chunks.statistics(), sentences)

    def deletions(self) -> Deletions:
        """See SearchEngine."""
        found = self.statistics()
        return deletions_of(found.chunks, found.sentences)

    def commit_data(self) -> Mapping[str, str]:
        """What the writer wrote beside the commit of the chunks."""
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

    # What a search consists of

    def _index(self, granularity: Granularity) -> Snapshot:
        if granularity == "chunk":
            return self._chunks
        if self._sentences is None:
            raise NotServedError(
                "The index holds no sentences.",
                allowed="granularity chunk",
                do="Build it again without leaving sentences out.",
            )
        return self._sentences

    def _scope(self, scope: Scope | None) -> str | None:
        """The filter of a scope; that of the last one is kept, for it is often the same."""
        if scope is None:
            return None
        last = self._last_scope
        if last is not None and last[0] is scope:
            return last[1]
        query = scope_query(scope)
        self._last_scope = (scope, query)
        return query

    def _page(
        self,
        request: SearchRequest | KeywordRequest,
        query: str,
        *,
        scored: bool,
        counting: bool = False,
    ) -> Page:
        start, end = request.offset, request.offset + request.top_k
        with_text = request.with_text
        found = self._chunks.page(
            query,
            start,
            end,
            scored=scored,
            counting=counting,
            with_text=with_text,
            deadline=request.deadline,
        )
        hits = _hits(found.records, found.scores)
        passages = found.before_end if found.before_end < end else None
        return Page(hits, found.count, found.count_is_exact, passages)

    def _search_sentences(self, request: SearchRequest, query: str, scored: bool) -> Page:
        index = self._index("sentence")
        end = request.offset + request.top_k
        fetch = max(_FIRST_SENTENCES, 3 * end)
        while True:
            top = index.top(query, fetch, scored=scored, deadline=request.deadline)
            best: dict[int, Found] = {}
            for each in top.found:
                best.setdefault(chunk_ordinal(each.ordinal), each)
            complete = len(top.found) < fetch
            if complete or len(best) >= end:
                break
            fetch *= 4
        chosen = list(best)[request.offset : end]
        here = (
            top.found
            if complete
            else self._sentences_within(index, query, chosen, request.deadline)
        )
        matched: dict[int, tuple[int, ...]] = dict.fromkeys(chosen, ())
        for sentence in sorted(hit.ordinal for hit in here):
            ordinal = chunk_ordinal(sentence)
            if ordinal in matched:
                matched[ordinal] = (*matched[ordinal], sentence - ordinal)
        records = self._records_at(chosen, request.with_text)
        hits = _hits(records, [best[ordinal].score for ordinal in chosen], matched)
        passages = len(best) if complete and len(best) < end else None
        page = Page(hits, top.count, top.count_is_exact, passages)
        return page if request.whole_text else page.with_matched_text()

    def _sentences_within(
        self, index: Snapshot, query: str, chunks: Sequence[int], deadline: Deadline | None
    ) -> list[Found]:
        """All matches in the chunks with these ordinals."""
        places = any_of(between(ordinal, ordinal + MAX_SENTENCES - 1) for ordinal in chunks)
        most = MAX_SENTENCES * len(chunks)
        within = filtered(query, places)
        return index.top(within, most, scored=False, deadline=deadline).found

    def _records_at(self, places: Sequence[int], with_text: bool) -> list[Record]:
        """The chunks with these ordinals, in this order."""
        records = {record.ordinal: record for record in self._found_at(places, with_text)}
        if len(records) < len(places):
            raise IndexDamagedError(
                "There are sentences of chunks that are not there.",
                where=self._calls.where,
                do=REBUILD,
            )
        return [records[ordinal] for ordinal in places]

    def _found_at(
        self, places: Sequence[int], with_text: bool, within: str | None = None
    ) -> list[Record]:
        """Those chunks that there are of the distinct ordinals, growing."""
        if not places:
            return []
        query = filtered(ordinals(places), within)
        return self._chunks.page(query, 0, len(places), scored=False, with_text=with_text).records

    # Explaining

    def _ordinals(self, ids: Sequence[str]) -> dict[str, int]:
        end = max(1, len(ids))
        found = self._chunks.page(chunk_ids(ids), 0, end, scored=False, with_text=False)
        places = {record.id: record.ordinal for record in found.records}
        for each in ids:
            if each not in places:
                raise UnknownChunkError(f'No chunk "{each}".')
        return places

    def _best_sentences(self, request: SearchRequest, chunks: Mapping[str, int]) -> dict[str, int]:
        """For each chunk id the ordinal of its best sentence, -1 where none matches."""
        index = self._index("sentence")
        query, scored = compiled(request.query)
        best: dict[str, int] = {}
        for name, ordinal in chunks.items():
            here = filtered(query, between(ordinal, ordinal + MAX_SENTENCES - 1))
            top = index.top(here, 1, scored=scored, deadline=request.deadline)
            best[name] = top.found[0].ordinal if top.found else -1
        return best

    # Reading through

    def _scan(self, query: str) -> Iterator[Chunk]:
        place = Place()
        while True:
            # Not held between batches: whoever closes must not wait for a reader that paused.
            with self._calls:
                records, place = self._batch(query, place)
            yield from map(_chunk, records)
            if len(records) < _SCAN_BATCH:
                return

    def _batch(self, query: str, place: Place) -> tuple[list[Record], Place]:
        documents, place = self._chunks.after(query, place, _SCAN_BATCH)
        return self._chunks.read(documents, with_text=True), place

    def _first_id(self, documents: Sequence[int]) -> str | None:
        for record in self._chunks.read(documents, with_text=False):
            return record.id
        return None

    def _all(self, query: str) -> Iterator[Chunk]:
        """As ``_scan``, within one call."""
        place = Place()
        while True:
            records, place = self._batch(query, place)
            yield from map(_chunk, records)
            if len(records) < _SCAN_BATCH:
                return


def _hits(
    records: Sequence[Record],
    scores: Sequence[float],
    matched: Mapping[int, tuple[int, ...]] | None = None,
) -> tuple[Hit, ...]:
    """Hits with the sentence ends where the text was read, as Hit has them."""
    hits: list[Hit] = []
    for record, score in zip(records, scores, strict=True):
        id_, doc_id, title, part, parts, ordinal, metadata, ends, text = record
        here = matched[ordinal] if matched else ()
        ends = () if text is None else ends
        hits.append(
            Hit(id_, doc_id, title, part, parts, ordinal, metadata, score, text, ends, here)
        )
    return tuple(hits)


def _chunk(record: Record) -> Chunk:
    id_, doc_id, title, part, parts, ordinal, metadata, ends, text = record
    ends = () if text is None else ends
    return Chunk(id_, doc_id, title, text or "", part, parts, ordinal, ends, metadata)


class _Calls(Calls):
    """Also turns what Java raises in them into EngineError."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self._pid = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
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
            raise EngineError(
                f"Lucene failed: {jvm.reason(error)}", where=self.where, do=jvm.advice(error)
            ) from error

"""LuceneEngine: the SearchEngine over one generation of an index on this machine's disk."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from arag_search.corpus import MAX_SENTENCES, Chunk, chunk_ordinal, nfc
from arag_search.engines.base import (
    Granularity,
    Hit,
    KeywordRequest,
    LeafScore,
    Page,
    SearchRequest,
)
from arag_search.engines.calls import Calls
from arag_search.engines.deletions import Deletions, deletions_of
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.compile import Compiled, compiler
from arag_search.engines.lucene.pair import open_pair
from arag_search.engines.lucene.snapshot import REBUILD, Found, PartStatistics, Snapshot, Top
from arag_search.errors import (
    EngineError,
    IndexDamagedError,
    NotServedError,
    UnknownChunkError,
)
from arag_search.manifest import Manifest
from arag_search.query.tree import Node, Scope

_SCAN_BATCH = 256
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
        self._compiler = compiler()
        self._last_scope: tuple[Scope, Any] | None = None

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
            query, scored = self._compiler.query(request.query)
            if request.scope is not None:
                query = self._compiler.filtered(query, self._scope(request.scope))
            if request.granularity == "sentence":
                return self._search_sentences(request, query, scored)
            end = request.offset + request.top_k
            top = self._chunks.top(query, end, scored=scored, with_ordinals=False)
            return self._page(top, request, len(top.found) < end)

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine. Substring matching reads every chunk in scope."""
        with self._calls:
            end = request.offset + request.top_k
            if request.matching == "substring":
                top = self._substring_top(request, end)
            else:
                query = self._compiler.keywords(request.keywords)
                if query is None:
                    return Page((), 0, True, 0)
                query = self._compiler.filtered(query, self._scope(request.scope))
                top = self._chunks.top(query, end, scored=True, counting=True, with_ordinals=False)
            return self._page(top, request, len(top.found) < end)

    def counts(self, queries: Sequence[tuple[Node, Granularity]], scope: Scope | None) -> list[int]:
        """See SearchEngine."""
        with self._calls:
            make = self._compiler
            within = self._scope(scope)
            made: dict[int, Compiled] = {}
            counted: dict[tuple[int, Granularity], int] = {}
            for node, granularity in queries:
                if (id(node), granularity) not in counted:
                    query = make.filtered(make.query(node, made)[0], within)
                    counted[id(node), granularity] = self._index(granularity).count(query)
            return [counted[id(node), granularity] for node, granularity in queries]

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """See SearchEngine. A leaf in a group that does not match adds nothing. Page and scope of
        the request do not count. Raises UnknownChunkError for an id that is not there."""
        with self._calls:
            ordinals = self._ordinals(ids)
            index = self._index(request.granularity)
            places = ordinals
            if request.granularity == "sentence":
                places = self._best_sentences(request.query, ordinals)
            here = self._compiler.ordinals(sorted({p for p in places.values() if p >= 0}))
            leaves: list[tuple[str, list[tuple[str, dict[int, float]]]]] = []
            for text, queries in self._compiler.leaf_queries(request.query):
                by_field: list[tuple[str, dict[int, float]]] = []
                for each in queries:
                    query = self._compiler.filtered(each.query, here, *each.held)
                    top = index.top(query, max(1, len(ids)), scored=True)
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
            query = self._compiler.filtered(self._compiler.chunk_ids(ids), self._scope(scope))
            found = self._chunks.top(query, max(1, len(ids)), scored=False).found
            chunks = {chunk.id: chunk for chunk in self._read([hit.document for hit in found])}
        return [chunks.get(each) for each in ids]

    def neighbours(self, chunk: Chunk, scope: Scope | None) -> tuple[str | None, str | None]:
        """See SearchEngine. Where a neighbour is not in scope, it is the next one that is."""
        with self._calls:
            make, within = self._compiler, self._scope(scope)
            same = None if self._manifest.already_chunked else make.ids("doc_id", [chunk.doc_id])
            earlier = make.filtered(None, make.between(0, chunk.ordinal - 1), same, within)
            later = make.filtered(
                None, make.between(chunk.ordinal + 1, (1 << 63) - 1), same, within
            )
            before, after = self._chunks.before(earlier), self._chunks.after(later, None, 1)[0]
            return self._first_id(before), self._first_id(after)

    def scan(self, scope: Scope | None) -> Iterator[Chunk]:
        """See SearchEngine. Reads 256 chunks at a time."""
        with self._calls:
            query = self._compiler.filtered(None, self._scope(scope))
        return self._scan(query)

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

    def _scope(self, scope: Scope | None) -> Any:
        """The filter of a scope; that of the last one is kept, for it is often the same."""
        if scope is None:
            return None
        last = self._last_scope
        if last is not None and last[0] is scope:
            return last[1]
        query = self._compiler.scope(scope)
        self._last_scope = (scope, query)
        return query

    def _page(self, top: Top, request: SearchRequest | KeywordRequest, all_found: bool) -> Page:
        hits = self._hits(top.found[request.offset :], request.with_text)
        passages = len(top.found) if all_found else None
        return Page(tuple(hits), top.count, top.count_is_exact, passages)

    def _hits(
        self,
        found: Sequence[Found],
        with_text: bool,
        matched: Mapping[int, tuple[int, ...]] | None = None,
    ) -> list[Hit]:
        documents = [each.document for each in found]
        texts = self._chunks.texts(documents) if with_text else [None] * len(found)
        hits: list[Hit] = []
        for each, record, text in zip(found, self._chunks.records(documents), texts, strict=True):
            id_, doc_id, title, part, parts, ordinal, metadata, ends = schema.decode_record(record)
            hits.append(
                Hit(
                    id_,
                    doc_id,
                    title,
                    part,
                    parts,
                    ordinal,
                    metadata,
                    each.score,
                    text,
                    tuple(ends) if with_text else (),
                    matched[ordinal] if matched else (),
                )
            )
        return hits

    def _search_sentences(self, request: SearchRequest, query: Any, scored: bool) -> Page:
        index = self._index("sentence")
        end = request.offset + request.top_k
        fetch = max(_FIRST_SENTENCES, 3 * end)
        while True:
            top = index.top(query, fetch, scored=scored)
            best: dict[int, Found] = {}
            for each in top.found:
                best.setdefault(chunk_ordinal(each.ordinal), each)
            complete = len(top.found) < fetch
            if complete or len(best) >= end:
                break
            fetch *= 4
        chosen = list(best)[request.offset : end]
        here = top.found if complete else self._sentences_within(index, query, chosen)
        matched: dict[int, tuple[int, ...]] = dict.fromkeys(chosen, ())
        for sentence in sorted(hit.ordinal for hit in here):
            ordinal = chunk_ordinal(sentence)
            if ordinal in matched:
                matched[ordinal] = (*matched[ordinal], sentence - ordinal)
        found = self._chunks_at({ordinal: best[ordinal].score for ordinal in chosen})
        hits = self._hits(found, request.with_text, matched)
        passages = len(best) if complete and len(best) < end else None
        return Page(tuple(hits), top.count, top.count_is_exact, passages)

    def _sentences_within(self, index: Snapshot, query: Any, chunks: Sequence[int]) -> list[Found]:
        """All matches in the chunks with these ordinals."""
        make = self._compiler
        places = make.any_of(
            make.between(ordinal, ordinal + MAX_SENTENCES - 1) for ordinal in chunks
        )
        here = make.filtered(query, places)
        return index.top(here, MAX_SENTENCES * len(chunks), scored=False).found

    def _chunks_at(self, scores: Mapping[int, float]) -> list[Found]:
        """The chunks with these ordinals, in this order, with these scores."""
        if not scores:
            return []
        query = self._compiler.ordinals(list(scores))
        top = self._chunks.top(query, len(scores), scored=False)
        found = {hit.ordinal: hit for hit in top.found}
        if len(found) < len(scores):
            raise IndexDamagedError(
                "There are sentences of chunks that are not there.",
                where=self._calls.where,
                do=REBUILD,
            )
        return [Found(found[ordinal].document, score, ordinal) for ordinal, score in scores.items()]

    # Explaining

    def _ordinals(self, ids: Sequence[str]) -> dict[str, int]:
        top = self._chunks.top(self._compiler.chunk_ids(ids), max(1, len(ids)), scored=False)
        records = self._chunks.records([hit.document for hit in top.found])
        parts = map(schema.decode_record, records)
        ordinals = {str(part[0]): int(part[5]) for part in parts}
        for each in ids:
            if each not in ordinals:
                raise UnknownChunkError(f'No chunk "{each}".')
        return ordinals

    def _best_sentences(self, node: Node, chunks: Mapping[str, int]) -> dict[str, int]:
        """For each chunk id the ordinal of its best sentence, -1 where none matches."""
        index = self._index("sentence")
        query, scored = self._compiler.query(node)
        best: dict[str, int] = {}
        for name, ordinal in chunks.items():
            place = self._compiler.between(ordinal, ordinal + MAX_SENTENCES - 1)
            here = self._compiler.filtered(query, place)
            top = index.top(here, 1, scored=scored)
            best[name] = top.found[0].ordinal if top.found else -1
        return best

    # Reading through

    def _scan(self, query: Any) -> Iterator[Chunk]:
        place: Any = None
        while True:
            # Not held between batches: whoever closes must not wait for a reader that paused.
            with self._calls:
                documents, place = self._chunks.after(query, place, _SCAN_BATCH)
                chunks = self._read(documents)
            yield from chunks
            if len(documents) < _SCAN_BATCH:
                return

    def _read(self, documents: Sequence[int]) -> list[Chunk]:
        chunks: list[Chunk] = []
        records, texts = self._chunks.records(documents), self._chunks.texts(documents)
        for record, text in zip(records, texts, strict=True):
            id_, doc_id, title, part, parts, ordinal, metadata, ends = schema.decode_record(record)
            chunks.append(
                Chunk(id_, doc_id, title, text, part, parts, ordinal, tuple(ends), metadata)
            )
        return chunks

    def _first_id(self, documents: Sequence[int]) -> str | None:
        for record in self._chunks.records(documents):
            return str(schema.decode_record(record)[0])
        return None

    def _substring_top(self, request: KeywordRequest, n: int) -> Top:
        """The best ``n`` chunks by occurrences of the lower-cased keywords, from a full scan."""
        wanted = [(word.lower(), len(word)) for word in map(nfc, request.keywords) if word]
        query = self._compiler.filtered(None, self._scope(request.scope))
        best: list[tuple[float, int, int]] = []  # score, -ordinal, number: a heap, worst first
        count = 0
        place: Any = None
        while True:
            documents, place = self._chunks.after(query, place, _SCAN_BATCH)
            for document, chunk in zip(documents, self._read(documents), strict=True):
                title, content = chunk.title.lower(), chunk.content.lower()
                score = sum((title.count(w) + content.count(w)) * size for w, size in wanted)
                if score:
                    count += 1
                    push = heapq.heappush if len(best) < n else heapq.heappushpop
                    push(best, (float(score), -chunk.ordinal, document))
            if len(documents) < _SCAN_BATCH:
                break
        best.sort(reverse=True)
        found = [Found(document, score, -minus) for score, minus, document in best]
        return Top(found, count, True)


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
            raise EngineError(
                f"Lucene failed: {jvm.reason(error)}", where=self.where, do=jvm.advice(error)
            ) from error

"""OpenSearchEngine: the SearchEngine of an index on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from arag_search.corpus import MAX_SENTENCES, Chunk
from arag_search.engines.base import (
    MAX_TOTAL,
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
    substring_page,
)
from arag_search.engines.hits import Hit, LeafScore
from arag_search.engines.opensearch import compile, schema
from arag_search.engines.opensearch.address import Address, ConnectionOptions
from arag_search.engines.opensearch.answers import (
    BY_ORDINAL,
    BY_ORDINAL_DOWN,
    BY_SCORE,
    CONDITIONS,
    MATCHED,
    MAX_WINDOW,
    ClusterStatistics,
    HitPosition,
    Scan,
    count_of,
    first_id,
    hit_of,
    hits_and_last,
    hits_of,
    list_body,
    page_body,
    page_of,
    position_of,
    score_of,
    sentence_hit,
    shard_statistics,
    sorted_by,
    source_filter,
    stored_ordinal,
)
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.compile import Dsl
from arag_search.engines.opensearch.lease import read_holder
from arag_search.engines.opensearch.physical import (
    PhysicalIndexes,
    Searcher,
    find_physical,
)
from arag_search.engines.opensearch.values import FieldReader
from arag_search.errors import (
    AccessError,
    ArgumentError,
    IndexDamagedError,
    NotServedError,
    UnknownChunkError,
)
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, ScoredLeaf, scored_leaves
from arag_search.query.fields import DOC_ID

_Read = TypeVar("_Read")

MAX_SCANNED = 50_000
"""The passages of the largest index in which keywords are matched as substrings."""
_READ_BATCH = 1000
_ORDINALS_BATCH = 10_000
_FIRST_POSITIONS = 256
_SPARE = 4
"""The positions that are requested at first for each needed one; at least 256 in all."""
_GROWTH = 4
_NOTHING: Dsl = {"size": 0, "track_total_hits": False}
_READY_S = 1.0
_SETTLING_S = 5.0
"""How long an update may show its sentences and not yet its chunks, or the reverse."""
_SETTLING_PAUSE_S = 0.05


class _MovedError(Exception):
    """Sentences and chunks were read in different states of the index."""


class OpenSearchEngine:
    """The SearchEngine of an index on a cluster. Threads may share it; ``close`` waits for them.

    Every method raises UnavailableError if the cluster gives no complete answer in time, and
    IndexNotFoundError if the index was removed.
    """

    is_remote: ClassVar[bool] = True

    def __init__(self, client: Client, indexes: PhysicalIndexes, where: str) -> None:
        """Use ``OpenSearchEngine.open``."""
        self._client = client
        self._indexes = indexes
        self._searcher = Searcher(client, indexes, where)
        self._calls = Calls(where)
        self.withheld = ""

    @staticmethod
    def open(address: Address, options: ConnectionOptions | None = None) -> OpenSearchEngine:
        """Open the index that is now published under the address.

        Raises IndexNotFoundError, IndexVersionError, IndexDamagedError, AccessError,
        UnavailableError, EngineError for a server of another kind.
        """
        client = Client.connect(address, options)
        try:
            return OpenSearchEngine(client, find_physical(client, address), str(address))
        except BaseException:
            client.close()
            raise

    @property
    def manifest(self) -> Manifest:
        """The manifest of the index."""
        return self._indexes.manifest

    def is_outdated(self, address: Address) -> bool:
        """Ask the server whether another index, or another state of this one, is published now.
        Raises as ``open``."""
        with self._calls:
            latest = find_physical(self._client, address)
            held = self._indexes
            return (latest.chunks.index, latest.manifest) != (held.chunks.index, held.manifest)

    def check_ready(self) -> None:
        """See SearchEngine. Sends one request."""
        with self._calls:
            asked: list[tuple[Granularity, Dsl]] = [("chunk", _NOTHING), ("sentence", _NOTHING)]
            asked = asked[: 1 + self.manifest.has_sentences]
            self._searcher.searches(asked, lambda _: None, deadline=Deadline(_READY_S))

    @property
    def unfinished_update(self) -> str:
        """The command of an update that was unfinished on opening, or empty."""
        return self._indexes.unfinished_update

    def search(self, request: SearchRequest) -> Page:
        """See SearchEngine. Sends one request. At sentence granularity it sends one more for whole
        texts, and one for the number of passages if the page is past the last one. A query of one
        clause takes one more to count more than 1,000 matches. ``per_document`` takes one more for
        the contents of the page, and further ones if many matches of a document stand together."""
        with self._calls:
            body, scored = self.request_body(request)
            if request.per_document is not None:
                page = self._settled(lambda: self._page_per_document(request, body, scored))
            elif request.granularity == "sentence":
                page = self._settled(lambda: self._sentence_page(request, body, scored))
            else:
                page = self._searcher.search(
                    "chunk",
                    body,
                    lambda answer: page_of(answer, request),
                    scored=scored,
                    deadline=request.deadline,
                )
            if not request.query.root.is_counted or request.from_ordinal is not None:
                return page
            total = page.total
            return page.with_total(total.number if total.is_exact else self._count(request))

    def request_body(self, request: SearchRequest) -> tuple[Dsl, bool]:
        """Return what ``search`` sends first for a request, and whether its matches have a
        score."""
        statistics = self._searcher.physical(request.granularity).statistics
        query, scored = compile.request_query(request.query, request.scope, statistics)
        if request.only_alike and self.withheld:
            query = compile.any_value(schema.ORDINAL, ())
        if request.from_ordinal is not None:
            onwards = {"range": {schema.ORDINAL: {"gte": request.from_ordinal}}}
            query, scored = compile.filtered(None, query, onwards), False
        return page_body(query, scored, request), scored

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine. Substring matching reads every chunk in scope. Raises NotServedError
        for token matching if the build left ``exact`` out."""
        if request.matching == "substring":
            if self.manifest.chunks > MAX_SCANNED:
                raise NotServedError(
                    f"Substring matching reads all {self.manifest.chunks:,} passages.",
                    where=self._calls.where,
                    allowed=f"at most {MAX_SCANNED:,} passages on a server",
                    do="Use token matching, or a preset that has it, such as arag_full.",
                )
            return substring_page(self.scan(request.scope, request.deadline), request)
        with self._calls:
            if "exact" in self.manifest.without:
                raise NotServedError(
                    "The index does not count keywords.",
                    where=self._calls.where,
                    allowed="matching substring, or logical search",
                    do="Build it again without leaving exact out.",
                )
            scaled = compile.keyword_query(request)
            if scaled is None:
                return Page((), Count(0), 0)
            query, scale = scaled
            body = page_body(query, True, request)
            page = self._searcher.search(
                "chunk", body, lambda answer: page_of(answer, request), deadline=request.deadline
            )
        hits = [hit._replace(score=float(round(hit.score / scale))) for hit in page.hits]
        return replace(page, hits=tuple(hits))

    def counts(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> list[int]:
        return self.counts_and_pages(queries, (), scope, deadline, exact)[0]

    def counts_and_pages(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        requests: Sequence[SearchRequest],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> tuple[list[int], list[Page]]:
        def read(answers: Sequence[dict[str, Any]]) -> tuple[list[int], list[Page]]:
            counts = [count_of(answer).number for answer in answers[: len(queries)]]
            pages = zip(answers[len(queries) :], requests, strict=True)
            return counts, [page_of(answer, request) for answer, request in pages]

        with self._calls:
            number: Dsl = {"size": 0, "track_total_hits": True if exact else MAX_TOTAL}
            bodies: list[tuple[Granularity, Dsl]] = [
                (granularity, {"query": compile.condition(plan, scope), **number})
                for plan, granularity in queries
            ]
            asked = [self.request_body(request) for request in requests]
            bodies.extend(("chunk", body) for body, _ in asked)
            scored = any(scored for _, scored in asked)
            try:
                counts, pages = self._searcher.searches(
                    bodies, read, scored=scored, deadline=deadline
                )
            except ArgumentError as error:  # a server may refuse fuzzy words
                if self.withheld or not any(request.only_alike for request in requests):
                    raise
                self.withheld = f"Nearest words are not known: {error.what}"
                return self.counts_and_pages(queries, requests, scope, deadline, exact)
        return counts if exact else [min(count, MAX_TOTAL + 1) for count in counts], pages

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        """See SearchEngine. Sends one request, unless a keyword field has more than 1,000 values:
        it then sends one more for every 10,000 values, or none if ``quick``."""
        with self._calls:
            metadata = self.manifest.metadata
            return FieldReader(self._searcher, request, metadata).page()

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """See SearchEngine. A leaf in a group that does not match adds nothing. Page and scope of
        the request are ignored. Raises UnknownChunkError for an unknown id."""
        with self._calls:
            ordinals = self._listed(ids)
            if request.granularity == "sentence":
                ordinals = self._best_sentences(request, ids)
            leaves = scored_leaves(request.query.root)
            scores = iter(self._leaf_scores(request, leaves, list(ordinals.values())))
            by_leaf = [(text, [(leaf.field, next(scores)) for leaf in by]) for text, by in leaves]
        return [
            [
                LeafScore(
                    text,
                    {
                        name: by_ordinal[ordinals[id]]
                        for name, by_ordinal in fields
                        if ordinals.get(id) in by_ordinal
                    },
                )
                for text, fields in by_leaf
            ]
            for id in ids
        ]

    def read(self, ids: Sequence[str], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """See SearchEngine. Requests 1,000 at a time."""
        with self._calls:
            chunks = self._chunks_with(schema.ID, ids, scope)
        return [chunks.get(id) for id in ids]

    def neighbours(self, chunks: Sequence[Chunk], scope: ResolvedPlan | None) -> list[Neighbours]:
        """See SearchEngine. Neighbours that are not in scope are skipped. Sends one request, and
        none if no chunk can have any."""
        in_corpus = self.manifest.already_chunked
        asked = [chunk for chunk in chunks if in_corpus or chunk.parts > 1]
        within = compile.scope_filter(scope)
        bodies: list[tuple[Granularity, Dsl]] = [
            (
                "chunk",
                list_body(
                    compile.filtered(
                        None,
                        {"range": {schema.ORDINAL: {side: chunk.ordinal}}},
                        None if in_corpus else compile.any_value(DOC_ID, [chunk.doc_id]),
                        within,
                    ),
                    1,
                    by=order,
                    source=[schema.ID],
                ),
            )
            for chunk in asked
            for side, order in (("lt", BY_ORDINAL_DOWN), ("gt", BY_ORDINAL))
        ]
        with self._calls:
            ids = self._searcher.searches(bodies, lambda answers: list(map(first_id, answers)))
        beside = zip(asked, zip(ids[::2], ids[1::2], strict=True), strict=True)
        of_ids = {chunk.id: neighbours for chunk, neighbours in beside}
        return [of_ids.get(chunk.id, (None, None)) for chunk in chunks]

    def scan(self, scope: ResolvedPlan | None, deadline: Deadline | None = None) -> Iterator[Chunk]:
        """See SearchEngine. Reads 1,000 chunks at a time. It may wait for a lost server."""
        query, size = compile.filtered(None, compile.scope_filter(scope)), _READ_BATCH
        return self._in_order(
            query, size, lambda hit: schema.chunk_of(hit["_source"]), deadline, with_source=True
        )

    def chunks_at(self, ordinals: Sequence[int], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """See SearchEngine. Requests 1,000 at a time."""
        with self._calls:
            chunks = self._chunks_with(schema.ORDINAL, ordinals, scope)
        return [chunks.get(ordinal) for ordinal in ordinals]

    def ordinals(
        self,
        scope: ResolvedPlan | None = None,
        deadline: Deadline | None = None,
        granularity: Granularity = "chunk",
    ) -> Iterator[int]:
        """See SearchEngine. Requests 10,000 at a time, without their documents."""
        query = compile.filtered(None, compile.scope_filter(scope))
        yield from self._in_order(query, _ORDINALS_BATCH, sorted_by, deadline, granularity)

    def known(self, field: str, values: Sequence[str]) -> Sequence[str]:
        """See SearchEngine. A look-up costs as much as a search."""
        return values

    def among(
        self, ordinals: Ordinals, scope: ResolvedPlan, deadline: Deadline | None = None
    ) -> Mask:
        """See SearchEngine. Sends one request for 10,000 ordinals or fewer; for more, it lists the
        chunks in the scope as ``ordinals`` does."""
        import numpy as np

        asked = None
        if len(ordinals) <= _ORDINALS_BATCH:
            asked = compile.any_value(schema.ORDINAL, ordinals.tolist())
        query = compile.filtered(None, compile.scope_filter(scope), asked)
        listed = np.fromiter(self._in_order(query, _ORDINALS_BATCH, sorted_by, deadline), np.int64)
        return np.isin(ordinals, listed, assume_unique=True)

    def statistics(self) -> ClusterStatistics:
        """Return documents, segments and bytes on the server."""
        with self._calls:
            indexes = list(filter(None, (self._indexes.chunks, self._indexes.sentences)))
            names = ",".join(index.index for index in indexes)
            reply = self._client.call("GET", f"/{names}/_stats/docs,store,segments")
            chunks, *of_sentences = self._client.read(
                lambda reply: [
                    shard_statistics(reply["indices"][index.index], index.shards)
                    for index in indexes
                ],
                reply,
            )
            return ClusterStatistics(chunks, next(iter(of_sentences), None))

    def condition(self) -> dict[str, str]:
        """Return the health of the cluster, what blocks the index, and free disk, by topic."""
        both = filter(None, (self._indexes.chunks, self._indexes.sentences))
        names = ",".join(part.index for part in both)
        said: dict[str, str] = {}
        for topic, (path, reading) in CONDITIONS.items():
            with self._calls, suppress(AccessError):  # a user of searches may not ask for all
                reply = self._client.call("GET", path.format(names))
                said[topic] = self._client.read(reading, reply)
        with self._calls, suppress(AccessError):
            holder, _ = read_holder(self._client, self._client.address.name)
            said["at work"] = f"{holder.work}: {holder}" if holder else ""
        return said

    def deletions(self) -> Deletions:
        statistics = self.statistics()
        return deletions_of(statistics.chunks, statistics.sentences)

    def close(self) -> None:
        """See SearchEngine. May be called again."""
        if self._calls.close():
            self._client.close()

    def _count(self, request: SearchRequest) -> int:
        query = compile.condition(request.query, request.scope)
        body: Dsl = {"query": query, "size": 0, "track_total_hits": True}
        deadline = request.deadline
        return self._searcher.search(request.granularity, body, count_of, deadline=deadline).number

    # Pages that take several requests

    def _settled(self, page: Callable[[], Page]) -> Page:
        until = time.monotonic() + _SETTLING_S
        while True:
            try:
                return page()
            except _MovedError:
                if time.monotonic() > until:
                    raise IndexDamagedError(
                        "There are sentences whose passages are missing.",
                        where=self._calls.where,
                        do="Wait for a running update; run an interrupted one again, or "
                        f"arag-search compact {self._calls.where}. Otherwise: {REBUILD}",
                    ) from None
            time.sleep(_SETTLING_PAUSE_S)

    def _page_per_document(self, request: SearchRequest, body: Dsl, scored: bool) -> Page:
        """Return a page with at most ``per_document`` chunks of a document: first the positions of
        chunks, then the contents of those on the page."""
        end = request.offset + request.top_k
        scan = self._positions_per_document(request, body, scored)
        shown = scan.positions[request.offset : end]
        if not shown:
            hits: list[Hit] = []
        elif request.granularity == "sentence":
            hits = self._sentence_hits(request, shown)
        else:
            scores = {position.ordinal: position.score for position in shown}

            def scored_hit(source: dict[str, Any]) -> Hit:
                ordinal = source[schema.ORDINAL]
                return hit_of(source, source[schema.ID], ordinal, scores[ordinal])

            read = self._chunk_sources(
                schema.ORDINAL, list(scores), scored_hit, with_text=request.with_text
            )
            if len(read) < len(shown):
                raise _MovedError
            hits = [read[ordinal] for ordinal in scores]
        passages = len(scan.positions) if len(scan.positions) < end else None
        return Page(tuple(hits), scan.total, passages)

    def _positions_per_document(self, request: SearchRequest, body: Dsl, scored: bool) -> Scan:
        """Return the first positions of a search, in order, at most ``per_document`` of a document.

        A request returns 256 positions or more. The next ones, if needed, leave out the documents
        that have enough; the positions of others are skipped by their number, since all were seen.
        So every request brings another position, or is the last.
        """
        by_sentence = request.granularity == "sentence"
        end = request.offset + request.top_k
        scan = Scan(request.per_document or 1)
        size = min(max(_FIRST_POSITIONS, _SPARE * end), MAX_WINDOW)
        keys = [DOC_ID, schema.CHUNK_ID] if by_sentence else [DOC_ID]
        body = {**body, "_source": False, "docvalue_fields": keys}
        if by_sentence:
            body["collapse"] = {"field": schema.CHUNK_ID}
        while True:
            start = scan.unfinished()
            body.update({"from": start, "size": min(size, MAX_WINDOW - start)})
            if scan.full:
                full = compile.any_value(DOC_ID, sorted(scan.full))
                body["post_filter"] = {"bool": {"must_not": [full]}}
            deadline = request.deadline
            positions, total = self._searcher.search(
                request.granularity,
                body,
                lambda answer: (
                    list(map(position_of, hits_of(answer))),
                    count_of(answer) if body["track_total_hits"] else None,
                ),
                scored=scored,
                deadline=deadline,
            )
            if total is not None:
                scan.total = total
                body["track_total_hits"] = False
            for position in positions:
                scan.add(position)
            if len(scan.positions) >= end or len(positions) < body["size"]:
                return scan
            if deadline is not None:
                deadline.check()
            size = min(_GROWTH * size, MAX_WINDOW)

    # Sentences

    def _sentence_page(self, request: SearchRequest, body: Dsl, scored: bool) -> Page:
        deadline = request.deadline
        body = {**body, **self._matched_sentences(request)}
        hits, total = self._searcher.search(
            "sentence",
            body,
            lambda answer: (list(map(sentence_hit, hits_of(answer))), count_of(answer)),
            scored=scored,
            deadline=deadline,
        )
        if request.with_text and request.whole_text and hits:
            hits = self._with_whole_texts(hits)
        passages: int | None = None
        if len(hits) < request.top_k:
            passages = request.offset + len(hits)
            if not hits and request.offset:
                end = request.offset + request.top_k
                body.update({"from": 0, "size": end, "_source": False, "track_total_hits": False})
                body["collapse"] = {"field": schema.CHUNK_ID}
                passages = self._searcher.search(
                    "sentence", body, lambda answer: len(hits_of(answer)), deadline=deadline
                )
        return Page(tuple(hits), total, passages)

    def _matched_sentences(self, request: SearchRequest) -> Dsl:
        matched: Dsl = {
            "name": MATCHED,
            "size": MAX_SENTENCES,
            "sort": BY_ORDINAL,
            "_source": [schema.CONTENT] if request.with_text and not request.whole_text else False,
        }
        return {
            "_source": {"excludes": list(schema.WITHOUT_TEXT)},
            "collapse": {"field": schema.CHUNK_ID, "inner_hits": matched},
        }

    def _sentence_hits(self, request: SearchRequest, shown: Sequence[HitPosition]) -> list[Hit]:
        """Return the hits of chunks, in order, with their matching sentences. Raises _MovedError if
        the index is in another state than when they were found."""
        chunks = compile.any_value(schema.CHUNK_ID, [position.chunk_id for position in shown])
        query = compile.condition(request.query, request.scope, chunks)
        body = {**list_body(query, len(shown)), **self._matched_sentences(request)}
        by_id = self._searcher.search(
            "sentence",
            body,
            lambda answer: {hit.id: hit for hit in map(sentence_hit, hits_of(answer))},
            deadline=request.deadline,
        )
        if not all(position.chunk_id in by_id for position in shown):
            raise _MovedError
        hits = [by_id[position.chunk_id]._replace(score=position.score) for position in shown]
        if request.with_text and request.whole_text:
            hits = self._with_whole_texts(hits)
        return hits

    def _with_whole_texts(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits with the texts of their chunks, read from the other index. Raises
        _MovedError if that is in another state."""
        short = {hit.id: hit for hit in hits}

        def whole_hit(source: dict[str, Any]) -> Hit:
            of = short[source[schema.ID]]
            return hit_of(source, of.id, source[schema.ORDINAL], of.score, of.matched_sentences)

        whole = self._chunk_sources(schema.ID, list(short), whole_hit)
        for hit in hits:
            if hit.id not in whole or whole[hit.id].ordinal != hit.ordinal:
                raise _MovedError
        return [whole[hit.id] for hit in hits]

    # Explaining

    def _listed(self, ids: Sequence[str]) -> dict[str, int]:
        ordinals = self._chunk_sources(
            schema.ID, ids, lambda source: stored_ordinal(source[schema.ORDINAL]), with_text=False
        )
        for id in ids:
            if id not in ordinals:
                raise UnknownChunkError(f'No passage "{id}".')
        return ordinals

    def _best_sentences(self, request: SearchRequest, ids: Sequence[str]) -> dict[str, int]:
        """Return the ordinal of each chunk's best sentence, by chunk id, if one matches."""
        clause = request.query.root
        query, scored = compile.compiled(clause)
        query = compile.with_statistics(
            compile.filtered(query, compile.any_value(schema.CHUNK_ID, ids)),
            clause,
            self._searcher.physical("sentence").statistics,
        )
        order = BY_SCORE if scored else BY_ORDINAL
        body = list_body(query, max(1, len(ids)), by=order, source=[schema.CHUNK_ID])
        return self._searcher.search(
            "sentence",
            {**body, "collapse": {"field": schema.CHUNK_ID}},
            lambda answer: {
                hit["_source"][schema.CHUNK_ID]: sorted_by(hit) for hit in hits_of(answer)
            },
            scored=scored,
            deadline=request.deadline,
        )

    def _leaf_scores(
        self,
        request: SearchRequest,
        leaves: Sequence[tuple[str, Sequence[ScoredLeaf]]],
        ordinals: Sequence[int],
    ) -> list[dict[int, float]]:
        statistics = self._searcher.physical(request.granularity).statistics
        here = compile.any_value(schema.ORDINAL, ordinals)
        bodies: list[tuple[Granularity, Dsl]] = [
            (
                request.granularity,
                list_body(
                    compile.with_statistics(
                        compile.filtered(
                            compile.compiled(leaf.clause)[0],
                            here,
                            *(compile.compiled(condition)[0] for condition in leaf.conditions),
                        ),
                        request.query.root,
                        statistics,
                    ),
                    max(1, len(ordinals)),
                    by=BY_SCORE,
                ),
            )
            for _, by_field in leaves
            for leaf in by_field
        ]
        return self._searcher.searches(
            bodies,
            lambda answers: [
                {sorted_by(hit): score_of(hit) for hit in hits_of(answer)} for answer in answers
            ],
            scored=True,
            deadline=request.deadline,
        )

    # Reading

    def _chunks_with(
        self, field: str, values: Sequence[str] | Sequence[int], scope: ResolvedPlan | None
    ) -> dict[Any, Chunk]:
        within = compile.scope_filter(scope)
        wanted = list(dict.fromkeys(values))
        chunks: dict[Any, Chunk] = {}
        for at in range(0, len(wanted), _READ_BATCH):
            batch = wanted[at : at + _READ_BATCH]
            chunks |= self._chunk_sources(field, batch, schema.chunk_of, within=within)
        return chunks

    def _chunk_sources(
        self,
        field: str,
        values: Sequence[str | int],
        reading: Callable[[dict[str, Any]], _Read],
        *,
        with_text: bool = True,
        within: Dsl | None = None,
    ) -> dict[Any, _Read]:
        """Return what ``reading`` makes of the documents of chunks that have one of the values of a
        field, by these values."""
        query = compile.filtered(None, compile.any_value(field, values), within)
        return self._searcher.search(
            "chunk",
            list_body(query, max(1, len(values)), source=source_filter(with_text)),
            lambda answer: {
                source[field]: reading(source)
                for source in (hit["_source"] for hit in hits_of(answer))
            },
        )

    def _in_order(
        self,
        query: Dsl,
        size: int,
        reading: Callable[[dict[str, Any]], _Read],
        deadline: Deadline | None = None,
        granularity: Granularity = "chunk",
        *,
        with_source: bool = False,
    ) -> Iterator[_Read]:
        """Yield what ``reading`` makes of each hit, in order of ordinal, ``size`` per request."""
        body = list_body(query, size, source=with_source)
        while True:
            # Not held between batches, so that closing does not wait for a paused reader.
            with self._calls:
                hits, last = self._searcher.search(
                    granularity,
                    body,
                    lambda answer: hits_and_last(answer, reading),
                    deadline=deadline,
                    waits=deadline is None and "search_after" in body,
                )
            yield from hits
            if len(hits) < size:
                return
            if deadline is not None:
                deadline.check()
            body["search_after"] = last

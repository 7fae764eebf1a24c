"""MemoryEngine: trees evaluated exactly, in plain Python, without an index on disk.

It is the fake that ships, for tests and examples, and the oracle that the other engines are tested
against; it shares no code with them. Order and scores are those of Lucene, computed in the same
32-bit steps, except that loose phrases with a repeated word score differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from heapq import nsmallest
from itertools import islice

from arag_search.corpus import Chunk, nfc
from arag_search.engines.base import (
    MAX_TOTAL,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    Granularity,
    Hit,
    KeywordRequest,
    LeafScore,
    Page,
    SearchRequest,
    SortBy,
    ValueCount,
    is_counted,
)
from arag_search.engines.deadline import Deadline
from arag_search.engines.deletions import Deletions
from arag_search.engines.memory.documents import ScoredDocuments
from arag_search.engines.memory.field import TextField, float32
from arag_search.engines.memory.plan import plan_of
from arag_search.errors import ArgumentError, IndexClosedError, NotServedError, UnknownChunkError
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query import analysis
from arag_search.query.fields import CONTENT, DOC_ID, TEXT_FIELDS, TITLE, MetadataType
from arag_search.query.spellings import spellings_of
from arag_search.query.tree import And, Demote, Node, Not, Or, Prefer, Scope, TextLeaf, render
from arag_search.system.arguments import checked
from arag_search.tokens import count_tokens

_NO_METADATA: Mapping[str, MetadataType] = {}


class MemoryEngine:
    """A SearchEngine over chunks held in memory."""

    @checked
    def __init__(
        self,
        chunks: Iterable[Chunk],
        *,
        metadata: Mapping[str, MetadataType] = _NO_METADATA,
        k1: float = 1.2,
        b: float = 0.75,
        already_chunked: bool = False,
        sentences: bool = True,
    ) -> None:
        """Index the chunks, in any order, whose ids and ordinals must be distinct.

        ``metadata`` declares the fields that queries may name. With ``sentences`` False there is no
        sentence granularity. Raises ArgumentError for two chunks with the same id or ordinal, and
        for a metadata value that is not of its field's type.
        """
        self._chunks = sorted(chunks, key=lambda chunk: chunk.ordinal)
        self._numbers = {chunk.id: number for number, chunk in enumerate(self._chunks)}
        self._by_ordinal = {chunk.ordinal: number for number, chunk in enumerate(self._chunks)}
        for what, count in (("id", len(self._numbers)), ("ordinal", len(self._by_ordinal))):
            if count < len(self._chunks):
                raise ArgumentError(f"Two chunks have the same {what}.")
        self._manifest = _manifest(self._chunks, metadata, k1, b, already_chunked, sentences)
        self._titles = [analysis.terms(chunk.title) for chunk in self._chunks]
        contents = (analysis.terms(chunk.content) for chunk in self._chunks)
        self._by_chunk = self._index_of(range(len(self._chunks)), contents)
        self._closed = False

    @property
    def manifest(self) -> Manifest:
        """The manifest of the chunks. Its fingerprint is that of the same corpus in any engine."""
        return self._manifest

    def search(self, request: SearchRequest) -> Page:
        """See SearchEngine."""
        documents = self._documents(request.granularity, request.deadline)
        scores = documents.scores(plan_of(request.query))
        allowed = documents.within(request.scope)
        if allowed is not None:
            scores = {document: scores[document] for document in allowed.intersection(scores)}
        if request.granularity == "chunk":
            page = self._page(scores, len(scores), request)
            return page.with_count(len(scores)) if is_counted(request.query) else page
        best, numbers = self._best_sentences(scores)
        by_chunk = {chunk: scores[document] for chunk, document in best.items()}
        # Equal scores are in corpus order of the sentences, which is that of their chunks.
        page = self._page(by_chunk, len(scores), request, numbers)
        if is_counted(request.query):
            page = page.with_count(len(scores))
        return page if request.whole_text else page.with_matched_text()

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine."""
        self._check_open()
        totals: dict[int, float] = {}
        for keyword in map(nfc, request.keywords):
            for number, count in self._keyword_counts(keyword, request).items():
                totals[number] = totals.get(number, 0) + count * len(keyword)
        allowed = self._by_chunk.within(request.scope)
        scores = {
            number: float32(total)
            for number, total in totals.items()
            if allowed is None or number in allowed
        }
        return self._page(scores, len(scores), request)

    def counts(
        self,
        queries: Sequence[tuple[Node, Granularity]],
        scope: Scope | None,
        deadline: Deadline | None = None,
    ) -> list[int]:
        """See SearchEngine."""
        self._check_open()
        result: list[int] = []
        for query, granularity in queries:
            documents = self._documents(granularity, deadline)
            matched = documents.matches(query)
            allowed = documents.within(scope)
            count = len(matched) if allowed is None else len(matched & allowed)
            result.append(min(count, MAX_TOTAL + 1))
        return result

    def counts_and_pages(
        self,
        queries: Sequence[tuple[Node, Granularity]],
        requests: Sequence[SearchRequest],
        scope: Scope | None,
        deadline: Deadline | None = None,
    ) -> tuple[list[int], list[Page]]:
        """See SearchEngine."""
        return self.counts(queries, scope, deadline), list(map(self.search, requests))

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        """See SearchEngine."""
        documents = self._documents("chunk", request.deadline)
        allowed = documents.within(request.scope)
        if allowed is None:
            allowed = set(range(documents.size))
        fields = tuple(self._values_of(name, allowed, request.values) for name in request.fields)
        return FieldsPage(len(allowed), fields)

    def _values_of(self, name: str, allowed: set[int], most: int) -> FieldValues:
        """Return the values of a field in the allowed chunks."""
        if name in TEXT_FIELDS:
            return FieldValues(name, len(self._by_chunk.with_words(name) & allowed))
        column = {
            value: held & allowed
            for value, held in self._by_chunk.column(name).items()
            if held & allowed
        }
        chunks = len(set[int]().union(*column.values()))
        if name == DOC_ID or self._manifest.metadata[name] == "keyword":
            counts = [ValueCount(str(value), len(held)) for value, held in column.items()]
            counts.sort(key=lambda count: (-(count.chunks or 0), count.value))
            return FieldValues(name, chunks, len(column), tuple(counts[:most]))
        numbers = [float(value) for value in column]
        least, greatest = min(numbers, default=None), max(numbers, default=None)
        return FieldValues(name, chunks, least=least, greatest=greatest)

    def explain(self, request: SearchRequest, ids: Sequence[str]) -> list[list[LeafScore]]:
        """See SearchEngine. A leaf in a group that does not match adds nothing. Page and scope of
        the request are ignored. Raises UnknownChunkError for an id that the engine lacks."""
        documents = self._documents(request.granularity, request.deadline)
        leaves: list[tuple[TextLeaf, dict[str, dict[int, float]]]] = []
        everything = documents.matches(request.query)
        _explain(documents, request.query, 1.0, everything, leaves)
        best: dict[int, int] = {number: number for number in self._numbers.values()}
        if request.granularity == "sentence":
            best, _ = self._best_sentences(documents.scores(plan_of(request.query)))
        result: list[list[LeafScore]] = []
        for chunk_id in ids:
            if chunk_id not in self._numbers:
                raise UnknownChunkError(f'No chunk "{chunk_id}".')
            document = best.get(self._numbers[chunk_id], -1)
            result.append(
                [
                    LeafScore(
                        render(leaf),
                        {
                            field: scores[document]
                            for field, scores in by_field.items()
                            if document in scores
                        },
                    )
                    for leaf, by_field in leaves
                ]
            )
        return result

    def read(self, ids: Sequence[str], scope: Scope | None) -> list[Chunk | None]:
        """See SearchEngine."""
        self._check_open()
        allowed = self._by_chunk.within(scope)
        numbers = [self._numbers.get(chunk_id) for chunk_id in ids]
        return [
            None
            if number is None or (allowed is not None and number not in allowed)
            else self._chunks[number]
            for number in numbers
        ]

    def neighbours(self, chunk: Chunk, scope: Scope | None) -> tuple[str | None, str | None]:
        """See SearchEngine. A neighbour out of scope is replaced by the nearest one in scope."""
        before: str | None = None
        for other in self.scan(scope):
            if self._manifest.already_chunked or other.doc_id == chunk.doc_id:
                if other.ordinal > chunk.ordinal:
                    return before, other.id
                if other.ordinal < chunk.ordinal:
                    before = other.id
        return before, None

    def chunks_at(self, ordinals: Sequence[int], scope: Scope | None) -> list[Chunk | None]:
        """See SearchEngine."""
        self._check_open()
        allowed = self._by_chunk.within(scope)
        numbers = map(self._by_ordinal.get, ordinals)
        return [
            None
            if number is None or (allowed is not None and number not in allowed)
            else self._chunks[number]
            for number in numbers
        ]

    def ordinals(
        self,
        scope: Scope | None = None,
        deadline: Deadline | None = None,
        most: int | None = None,
    ) -> Iterator[int]:
        """See SearchEngine. The number is not limited."""
        for chunk in self.scan(scope):
            yield chunk.ordinal

    def deletions(self) -> Deletions:
        """See SearchEngine. There are none."""
        return Deletions(0, 0.0)

    def scan(self, scope: Scope | None) -> Iterator[Chunk]:
        """See SearchEngine."""
        self._check_open()
        allowed = self._by_chunk.within(scope)
        numbers = range(len(self._chunks)) if allowed is None else sorted(allowed)
        return self._stream(numbers)

    def close(self) -> None:
        """See SearchEngine. May be called again."""
        self._closed = True

    def _stream(self, numbers: Iterable[int]) -> Iterator[Chunk]:
        for number in numbers:
            self._check_open()
            yield self._chunks[number]

    def _check_open(self) -> None:
        if self._closed:
            raise IndexClosedError("The index in memory is closed.", do="Open it again.")

    def _documents(self, granularity: Granularity, deadline: Deadline | None) -> ScoredDocuments:
        self._check_open()
        if granularity == "chunk":
            return self._by_chunk.until(deadline)
        if not self._manifest.has_sentences:
            raise NotServedError(
                "The index holds no sentences.",
                allowed="granularity chunk",
                do="Build it again without leaving sentences out.",
            )
        return self._by_sentence.until(deadline)

    @cached_property
    def _sentences(self) -> list[tuple[int, int]]:
        """The number of its chunk, and its number within it, of each sentence."""
        return [
            (number, at)
            for number, chunk in enumerate(self._chunks)
            for at in range(len(chunk.sentence_ends))
        ]

    @cached_property
    def _by_sentence(self) -> ScoredDocuments:
        """Each sentence as a document that has the title and the metadata of its chunk. Indexed at
        the first search in sentences."""
        texts = (analysis.terms(text) for chunk in self._chunks for text in chunk.sentences())
        return self._index_of([number for number, _ in self._sentences], texts)

    def _index_of(
        self, owners: Sequence[int], contents: Iterable[Sequence[str]]
    ) -> ScoredDocuments:
        """Index documents that belong to the chunks of these numbers."""
        k1, b = self._manifest.k1, self._manifest.b
        fields = {
            TITLE: TextField((self._titles[number] for number in owners), k1, b),
            CONTENT: TextField(contents, k1, b),
        }
        chunks = [self._chunks[number] for number in owners]
        return ScoredDocuments(chunks, fields, self._manifest.metadata)

    def _best_sentences(
        self, scores: Mapping[int, float]
    ) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
        """Return, by chunk, the document of the best matching sentence, and the numbers of all."""
        best: dict[int, int] = {}
        numbers: dict[int, tuple[int, ...]] = {}
        for document in sorted(scores):
            chunk, number = self._sentences[document]
            numbers[chunk] = (*numbers.get(chunk, ()), number)
            if chunk not in best or scores[document] > scores[best[chunk]]:
                best[chunk] = document
        return best, numbers

    def _keyword_counts(self, keyword: str, request: KeywordRequest) -> Mapping[int, float]:
        if request.matching == "substring":
            return self._substring_counts(keyword.lower(), request.deadline)
        documents = self._by_chunk.until(request.deadline)
        counts: dict[int, float] = {}
        for terms in spellings_of(keyword):
            for number, count in documents.occurrences(terms).items():
                counts[number] = counts.get(number, 0) + count
        return counts

    def _substring_counts(self, text: str, deadline: Deadline | None) -> dict[int, float]:
        counts: dict[int, float] = {}
        for number, chunk in enumerate(self._chunks):
            if deadline is not None:
                deadline.check()
            count = chunk.title.lower().count(text) + chunk.content.lower().count(text)
            if text and count:
                counts[number] = count
        return counts

    def _page(
        self,
        scores: Mapping[int, float],
        count: int,
        request: SearchRequest | KeywordRequest,
        sentences: Mapping[int, tuple[int, ...]] | None = None,
    ) -> Page:
        """Return the requested page of the chunks with these scores; ``count`` is the total."""
        end = request.offset + request.top_k
        sort = request.sort if isinstance(request, SearchRequest) else None
        most = request.per_document if isinstance(request, SearchRequest) else None
        place = self._places(sort)
        last = len(scores) if most is not None else end
        ranked = nsmallest(
            last, scores, key=lambda number: (place.get(number, 0), -scores[number], number)
        )
        passages = len(scores)
        if most is not None:
            ranked = self._at_most(most, ranked)
            passages = len(ranked)
        hits = (
            Hit.of(
                self._chunks[number],
                scores[number],
                text=request.with_text,
                matched_sentences=sentences[number] if sentences else (),
            )
            for number in islice(ranked, request.offset, end)
        )
        return Page(tuple(hits), count, True, passages if end > passages else None)

    def _places(self, sort: SortBy | None) -> dict[int, int]:
        """Return the place of the value of each chunk in the order, below 0; a chunk without a
        value has none."""
        if sort is None:
            return {}
        column = self._by_chunk.column(sort.field)
        values = sorted(column, key=lambda value: value, reverse=sort.descending)
        places: dict[int, int] = {}
        for place, value in enumerate(values):
            for number in column[value]:
                places.setdefault(number, place - len(values))
        return places

    def _at_most(self, most: int, ranked: Iterable[int]) -> list[int]:
        """Return the chunks without those that follow ``most`` of the same document."""
        kept: list[int] = []
        shown: dict[str, int] = {}
        for number in ranked:
            doc_id = self._chunks[number].doc_id
            shown[doc_id] = shown.get(doc_id, 0) + 1
            if shown[doc_id] <= most:
                kept.append(number)
        return kept


def _explain(
    documents: ScoredDocuments,
    node: Node,
    boost: float,
    matched: set[int],
    leaves: list[tuple[TextLeaf, dict[str, dict[int, float]]]],
) -> None:
    """Add the leaves below a node, with their scores in the documents of ``matched``."""
    if isinstance(node, TextLeaf):
        by_field = documents.leaf_scores(node, float32(boost * float32(node.weight)))
        kept = {
            field: {document: scores[document] for document in matched.intersection(scores)}
            for field, scores in by_field.items()
        }
        leaves.append((node, kept))
    elif isinstance(node, And | Or):
        boost = float32(boost * float32(node.weight))
        for child in node.children:
            if isinstance(child, Prefer):
                child = child.child
            if not isinstance(child, Not | Demote):
                _explain(documents, child, boost, matched & documents.matches(child), leaves)


def _manifest(
    chunks: Sequence[Chunk],
    metadata: Mapping[str, MetadataType],
    k1: float,
    b: float,
    already_chunked: bool,
    sentences: bool,
) -> Manifest:
    documents = {chunk.doc_id: chunk for chunk in chunks}
    digest = CorpusDigest.of(chunks)
    return Manifest(
        engine="memory",
        engine_version="1",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=len(documents),
        chunks=len(chunks),
        sentences=sum(len(chunk.sentence_ends) for chunk in chunks),
        tokens=sum(count_tokens(chunk.content) for chunk in chunks),
        title_characters=sum(len(document.title) for document in documents.values()),
        chunk_tokens=1000,
        already_chunked=already_chunked,
        k1=k1,
        b=b,
        metadata=dict(metadata),
        without=() if sentences else ("sentences",),
        fingerprint=fingerprint_hex(digest.fingerprint),
        placement=fingerprint_hex(digest.placement),
    )

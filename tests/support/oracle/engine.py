"""MemoryEngine, the oracle: trees evaluated exactly, in plain Python, without an index on disk.

The engines are tested against it; it shares no code with them. Order and scores are those of
Lucene, computed in the same 32-bit steps, except that loose phrases with a repeated word score
differently. It is slow, and checks nothing that an index would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np

from arag_search.corpus import Chunk, heading_of, kind_of, nfc
from arag_search.engines.base import (
    MAX_TOTAL,
    Count,
    Deadline,
    Deletions,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    Granularity,
    KeywordRequest,
    Mask,
    Neighbours,
    Ordinals,
    Page,
    SearchRequest,
    SortBy,
    ValueCount,
)
from arag_search.engines.hits import Hit, LeafScore
from arag_search.errors import IndexClosedError, NotServedError, UnknownChunkError
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.matching import Words
from arag_search.query import analysis
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import CONTENT, DOC_ID, FORM_FIELDS, TEXT_FIELDS, TITLE, MetadataType
from arag_search.query.forms import steps
from arag_search.query.operators import PREFER
from arag_search.query.tree import And, Modifier, Node, Or, TextLeaf, render
from arag_search.tokens import count_tokens
from tests.support.oracle.documents import Documents
from tests.support.oracle.field import TextField, float32
from tests.support.oracle.plan import alternatives, plan_of

LANGUAGE = "en"
"""The language of the indexes of tests, unless they say another."""

_NO_METADATA: Mapping[str, MetadataType] = {}


class MemoryEngine:
    """A SearchEngine over chunks held in memory."""

    is_remote: ClassVar[bool] = False
    withheld = ""

    def __init__(
        self,
        chunks: Iterable[Chunk],
        *,
        metadata: Mapping[str, MetadataType] = _NO_METADATA,
        k1: float = 1.2,
        b: float = 0.75,
        already_chunked: bool = False,
        sentences: bool = True,
        language: str = LANGUAGE,
    ) -> None:
        """Index the chunks, in any order, whose ids and ordinals must be distinct.

        ``metadata`` declares the fields that queries may name, ``language`` is that of the normal
        forms of words. With ``sentences`` False there is no
        sentence granularity.
        """
        self._chunks = sorted(chunks, key=lambda chunk: chunk.ordinal)
        self._numbers = {chunk.id: number for number, chunk in enumerate(self._chunks)}
        self._by_ordinal = {chunk.ordinal: number for number, chunk in enumerate(self._chunks)}
        assert len(self._numbers) == len(self._by_ordinal) == len(self._chunks)
        self._manifest = dataclasses.replace(
            _manifest(self._chunks, metadata, k1, b, already_chunked, sentences),
            language=language,
            forms=steps(language) if language else (),
        )
        self._by_chunk = self._index_of(
            self._chunks,
            [chunk.content for chunk in self._chunks],
            [chunk.heading for chunk in self._chunks],
        )
        # Each sentence is a document with the title and the metadata of its chunk.
        self._sentences = [
            (number, at)
            for number, chunk in enumerate(self._chunks)
            for at in range(len(chunk.sentence_ends))
        ]
        self._by_sentence = self._index_of(
            [self._chunks[number] for number, _ in self._sentences],
            [text for chunk in self._chunks for text in chunk.sentences()],
            [
                heading_of(self._chunks[number].title, self._chunks[number].outline, (at,))
                for number, at in self._sentences
            ],
        )
        self._closed = False

    @property
    def manifest(self) -> Manifest:
        """The manifest of the chunks. Its fingerprint is that of the same corpus in any engine."""
        return self._manifest

    def search(self, request: SearchRequest) -> Page:
        """See SearchEngine."""
        documents = self._documents(request.granularity, request.deadline)
        named = documents.with_names(request.query)
        if named is None:
            tree, language = documents.read(request.query)
            documents = documents.reading(language)
            scores = documents.scores(plan_of(tree, language))
            counted = _is_counted(tree, language)
        else:
            scores, counted = dict.fromkeys(named, 0.0), True
        scores = {
            number: scores[number] for number in documents.within(request.scope) & set(scores)
        }
        if (first := request.from_ordinal) is not None:
            by_sentence = request.granularity == "sentence"
            owners = [at for at, _ in self._sentences] if by_sentence else range(len(self._chunks))
            scores = {n: 0.0 for n in scores if self._chunks[owners[n]].ordinal >= first}
        by_chunk, sentences = scores, dict[int, tuple[int, ...]]()
        if request.granularity == "sentence":
            best, sentences = self._best_sentences(scores)
            # Equal scores are in corpus order of the sentences, which is that of their chunks.
            by_chunk = {chunk: scores[document] for chunk, document in best.items()}
        page = self._page(by_chunk, len(scores), request, sentences)
        if counted and request.from_ordinal is None:
            page = page.with_total(len(scores))
        if request.granularity == "chunk" or request.whole_text:
            return page
        return dataclasses.replace(page, hits=tuple(map(Hit.with_matched_text, page.hits)))

    def keyword_search(self, request: KeywordRequest) -> Page:
        """See SearchEngine."""
        allowed = self._documents("chunk", request.deadline).within(request.scope)
        totals: dict[int, float] = {}
        for keyword in map(nfc, request.keywords):
            counts = (
                self._substring_counts(keyword.lower())
                if request.matching == "substring"
                else self._token_counts(keyword)
            )
            for number in allowed.intersection(counts):
                totals[number] = totals.get(number, 0) + counts[number] * len(keyword)
        scores = {number: float32(total) for number, total in totals.items()}
        return self._page(scores, len(scores), request)

    def counts(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> list[int]:
        """See SearchEngine."""
        self._check_open()
        result: list[int] = []
        for query, granularity in queries:
            documents = self._documents(granularity, deadline)
            count = len(documents.matching(query) & documents.within(scope))
            result.append(count if exact else min(count, MAX_TOTAL + 1))
        return result

    def counts_and_pages(
        self,
        queries: Sequence[tuple[ResolvedPlan, Granularity]],
        requests: Sequence[SearchRequest],
        scope: ResolvedPlan | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> tuple[list[int], list[Page]]:
        """See SearchEngine."""
        counts = self.counts(queries, scope, deadline, exact)
        return counts, list(map(self.search, requests))

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        """See SearchEngine."""
        documents = self._documents(request.granularity, request.deadline)
        allowed = documents.within(request.scope)
        fields = tuple(
            self._values_of(documents, name, allowed, request.values) for name in request.fields
        )
        return FieldsPage(len(allowed), fields)

    def _values_of(
        self, documents: Documents, name: str, allowed: set[int], most: int
    ) -> FieldValues:
        """Return the values of a field in the allowed documents."""
        if name in TEXT_FIELDS:
            return FieldValues(name, len(documents.with_words(name) & allowed))
        column = {
            value: held & allowed
            for value, held in documents.column(name).items()
            if held & allowed
        }
        chunks = len(set[int]().union(*column.values()))
        if name == DOC_ID or self._manifest.metadata[name] in ("keyword", "boolean"):
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
        tree, language = documents.read(request.query)
        documents = documents.reading(language)
        leaves: list[tuple[TextLeaf, dict[str, dict[int, float]]]] = []
        _explain(documents, tree, 1.0, documents.matches(tree), leaves)
        best: dict[int, int] = {number: number for number in self._numbers.values()}
        if request.granularity == "sentence":
            best, _ = self._best_sentences(documents.scores(plan_of(tree, language)))
        result: list[list[LeafScore]] = []
        for chunk_id in ids:
            if chunk_id not in self._numbers:
                raise UnknownChunkError(f'No passage "{chunk_id}".')
            document = best.get(self._numbers[chunk_id], -1)
            by_leaf = [
                {name: scores[document] for name, scores in fields.items() if document in scores}
                for _, fields in leaves
            ]
            explained = zip(leaves, by_leaf, strict=True)
            result.append([LeafScore(render(leaf), scores) for (leaf, _), scores in explained])
        return result

    def read(self, ids: Sequence[str], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """See SearchEngine."""
        return self._chunks_of(map(self._numbers.get, ids), scope)

    def neighbours(self, chunks: Sequence[Chunk], scope: ResolvedPlan | None) -> list[Neighbours]:
        """See SearchEngine. A neighbour out of scope is replaced by the nearest one in scope."""
        return [self._neighbours(chunk, scope) for chunk in chunks]

    def _neighbours(self, chunk: Chunk, scope: ResolvedPlan | None) -> Neighbours:
        before: str | None = None
        for other in self.scan(scope):
            if self._manifest.already_chunked or other.doc_id == chunk.doc_id:
                if other.ordinal > chunk.ordinal:
                    return before, other.id
                if other.ordinal < chunk.ordinal:
                    before = other.id
        return before, None

    def chunks_at(self, ordinals: Sequence[int], scope: ResolvedPlan | None) -> list[Chunk | None]:
        """See SearchEngine."""
        return self._chunks_of(map(self._by_ordinal.get, ordinals), scope)

    def ordinals(
        self,
        scope: ResolvedPlan | None = None,
        deadline: Deadline | None = None,
        granularity: Granularity = "chunk",
    ) -> Iterator[int]:
        """See SearchEngine."""
        for document in sorted(self._documents(granularity, deadline).within(scope)):
            number, at = self._sentences[document] if granularity == "sentence" else (document, 0)
            yield self._chunks[number].ordinal + at

    def known(self, field: str, values: Sequence[str]) -> Sequence[str]:
        return values

    def among(
        self, ordinals: Ordinals, scope: ResolvedPlan, deadline: Deadline | None = None
    ) -> Mask:
        """See SearchEngine. The number is not limited."""
        return np.isin(ordinals, list(self.ordinals(scope, deadline)))

    def deletions(self) -> Deletions:
        """See SearchEngine. There are none."""
        return Deletions(0, 0.0)

    def check_ready(self) -> None:
        """See SearchEngine."""
        self._check_open()

    def scan(self, scope: ResolvedPlan | None, deadline: Deadline | None = None) -> Iterator[Chunk]:
        """See SearchEngine."""
        self._check_open()
        return self._stream(sorted(self._by_chunk.within(scope)))

    def close(self) -> None:
        """See SearchEngine. May be called again."""
        self._closed = True

    def _chunks_of(
        self, numbers: Iterable[int | None], scope: ResolvedPlan | None
    ) -> list[Chunk | None]:
        self._check_open()
        allowed = self._by_chunk.within(scope)
        return [self._chunks[number] if number in allowed else None for number in numbers]

    def _stream(self, numbers: Iterable[int]) -> Iterator[Chunk]:
        for number in numbers:
            self._check_open()
            yield self._chunks[number]

    def _check_open(self) -> None:
        if self._closed:
            raise IndexClosedError("The index in memory is closed.", do="Open it again.")

    def _documents(self, granularity: Granularity, deadline: Deadline | None) -> Documents:
        """Return all chunks or sentences. A deadline is checked here alone."""
        self._check_open()
        if deadline is not None:
            deadline.check()
        if granularity == "chunk":
            return self._by_chunk
        if not self._manifest.has_sentences:
            raise NotServedError("The index holds no sentences.", allowed="granularity chunk")
        return self._by_sentence

    def _index_of(
        self, owners: Sequence[Chunk], contents: Sequence[str], headings: Sequence[Sequence[str]]
    ) -> Documents:
        """Index documents that belong to these chunks."""
        k1, b, language = self._manifest.k1, self._manifest.b, self._manifest.language
        fields: dict[str, TextField] = {}
        for name, texts in ((TITLE, [chunk.title for chunk in owners]), (CONTENT, contents)):
            fields[name] = TextField(map(analysis.terms, texts), k1, b)
            if language:
                searched = headings if name == TITLE else [(text,) for text in texts]
                forms = (
                    Words(*parts, kind=kind_of(chunk.doc_id)).terms(language)
                    for chunk, parts in zip(owners, searched, strict=True)
                )
                fields[FORM_FIELDS[name]] = TextField(forms, k1, b)
        return Documents(owners, contents, fields, self._manifest.metadata)

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

    def _token_counts(self, keyword: str) -> Mapping[int, float]:
        counts: dict[int, float] = {}
        for terms in spellings_of(keyword):
            for number, count in self._by_chunk.occurrences(terms).items():
                counts[number] = counts.get(number, 0) + count
        return counts

    def _substring_counts(self, text: str) -> Mapping[int, float]:
        counts = {
            number: chunk.title.lower().count(text) + chunk.content.lower().count(text)
            for number, chunk in enumerate(self._chunks)
        }
        return {number: count for number, count in counts.items() if text and count}

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
        ranks = self._ranks(sort)
        ranked = sorted(scores, key=lambda number: (ranks.get(number, 0), -scores[number], number))
        ranked = self._at_most(most, ranked)
        hits = (
            Hit.of(self._chunks[number], scores[number], text=request.with_text)._replace(
                matched_sentences=sentences[number] if sentences else ()
            )
            for number in ranked[request.offset : end]
        )
        return Page(tuple(hits), Count(count), len(ranked) if end > len(ranked) else None)

    def _ranks(self, sort: SortBy | None) -> dict[int, int]:
        """Return the rank of the value of each chunk in the order, below 0; a chunk without a
        value has none."""
        if sort is None:
            return {}
        column = self._by_chunk.column(sort.field)
        values = sorted(column, key=lambda value: value, reverse=sort.descending)
        ranks: dict[int, int] = {}
        for rank, value in enumerate(values):
            for number in column[value]:
                ranks.setdefault(number, rank - len(values))
        return ranks

    def _at_most(self, most: int | None, ranked: Sequence[int]) -> Sequence[int]:
        """Return the chunks without those that follow ``most`` of the same document."""
        if most is None:
            return ranked
        kept: list[int] = []
        shown: dict[str, int] = {}
        for number in ranked:
            doc_id = self._chunks[number].doc_id
            shown[doc_id] = shown.get(doc_id, 0) + 1
            if shown[doc_id] <= most:
                kept.append(number)
        return kept


def _explain(
    documents: Documents,
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
            if isinstance(child, Modifier) and child.operator is PREFER:
                child = child.child
            if not isinstance(child, Modifier):
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


def _is_counted(tree: Node, language: str) -> bool:
    """Return whether a query is a single clause that no engine must look into documents for."""
    if isinstance(tree, TextLeaf):
        return all(
            len(words) == 1
            for _, pattern in alternatives(tree, language)
            for words in pattern.spellings
        )
    return not isinstance(tree, And | Or)

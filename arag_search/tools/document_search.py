"""search: the tool of AgenticRAG that finds documents with several queries at once (section
3.3)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import Field

from arag_search.corpus import nfc
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.problems import QueryError
from arag_search.search.by_vectors import words_query
from arag_search.search.fusion import fuse
from arag_search.search.index import Index
from arag_search.search.lines import DocumentLines
from arag_search.search.results import SearchHit, SearchResult
from arag_search.search.scoping import narrowed
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.base import (
    FULL_TEXT_RESULT_TOKENS,
    Arguments,
    ReadSet,
    Tool,
    ToolResult,
    ToolSettings,
    error_result,
)
from arag_search.tools.document_block import DocumentBlock, part_of
from arag_search.tools.document_settings import (
    DocumentSettings,
    SearchBackend,
    chosen_backend,
    vector_units,
)
from arag_search.tools.index_description import described
from arag_search.tools.references import ShownReference
from arag_search.tools.rendering import (
    Block,
    fit,
    metadata_text,
    retrieved_tokens,
)
from arag_search.tools.vector_search import FILTER, none_if_empty
from arag_search.vectors.base import VectorUnit

MAX_QUERIES = 5
PASSAGES_A_DOCUMENT = 3
"""The best passage of a document, and up to two further ones."""
_FETCHED = 5  # passages asked for, per document wanted, where a search cannot bound them itself
_SHARE_OF_QUERIES = 4  # the queries take at most a quarter of a reply
_MAX_METADATA_TOKENS = 80
_FILE_FIELDS = ("file", "type")
GO_DEEPER = "Go deeper: find with patterns, open with line_number."
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class DocumentSearchArguments(Arguments):
    """The arguments of search."""

    queries: list[QueryText] = Field(
        min_length=1,
        max_length=MAX_QUERIES,
        description="One to five wordings of what is needed, or several needs, each a query.",
    )
    filter: str = Field("", description=FILTER)


class SingleSearchArguments(Arguments):
    """The arguments of search without several queries (section 5.5)."""

    query: str = Field(min_length=1, max_length=MAX_CHARACTERS, description="What is needed.")
    filter: str = Field("", description=FILTER)


@dataclass(slots=True)
class _Found:
    """A document that was found: its position in the order of discovery, its best passages, each
    with the query that found it, and the numbers of the queries, from 0."""

    place: int
    doc_id: str
    title: str
    hits: list[SearchHit] = field(default_factory=list[SearchHit])
    texts: list[str] = field(default_factory=list[str])
    queries: list[int] = field(default_factory=list[int])

    def note(self, hit: SearchHit, query: int, text: str) -> None:
        """Note a passage that a query has found."""
        if query not in self.queries:
            self.queries.append(query)
        known = {other.id for other in self.hits}
        if len(known) < PASSAGES_A_DOCUMENT and hit.id not in known:
            self.hits.append(hit)
            self.texts.append(text)


class DocumentSearch(Tool):
    """A search for documents: the rankings of its queries are merged by reciprocal rank fusion
    (K = 60), equal scores by the first query that found them, then by rank.

    Sentences that are still visible are not shown again.
    """

    name = "search"
    arguments = DocumentSearchArguments

    def __init__(
        self,
        index: Index,
        settings: DocumentSettings,
        *,
        max_result_tokens: int = FULL_TEXT_RESULT_TOKENS,
        vectors: VectorUnit = "passage",
        published: bool = False,
    ) -> None:
        self.settings = settings
        self.published = published
        self.backend: SearchBackend = chosen_backend(settings, index)
        self.advice = GO_DEEPER
        self.unit: VectorUnit = _unit(self.backend, vectors, index)
        super().__init__(
            index,
            description=described(
                "search",
                index,
                several=settings.multi_query,
                logical=self.backend == "logical",
                meaning=self.backend in ("hybrid", "semantic"),
            ),
            max_result_tokens=max_result_tokens,
        )

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> DocumentSearch:
        documents = settings.documents or DocumentSettings()
        kind = DocumentSearch if documents.multi_query else SingleDocumentSearch
        return kind(
            index,
            documents,
            max_result_tokens=settings.max_result_tokens,
            vectors=settings.vectors,
            published=settings.reproduces is not None,
        )

    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        started = time.perf_counter()
        given = cast(DocumentSearchArguments, arguments)
        try:
            narrowed(None, none_if_empty(given.filter), self.index.manifest.query_schema)
        except QueryError as error:
            return error_result(str(error))
        queries, notes = distinct_queries(given.queries)
        results = [self._searched(query, none_if_empty(given.filter)) for query in queries]
        if all(isinstance(result, QueryError) for result in results):
            return error_result("\n".join(str(result) for result in results))
        documents = self._fused(queries, results)
        return self._reply(queries, results, documents, notes, read_set, started)

    def _searched(self, query: str, filter: str | None) -> SearchResult | QueryError:
        """Return the result of one query, or what is wrong with the query."""
        index, wanted = self.index, self.settings.results_per_query
        try:
            if self.backend == "logical":
                return index.logical_search(
                    query,
                    top_k=PASSAGES_A_DOCUMENT * wanted,
                    per_document=PASSAGES_A_DOCUMENT,
                    filter=filter,
                    published=self.published,
                )
            if self.backend == "words":
                words, _ = words_query(nfc(query))
                return index.logical_search(
                    '""' if words is None else str(words),
                    top_k=PASSAGES_A_DOCUMENT * wanted,
                    per_document=PASSAGES_A_DOCUMENT,
                    filter=filter,
                    feedback=False,
                    published=True,  # they are no logical query
                )
            if self.backend == "hybrid":
                return index.hybrid_search(
                    query, top_k=_FETCHED * wanted, filter=filter, vectors=self.unit
                )
            if self.unit == "sentence":
                return index.semantic_search(query, top_k=_FETCHED * wanted, filter=filter)
            return index.naive_embedding_search(query, top_k=_FETCHED * wanted, filter=filter)
        except QueryError as error:
            return error

    def _fused(
        self, queries: Sequence[str], results: Sequence[SearchResult | QueryError]
    ) -> list[_Found]:
        """Return the documents of all queries, best first."""
        by_id: dict[str, _Found] = {}
        rankings: list[list[int]] = []
        for number, result in enumerate(results):
            ranking: dict[str, int] = {}
            for hit in result.hits if isinstance(result, SearchResult) else ():
                if hit.doc_id not in ranking and len(ranking) == self.settings.results_per_query:
                    continue
                document = by_id.setdefault(hit.doc_id, _Found(len(by_id), hit.doc_id, hit.title))
                ranking[hit.doc_id] = document.place
                document.note(hit, number, queries[number])
            rankings.append(list(ranking.values()))
        documents = list(by_id.values())
        ordered = [documents[item.ordinal] for item in fuse(*rankings)]
        return ordered[: self.settings.results_per_call or None]

    def _reply(
        self,
        queries: Sequence[str],
        results: Sequence[SearchResult | QueryError],
        documents: Sequence[_Found],
        notes: Sequence[str],
        read_set: ReadSet,
        started: float,
    ) -> ToolResult:
        search = read_set.references.begin_search()
        share = self.max_result_tokens // _SHARE_OF_QUERIES // len(queries)
        head = _lines_on_queries(results, self.settings.results_per_query, share)
        head += [f"Note: {note}" for note in notes]
        if not documents:
            text = cut_to("\n".join([_none(results), *head]), self.max_result_tokens)
            return ToolResult(
                text, "empty", (), 0, True, 0, count_tokens(text), _milliseconds(started)
            )
        known = {reference.doc_id for reference in read_set.references}
        seen = sum(document.doc_id in known for document in documents)
        first = _summary(results, documents, seen)
        blocks = self._blocks(documents, len(queries), search, read_set)

        def frame(kept: Sequence[Block]) -> tuple[str, str]:
            return "\n".join([first, *head]), self.advice

        fitted = fit(frame, blocks, self.max_result_tokens)
        kept = [block for block in fitted.blocks if isinstance(block, DocumentBlock)]
        shown: list[ShownReference] = []
        for block in kept:
            passages = tuple(dict.fromkeys(block.shown_passages()))
            block.reference.note(passages)
            shown.append(ShownReference(block.reference.id, block.reference.doc_id, passages))
            block.note_seen(read_set)
        return ToolResult(
            text=fitted.text,
            status="ok" if shown else "empty",
            ids=tuple(dict.fromkeys(id for document in shown for id in document.passages)),
            total=None,
            total_is_exact=True,
            retrieved_tokens=retrieved_tokens(kept),
            result_tokens=count_tokens(fitted.text),
            milliseconds=_milliseconds(started),
            passages=fitted.spans,
            references=tuple(shown),
        )

    def _blocks(
        self, documents: Sequence[_Found], queries: int, search: int, read_set: ReadSet
    ) -> list[Block]:
        """Return the documents to show, with references and lines."""
        all_lines = self.index.document_lines([document.doc_id for document in documents])
        blocks: list[Block] = []
        for document, lines in zip(documents, all_lines, strict=True):
            if lines is None:  # deleted since it was found
                continue
            reference = read_set.references.of_document(
                document.doc_id, document.title, search, reuse=self.settings.reuse_references
            )
            by = document.queries if queries > 1 else ()
            parts = [
                part_of(lines, hit, text, short=at > 0, seen=read_set.seen.get(hit.id, ()))
                for at, (hit, text) in enumerate(zip(document.hits, document.texts, strict=True))
            ]
            about = _about(lines, [number + 1 for number in by])
            blocks.append(DocumentBlock.of(reference, about, parts, hides=read_set.is_kept))
        return blocks


class SingleDocumentSearch(DocumentSearch):
    """A search for documents by one query."""

    arguments = SingleSearchArguments

    def _call(self, arguments: SingleSearchArguments, read_set: ReadSet) -> ToolResult:
        several = DocumentSearchArguments(queries=[arguments.query], filter=arguments.filter)
        return super()._call(several, read_set)


def distinct_queries(queries: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return queries that differ by more than case and white space, with a note on the others."""
    kept: dict[str, str] = {}
    for query in queries:
        kept.setdefault(" ".join(nfc(query).casefold().split()), query)
    same = len(queries) - len(kept)
    if not same:
        return list(kept.values()), []
    return list(kept.values()), [f"{same} of {len(queries)} queries repeat another one."]


def _unit(backend: SearchBackend, preferred: VectorUnit, index: Index) -> VectorUnit:
    """Return the unit of the vectors to rank by: the preferred one if the index has it."""
    if backend not in ("hybrid", "semantic"):
        return preferred
    units = vector_units(index)
    if preferred in units or not units:
        return preferred
    return "sentence" if preferred == "passage" else "passage"


def _lines_on_queries(
    results: Sequence[SearchResult | QueryError], most: int, max_tokens: int
) -> list[str]:
    """Return a sentence about each query that ran, all on one line, and lines about those that
    found nothing or did not run; each of at most ``max_tokens``."""
    ran: list[str] = []
    others: list[str] = []
    for number, result in enumerate(results, 1):
        if isinstance(result, QueryError):
            others.append(f"{number}: {cut_to(str(result), max_tokens)}")
            continue
        documents = min(len({hit.doc_id for hit in result.hits}), most)
        ran.append(f"{number}: {documents} for {cut_to(result.understood, max_tokens)}.")
        if result.feedback is not None:
            others.append(f"{number}: {cut_to(str(result.feedback), max_tokens)}")
    return [" ".join(ran), *others] if ran else others


def _summary(
    results: Sequence[SearchResult | QueryError], documents: Sequence[_Found], seen: int
) -> str:
    """Return the first line of a reply: how many documents there are."""
    several = sum(len(document.queries) > 1 for document in documents)
    details: list[str] = []
    if several:
        by = "both" if len(results) == 2 else "several"
        details.append(f"{several} found by {by}")
    if seen:
        details.append(f"{seen} seen before")
    note = f" ({', '.join(details)})" if details else ""
    queries = "1 query" if len(results) == 1 else f"{len(results)} queries"
    count = "1 document" if len(documents) == 1 else f"{len(documents)} documents"
    return f"{queries}, {count}{note}."


def _none(results: Sequence[SearchResult | QueryError]) -> str:
    if len(results) == 1:
        return "No document matches the query."
    return f"No document matches any of the {len(results)} queries."


def _about(lines: DocumentLines, queries: Sequence[int]) -> str:
    """Return the line under the title of a document: its file, its length, its metadata and the
    queries that found it."""
    fields = dict(lines.metadata)
    first = {name: fields.pop(name) for name in _FILE_FIELDS if name in fields}
    texts = [
        metadata_text(first),
        f"lines: {len(lines)}",
        metadata_text(fields),
        f"queries: {', '.join(map(str, queries))}" if queries else "",
    ]
    return f"({cut_to('; '.join(text for text in texts if text), _MAX_METADATA_TOKENS)})"


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000

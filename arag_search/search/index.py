"""An open index: the object that front ends, tools and Python code search with.

with arag_search.open_index("my-index") as index:
    for hit in index.logical_search('"antonio vivaldi" AND librett*').hits:
        print(hit.id, hit.title, hit.snippet)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from inspect import isfunction
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar

from arag_search.corpus import MAX_SENTENCES, Chunk, is_unicode, nfc
from arag_search.engines.base import (
    DEFAULT_SEARCH_TIMEOUT_S,
    Deadline,
    FieldsRequest,
    Granularity,
    KeywordRequest,
    LeafScore,
    Matching,
    Page,
    SearchEngine,
    SearchRequest,
    check_search_timeout,
)
from arag_search.engines.open import open_engine
from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    AragError,
    ArgumentError,
    NotServedError,
    QueryTimeoutError,
    UnknownChunkError,
)
from arag_search.manifest import Manifest
from arag_search.query import analysis
from arag_search.query.fields import DOC_ID, TITLE
from arag_search.query.parser import (
    Operator,
    Options,
    ParsedQuery,
    parse,
    parse_checked,
    parse_filter,
)
from arag_search.query.problems import NOTE_UNRANKED
from arag_search.query.tree import (
    KeywordEquals,
    Node,
    Phrase,
    Regex,
    Scope,
    TextLeaf,
    any_of,
    leaves,
    positive_leaves,
)
from arag_search.search.branches import Branches, keyword_counts
from arag_search.search.by_vectors import NearSentence, VectorSearch
from arag_search.search.documents import (
    MAX_COMPARED,
    IndexDocument,
    documents_of,
    nearest_ids,
    unknown_document,
)
from arag_search.search.feedback import ClauseCount, Feedback
from arag_search.search.feedback import feedback as feedback_on
from arag_search.search.fields import (
    DEFAULT_VALUES,
    Contents,
    FieldsResult,
    FieldSummary,
    contents_of,
    fields_of,
    metadata_fields,
    parse_sort,
)
from arag_search.search.following import FollowedState, Follower, UnfinishedStateError
from arag_search.search.hints import (
    KEYWORD_NARROWING,
    FrequentWords,
    advising_on_timeout,
    narrowing,
)
from arag_search.search.keywords import checked_keywords, keyword_notes, keyword_scores
from arag_search.search.lines import DocumentLines, LinesCache, is_current
from arag_search.search.nearest import ValueReader, lowered_by, unmet_preferences
from arag_search.search.patterns import with_matches
from arag_search.search.relaxing import nearest_hits, relaxed_requests
from arag_search.search.results import (
    CORPUS_ORDER,
    MAX_REACH,
    BranchHit,
    NearestHit,
    ReadChunk,
    SearchResult,
    Show,
    check_page,
    check_per_document,
    counted_all,
    documents_with,
    hit_of,
    joined,
    narrowed,
    search_result,
)
from arag_search.search.snippets import Highlighter, Snippets, keyword_sentences
from arag_search.search.spelling import Spelling
from arag_search.search.words import WordSummary, words_of
from arag_search.system.arguments import checked
from arag_search.vectors.base import Encoder, EncoderIdentity, VectorUnit
from arag_search.vectors.opening import OpenVectors, VectorSource, sidecar_source

SERVER_LOOKS_S = 1.0
"""The shortest time between two requests that ask a server whether an index has changed."""

_T = TypeVar("_T")
_PAGE_OPTIONS = ("offset", "after", "top_k")
_FEWER = "Name fewer of them, or narrow the scope with a filter."


class _Extras(NamedTuple):
    """What a logical search returns besides its page; see Index.logical_search."""

    feedback: bool
    relax: bool
    branches: bool
    exclusions: bool
    operators: bool


@dataclass(slots=True)
class _Executed:
    """What a logical search has found."""

    page: Page
    feedback: Feedback | None = None
    nearest: tuple[NearestHit, ...] = ()
    branches: tuple[ClauseCount, ...] = ()
    unrepresented: tuple[BranchHit, ...] = ()
    note: str = ""


class Index:
    """An open index. Safe to use from several threads; close it, or use it as a context manager.

    ``scope`` is a filter that every search, count and read obeys. ``vectors`` opens the vectors of
    the index; without it, searches by vectors raise NotServedError. A query whose execution in the
    engine takes longer than ``search_timeout_s`` seconds is stopped, and raises QueryTimeoutError;
    None is no limit. ``manifest`` describes the index. ``is_outdated`` returns whether another
    state of the index has been published since it was opened.
    """

    def __init__(
        self,
        engine: SearchEngine,
        location: str,
        scope: Scope | None = None,
        on_close: Callable[[], None] | None = None,
        vectors: VectorSource | None = None,
        search_timeout_s: float | None = DEFAULT_SEARCH_TIMEOUT_S,
        is_outdated: Callable[[], bool] = lambda: False,
    ) -> None:
        check_search_timeout(search_timeout_s)
        self.is_outdated = is_outdated
        self.engine = engine
        self.manifest: Manifest = engine.manifest
        self.location = location
        self.scope = scope
        self.search_timeout_s = search_timeout_s
        self._on_close = on_close
        self._frequent_words = FrequentWords(engine)
        self._spelling = Spelling(engine)
        self._by_vectors = VectorSearch(engine, location, scope, vectors, search_timeout_s)
        self._schema = self.manifest.query_schema
        self._lines = LinesCache()
        self._is_part = False

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @checked
    def within(self, filter: str) -> Index:
        """Return the part of the index that a filter admits, as an index of its own.

        ``filter`` is a query of metadata clauses, such as ``acl:(everyone OR hr)``, which narrows
        the scope that there is. The part shares the open engine and vectors, and opens nothing. It
        ends with this index; closing it has no effect. ``manifest`` describes the whole index, and
        BM25 scores use statistics of the whole index; all else that a part returns is computed from
        its own passages. Raises QueryError for the filter.
        """
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        part = Index(self.engine, self.location, scope, search_timeout_s=self.search_timeout_s)
        part._by_vectors = self._by_vectors.within(scope)
        part._lines = self._lines
        part._schema = self._schema
        part._is_part = True
        return part

    def close(self) -> None:
        """Wait for searches in flight, then free all resources. Closing twice is allowed."""
        if self._is_part:
            return
        self._by_vectors.close()
        self.engine.close()
        if self._on_close is not None:
            self._on_close()

    @checked
    def parse(
        self,
        query: str,
        *,
        default_operator: Operator = "OR",
        operators: bool = True,
        published: bool = False,
    ) -> ParsedQuery:
        """Parse a query with the fields of this index. ``published`` is as in ``logical_search``.
        Raises QueryError."""
        return parse(
            query,
            self._schema,
            default_operator=default_operator,
            operators=operators,
            published=published,
        )

    @checked
    def logical_search(
        self,
        query: str,
        *,
        top_k: int = 5,
        offset: int = 0,
        filter: str | None = None,
        default_operator: Operator = "OR",
        granularity: Granularity = "chunk",
        operators: bool = True,
        snippets: bool = True,
        full_text: bool = False,
        explain: bool = False,
        feedback: bool = True,
        sort: str | None = None,
        per_document: int | None = None,
        relax: bool = False,
        branches: bool = False,
        published: bool = False,
        show: Show = "text",
        after: str | None = None,
    ) -> SearchResult:
        """Return passages that match a logical query (LogicalRAG), best BM25 score first.

        ``top_k`` is 1 to 1,000, ``offset + top_k`` at most 10,000. ``filter`` is a query of
        metadata clauses, which narrows the scope of the index for this call. Without ``snippets``
        no text is read. ``feedback`` counts the parts of a query that matches nothing, and names
        the nearest values of a field (in one more request). ``full_text`` reads whole passages even
        at sentence granularity, which takes a second request to a server.

        ``sort`` orders passages by a metadata field instead: ``year`` or ``year:asc`` (least value
        first) or ``year:desc``. Passages without a value come last; equal values are in order of
        score. ``per_document`` shows at most this many passages of a document, 1 to 1,000; the
        total counts all.

        With ``relax``, an AND that matches nothing gets ``nearest``: at most five passages, those
        that miss the fewest of its conditions, ranked by the score of the others. Exclusions and
        scope still apply. They are found in the same request as the counts of the parts.
        ``branches`` counts, in the request of the search itself, the phrases, title clauses and
        alternatives of a query that has several, and adds to a first page the best passage of each
        alternative of an OR that has none on it. None of these are hits. A note says so if the NOTs
        of the query remove more than half of what the rest finds.

        With ``published``, the query is read as in presets that reproduce a paper: PREFER and
        DEMOTE are words, and words match as they are written. The same applies without
        ``operators``.

        ``show`` "titles" lists passages: it reads no text and counts all matches; "lines" lists all
        sentences that match best, or at sentence granularity those that match. Of more than
        10,000, the list is in corpus order, unless another order, an offset or ``per_document`` is
        asked for, and goes on ``after`` the id of its last passage. With one passage per document,
        ``passages`` of the result is the number of documents.

        Raises QueryError for a query or filter with problems, ArgumentError, NotServedError if the
        index was built without sentences, QueryTimeoutError and IndexClosedError.
        """
        started = time.perf_counter()
        check_page(top_k, offset)
        if granularity == "sentence" and not self.manifest.has_sentences:
            raise NotServedError(
                "The index has no sentences.",
                where=self.location,
                allowed="granularity chunk",
                do="Build it again without --without sentences.",
            )
        check_per_document(per_document)
        lists = show != "text"
        snippets = snippets and show != "titles"
        in_ranks = bool(sort or per_document or offset)
        if after is not None and (in_ranks or not lists):
            raise ArgumentError(
                "after goes on with a list in corpus order.",
                allowed='show "titles" or "lines" without sort, per_document and offset',
                do="Leave the others out.",
            )
        schema = self._schema
        sorting = None if sort is None else parse_sort(sort, schema)
        options = Options(schema, default_operator, operators, published=published)
        parsed = parse_checked(query, options)
        scope, within = narrowed(self.scope, filter, schema)
        deadline = Deadline.after(self.search_timeout_s)
        advising = advising_on_timeout(deadline, self.location, lambda: narrowing(parsed.tree))
        with advising:
            tree = parsed.tree
            marked: tuple[TextLeaf | Regex, ...] = parsed.wanted
            if "/" in parsed.understood:
                tree = with_matches(tree, self.engine, granularity, scope, deadline)
                marked = (*marked, *(n for n in positive_leaves(tree) if isinstance(n, Regex)))
            whole = full_text or show == "lines"
            request = SearchRequest(
                tree, top_k, offset, granularity, scope, snippets, whole, deadline, sorting,
                per_document,
            )  # fmt: skip
            if after is not None:
                request = replace(request, from_ordinal=self._ordinal_after(after, scope))
            extras = _Extras(feedback and after is None, relax, branches, not published, operators)
            done = self._executed(request, extras)
            page, clause_counts = done.page, done.feedback
            if lists:
                request, page = self._listed(request, page, in_ranks=in_ranks)
            explanations: list[tuple[LeafScore, ...] | None] = [None] * len(page.hits)
            if explain:
                ids = [hit.id for hit in page.hits]
                explanations = [tuple(scores) for scores in self.engine.explain(request, ids)]
        chooser = Snippets(tree) if snippets and page.hits else None
        metadata = self.manifest.metadata
        lowered = lowered_by(tree, page.hits, metadata) if chooser else {}
        hits = [
            hit_of(
                hit,
                chooser.choose(hit, every=lists) if chooser else (),
                explanation,
                lowered.get(hit.id, ()),
                is_named=chooser is not None and chooser.names(hit),
            )
            for hit, explanation in zip(page.hits, explanations, strict=True)
        ]
        notes = [*parsed.notes, *([done.note] if done.note else [])]
        if sorting is not None or (feedback and not page.count):
            notes = [note for note in notes if note != NOTE_UNRANKED]
        may_name_title = f"{TITLE}:" in parsed.understood
        if may_name_title and not self.contents.has_titles and _names_title(parsed):
            notes.append("no passage of this index has a title: title: finds nothing.")
        if page.hits and self.scope is None and not lists:  # the note is about all passages
            note = self._frequent_words.note(parsed.wanted, granularity, deadline)
            notes += [note] if note else []
        notes += self._preference_notes(request, page) if chooser and not offset else []
        if feedback and (snippets or (lists and not page.hits)) and not offset:
            is_told = clause_counts is not None
            notes += self._spelling.notes(request, page.hits, is_told=is_told)
        return search_result(
            query,
            f"{parsed.understood}{within}",
            offset,
            hits,
            notes,
            started,
            page=page,
            show=show,
            unit="sentences" if granularity == "sentence" else "passages",
            feedback=clause_counts,
            sort=sorting if request.from_ordinal is None else CORPUS_ORDER,
            per_document=per_document,
            nearest=done.nearest,
            branches=done.branches,
            unrepresented=done.unrepresented,
            highlighter=Highlighter(marked, by_sentence=granularity == "sentence"),
        )

    def _listed(
        self, request: SearchRequest, page: Page, *, in_ranks: bool
    ) -> tuple[SearchRequest, Page]:
        """Return the page of a list, with the number of all matches, and the request for it: the
        first one of a list that is too long for ranks is in corpus order."""
        page = counted_all(self.engine, page, request)
        if request.per_document == 1 and request.granularity == "chunk":
            page = replace(page, passages=documents_with(self.engine, request))
        if request.from_ordinal is None and page.total > MAX_REACH and not in_ranks:
            request = replace(request, from_ordinal=0)
            page = self.engine.search(request).with_count(page.count)
        return request, page

    def _ordinal_after(self, id: str, scope: Scope | None) -> int:
        """Return the first ordinal after the passage with an id; 0 for an empty id."""
        (passage,) = self.engine.read([nfc(id)], scope) if id else (None,)
        if passage is None and id:
            raise unknown_chunks([id], self.location)
        return 0 if passage is None else passage.ordinal + MAX_SENTENCES

    def _preference_notes(self, request: SearchRequest, page: Page) -> list[str]:
        """Return the notes on preferences that no passage meets. Only preferences that no shown
        passage meets are counted."""
        unmet = unmet_preferences(request, page.hits, self.manifest.metadata)
        if not unmet:
            return []
        queries: list[tuple[Node, Granularity]] = [(condition, "chunk") for _, condition in unmet]
        try:
            counts = self.engine.counts(queries, request.scope, request.deadline)
        except QueryTimeoutError:  # the search itself was in time
            return []
        return [
            f"{prefer}: no passage that matches has it."
            for (prefer, _), count in zip(unmet, counts, strict=True)
            if not count
        ]

    def _executed(self, request: SearchRequest, options: _Extras) -> _Executed:
        """Return the result of a search, in one round trip, or in two if it finds nothing.

        On a server, values of fields take one more.
        """
        engine = self.engine
        is_split = options.branches and _is_plain(request)
        parts = None
        if is_split:
            parts = Branches(
                request,
                self.manifest,
                exclusions=options.exclusions,
                operators=options.operators,
            )
        if parts is not None and (parts.requests or parts.queries):
            counts, pages = engine.counts_and_pages(
                parts.queries, [request, *parts.requests], request.scope, request.deadline
            )
            done = _Executed(pages[0], note=parts.exclusion_note(pages[0], counts))
            if done.page.count:
                done.branches, done.unrepresented = parts.told(done.page, counts, pages[1:], engine)
        else:
            done = _Executed(engine.search(request))
        if done.page.count == 0 and (options.feedback or options.relax):
            self._explain_nothing(request, options, done)
        return done

    def _explain_nothing(self, request: SearchRequest, options: _Extras, done: _Executed) -> None:
        """Count the parts of a query that found nothing, and find the nearest passages."""
        relaxed = relaxed_requests(request) if options.relax and request.with_text else []
        pages: list[Page] = []

        def counts(queries: Sequence[tuple[Node, Granularity]]) -> list[int]:
            counted, nearest = self.engine.counts_and_pages(
                queries, relaxed, request.scope, request.deadline
            )
            pages.extend(nearest)
            return counted

        if options.feedback:
            reader = self._value_reader(request)
            done.feedback = feedback_on(request.query, request.granularity, counts, reader)
        elif relaxed:
            counts(())
        if pages:
            metadata = self.manifest.metadata
            done.nearest = nearest_hits(request.query, relaxed, pages, metadata)

    def _value_reader(self, search: SearchRequest) -> ValueReader:
        """Return a reader of the values of fields, within the scope and deadline of a search."""
        return lambda fields: self.engine.field_values(
            replace(fields, scope=search.scope, deadline=search.deadline)
        )

    @checked
    def fields(
        self, *names: str, values: int = DEFAULT_VALUES, filter: str | None = None
    ) -> FieldsResult:
        """Return the fields of the index, of all or those named: how many passages have them, the
        most frequent ``values`` (0 to 1,000) of keywords, and the ranges of numbers and dates.

        All numbers are exact, and count passages within the scope, which ``filter`` narrows. Raises
        QueryError for the filter, ArgumentError, QueryTimeoutError and IndexClosedError.
        """
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        deadline = Deadline.after(self.search_timeout_s)
        with advising_on_timeout(deadline, self.location, lambda: _FEWER):
            return fields_of(self.engine, names, values, scope, deadline)

    @checked
    def words(self, *words: str, filter: str | None = None) -> tuple[WordSummary, ...]:
        """Return how many passages have each of up to 70 words, prefixes, phrases and queries such
        as ``film AND librett*``: in title and text, in which written forms, and the nearest words
        of one that occurs nowhere. Numbers and errors are as in ``fields``."""
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        deadline = Deadline.after(self.search_timeout_s)
        with advising_on_timeout(deadline, self.location, lambda: _FEWER):
            return words_of(self.engine, words, self.parse, scope, deadline)

    @cached_property
    def metadata_fields(self) -> tuple[FieldSummary, ...]:
        """The declared fields with frequent values or ranges, within the scope: in descriptions of
        tools. They are read once, and may be approximate after updates; ``fields`` counts."""
        return metadata_fields(self.engine, self.scope, Deadline.after(self.search_timeout_s))

    @cached_property
    def contents(self) -> Contents:
        """Whether passages in the scope have titles and neighbours, for descriptions of tools and
        notes. It is read once."""
        return contents_of(self.engine, self.manifest, self.scope, self.search_timeout_s)

    @checked
    def keyword_search(
        self,
        keywords: Sequence[str],
        *,
        top_k: int = 5,
        offset: int = 0,
        filter: str | None = None,
        matching: Matching = "token",
        snippets: bool = True,
        explain: bool = False,
        branches: bool = False,
        show: Show = "text",
    ) -> SearchResult:
        """Return passages by count of keywords times their length (A-RAG Eq. 1).

        All sentences with a keyword are the snippet (Eq. 2). There may be 1 to 20 keywords of at
        most 200 characters; a repeated keyword counts twice. ``substring`` matching scans every
        passage, as the paper's reference implementation does. ``branches`` counts the passages of
        each of several keywords, which takes one request more. ``show`` "titles" reads no text, and
        counts all matches; so does "lines", which lists the sentences. Pages and
        ``filter`` are as in ``logical_search``. Raises ArgumentError, QueryError for the filter,
        QueryTimeoutError and IndexClosedError.
        """
        started = time.perf_counter()
        check_page(top_k, offset)
        wanted = checked_keywords(keywords)
        snippets = snippets and show != "titles"
        scope, within = narrowed(self.scope, filter, self.manifest.query_schema)
        deadline = Deadline.after(self.search_timeout_s)
        request = KeywordRequest(
            wanted, top_k, offset, matching, scope, snippets or explain, deadline
        )
        with advising_on_timeout(deadline, self.location, lambda: KEYWORD_NARROWING[matching]):
            page = self.engine.keyword_search(request)
            phrases = [Phrase(word) for word in wanted if analysis.terms(word)]
            if show != "text" and phrases:
                counted = SearchRequest(any_of(*phrases), scope=scope, deadline=deadline)
                page = counted_all(self.engine, page, counted)
        hits = [
            hit_of(
                hit,
                keyword_sentences(hit, wanted, matching) if snippets else (),
                tuple(keyword_scores(hit, wanted, matching)) if explain else None,
            )
            for hit in page.hits
        ]
        counted = branches and matching == "token" and bool(page.hits)
        understood = ", ".join(f'"{keyword}"' for keyword in wanted)
        notes = keyword_notes(wanted) if matching == "token" else []
        return search_result(
            understood,
            f"{understood}{within}",
            offset,
            hits,
            notes,
            started,
            page=page,
            show=show,
            branches=keyword_counts(self.engine, wanted, scope, deadline) if counted else (),
            highlighter=Highlighter.of_keywords(wanted, as_substrings=matching == "substring"),
        )

    @checked
    def semantic_search(
        self,
        query: str,
        *,
        top_k: int = 5,
        offset: int = 0,
        filter: str | None = None,
        where: str | None = None,
        snippets: bool = True,
        names: bool = False,
        relax: bool = False,
    ) -> SearchResult:
        """Return passages by the cosine of their best sentence with the query (A-RAG Eq. 3).

        The nearest passage comes first; its nearest sentences are the snippet. Pages and
        ``filter`` are as in ``logical_search``; there is no total. ``names`` adds a note on
        names in the query that no passage contains, which takes a request for their counts.

        ``where`` is a logical query that passages must match, without effect on their order: the
        result has the nearest of the matching passages. The engine lists them, up to 100,000 on a
        server; more are a QueryError. If none matches, the result is that of a logical search for
        ``where``, with its feedback, and with ``relax`` the passages that miss the fewest
        conditions.

        Raises QueryError for a query that is empty or too long, for the filter and for the
        condition, ArgumentError, NotServedError if there are no sentence vectors,
        QueryTimeoutError for the condition, IndexClosedError, and what opening the vectors raises.
        """
        result = self._by_vectors.nearest(
            query, "sentence", top_k, offset, filter, where, snippets, names
        )
        return self._or_why(result, where, filter, relax)

    @checked
    def hybrid_search(
        self,
        query: str,
        *,
        top_k: int = 5,
        offset: int = 0,
        filter: str | None = None,
        where: str | None = None,
        meaning: str | None = None,
        vectors: VectorUnit = "passage",
        snippets: bool = True,
        full_text: bool = False,
        names: bool = False,
        relax: bool = False,
    ) -> SearchResult:
        """Return passages by BM25 of the query's words and by vectors (Agentic Hybrid), with the
        sentences that have most of its words, or with all of them if ``full_text``.

        The rankings are merged by reciprocal rank fusion, as in LogicalRAG. The first 100 of both
        are merged, so that there are 200 passages at most; each hit has its ranks in both.
        With ``meaning``, ``query`` is a logical query, and ``meaning`` a sentence for the vectors;
        either may be empty, and then takes the words of the other. The rankings are merged as
        ``fusion.fuse_logical`` says.

        ``vectors`` are those of passages, or of sentences as in ``semantic_search``. Conditions,
        which apply to both rankings, and errors are as there. The search by words may raise
        QueryTimeoutError.
        """
        result = self._by_vectors.hybrid(
            query, top_k, offset, filter, where, meaning, vectors, snippets, full_text, names
        )
        return self._or_why(result, where, filter, relax)

    @checked
    def naive_embedding_search(
        self,
        query: str,
        *,
        top_k: int = 5,
        offset: int = 0,
        filter: str | None = None,
        where: str | None = None,
        snippets: bool = True,
        names: bool = False,
        relax: bool = False,
    ) -> SearchResult:
        """Return whole passages by the cosine of their vector with the query (A-RAG Naive).

        Pages and conditions are as in ``semantic_search``, whose errors it raises.
        """
        result = self._by_vectors.nearest(
            query, "passage", top_k, offset, filter, where, snippets, names
        )
        return self._or_why(result, where, filter, relax)

    def _or_why(
        self, result: SearchResult, where: str | None, filter: str | None, relax: bool
    ) -> SearchResult:
        """Return the result of a search by vectors; if no passage meets its condition, that of a
        logical search for the condition, which says why."""
        if where is None or result.passages != 0:
            return result
        matches = self.logical_search(where, filter=filter, relax=relax)
        return result if matches.total else replace(matches, query=result.query)

    @checked
    def nearest_sentences(
        self, query: str, n: int, *, filter: str | None = None
    ) -> list[NearSentence]:
        """Return the sentences with the greatest cosine with the query, best first, each with its
        passage. ``n`` is 1 to 1,000. Raises the errors of ``semantic_search``."""
        return self._by_vectors.sentences(query, n, filter)

    def open_vectors(self) -> OpenVectors:
        """Open the vectors and their encoder; otherwise the first search by vectors opens them.

        Raises NotServedError if the index has none, and what opening them raises.
        """
        return self._by_vectors.open()

    @checked
    def encode_queries(self, queries: Sequence[str]) -> None:
        """Encode queries of later searches together, which is faster than separately."""
        self._by_vectors.encode_queries(queries)

    @checked
    def chunk_read(self, ids: Sequence[str], *, filter: str | None = None) -> list[ReadChunk]:
        """Return the chunks with these ids in full, in the same order.

        ``filter`` narrows the scope as in ``logical_search``; it applies to the neighbours too.
        Raises UnknownChunkError naming every id that the index (or the scope) does not hold, and
        QueryError for the filter.
        """
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        ids = [nfc(id_) for id_ in ids]
        chunks = self.engine.read(ids, scope)
        unknown = [id_ for id_, chunk in zip(ids, chunks, strict=True) if chunk is None]
        if unknown:
            raise unknown_chunks(unknown, self.location)
        return [
            ReadChunk(chunk, *self.engine.neighbours(chunk, scope))
            for chunk in chunks
            if chunk is not None
        ]

    @checked
    def read(self, ids: Sequence[str], *, filter: str | None = None) -> list[Chunk | None]:
        """Return the chunks with these ids; None for an id that the index or the scope, narrowed by
        ``filter``, does not hold."""
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        return self.engine.read([nfc(id_) for id_ in ids], scope)

    @checked
    def with_neighbours(self, chunk: Chunk) -> ReadChunk:
        """Return a chunk with the ids of the previous and the next chunk."""
        return ReadChunk(chunk, *self.engine.neighbours(chunk, self.scope))

    @checked
    def scan(self, *, filter: str | None = None) -> Iterator[Chunk]:
        """Stream all chunks in the scope, narrowed by ``filter``, in corpus order."""
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        return self.engine.scan(scope)

    @checked
    def documents(self, *, filter: str | None = None) -> Iterator[IndexDocument]:
        """Stream the documents in the scope, narrowed by ``filter``, in corpus order.

        Every document is read with its passages; one document is held in memory at a time. Raises
        QueryError for the filter, and IndexDamagedError if passages of a document are missing,
        because a server changed it while it was read.
        """
        return documents_of(self.scan(filter=filter), self.location)

    @checked
    def document_read(self, doc_id: str, *, filter: str | None = None) -> IndexDocument:
        """Return the whole document with an id. ``filter`` narrows the scope.

        Raises UnknownDocumentError, which suggests ids, QueryError for the filter, and
        IndexDamagedError as ``documents`` does.
        """
        scope, _ = narrowed(self.scope, filter, self.manifest.query_schema)
        doc_id = nfc(doc_id)
        nearest: list[str] = []
        if doc_id and is_unicode(doc_id):
            within = joined(scope, Scope((KeywordEquals(DOC_ID, doc_id),)))
            for document in documents_of(self.engine.scan(within), self.location):
                return document
            nearest = self._nearest_documents(doc_id, scope)
        raise unknown_document(doc_id, self.location, nearest)

    @checked
    def document_lines(self, doc_ids: Sequence[str]) -> list[DocumentLines | None]:
        """Return the numbered lines of documents; None for one that the scope does not hold.

        The lines of the last documents are cached. Cached lines are checked against the current
        first passage of the document, all in one request; other documents are read in another
        request.
        """
        ids = list(dict.fromkeys(map(nfc, doc_ids)))
        scope = self.scope
        kept = {id: lines for id in ids if (lines := self._lines.get(scope, id)) is not None}
        firsts = self.engine.read([lines.passages[0] for lines in kept.values()], scope)
        for (id, lines), first in zip(list(kept.items()), firsts, strict=True):
            if not is_current(lines, first):
                del kept[id]
                self._lines.drop(scope, id)
        for document in self._documents_with([id for id in ids if id not in kept]):
            lines = DocumentLines.of(document, self.manifest.fold_characters)
            kept[document.id] = lines
            self._lines.put(scope, lines)
        return [kept.get(nfc(id)) for id in doc_ids]

    def _documents_with(self, doc_ids: Sequence[str]) -> Iterator[IndexDocument]:
        """Yield the documents with these ids that are in the scope, in corpus order."""
        wanted = [KeywordEquals(DOC_ID, id) for id in doc_ids if id and is_unicode(id)]
        if wanted:
            within = joined(self.scope, Scope((any_of(*wanted),)))
            yield from documents_of(self.engine.scan(within), self.location)

    def _nearest_documents(self, doc_id: str, scope: Scope | None) -> list[str]:
        """Return the ids of documents that may be meant by an unknown id."""
        passage = self.engine.read([doc_id], scope)[0]
        if passage is not None:
            return [passage.doc_id]
        counted = FieldsRequest((), 0, scope, deadline=Deadline.after(self.search_timeout_s))
        if self.engine.field_values(counted).chunks > MAX_COMPARED:
            return []
        return nearest_ids(doc_id, (chunk.doc_id for chunk in self.engine.scan(scope)))


@dataclass(frozen=True, slots=True)
class IndexOpening:
    """Where an index is, and how it is opened; see ``open_index``."""

    location: str
    filter: str | None = None
    ca_certs: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    vectors: str | Path | None = None
    encoder: Encoder | str | None = None
    nprobe: int | None = None
    search_timeout_s: float | None = DEFAULT_SEARCH_TIMEOUT_S

    def open(
        self, shared: dict[EncoderIdentity, Encoder] | None = None, *, is_first: bool = True
    ) -> Index:
        """Open the index as it is now. Unless this ``is_first``, vectors that do not fit it are an
        error only when they are searched. ``shared`` is as in ``sidecar_source``."""
        check_search_timeout(self.search_timeout_s)
        name, engine, release, is_outdated = open_engine(
            self.location, self.ca_certs, self.client_cert, self.client_key
        )
        try:
            manifest = engine.manifest
            scope = (
                None if self.filter is None else parse_filter(self.filter, manifest.query_schema)
            )
            source = sidecar_source(name, manifest, self.vectors, self.encoder, self.nprobe, shared)
            if self.vectors is not None and is_first:
                source.open_vectors()
                if self.encoder is not None and not isinstance(self.encoder, str):
                    source.open()
        except BaseException:
            engine.close()
            release()
            raise
        return Index(
            engine,
            name,
            scope,
            release,
            source,
            self.search_timeout_s,
            is_outdated,
        )

    def is_growing(self, placement: str) -> bool:
        """Return whether vectors of the state with this placement are being made by an update."""
        from arag_search.vectors.storage.folders import is_growing, vectors_root

        try:
            return is_growing(vectors_root(self.location, self.vectors), placement)
        except (AragError, OSError):  # a search by vectors says what is wrong
            return False

    def follow(self, prepared: Callable[[Index], _T]) -> Follower[_T]:
        """Open the index, and again whenever another state of it is published. ``prepared`` makes
        what is used of each state. All states share the models. The state before stays in use while
        the vectors of new texts are made, for a minute at most. Raises what it and ``open`` raise.
        """
        shared: dict[EncoderIdentity, Encoder] = {}
        is_first = True

        def open_newest() -> FollowedState[_T]:
            nonlocal is_first
            index = self.open(shared, is_first=is_first)
            if not is_first and self.is_growing(index.manifest.placement):
                index.close()
                raise UnfinishedStateError
            try:
                value = prepared(index)
            except BaseException:
                index.close()
                raise
            is_first = False
            return FollowedState(value, index.is_outdated, index.close)

        def close_models() -> None:
            for encoder in shared.values():
                encoder.close()

        every_s = SERVER_LOOKS_S if is_address(self.location) else 0.0
        return Follower(open_newest, every_s, close_models)


class FollowedIndex(Index):
    """An index that follows builds and updates; see ``open_index``.

    A call has one state of the index from its beginning to its end, and so have the chunks of a
    ``scan`` and the ``documents``. Parts follow too. Attributes are those of the newest state.
    """

    def __init__(self, follower: Follower[Index], filters: tuple[str, ...] = ()) -> None:
        self._follower = follower
        self._filters = filters

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("within", "close"):
            return object.__getattribute__(self, name)
        method = vars(Index).get(name)
        if not isfunction(method):
            with self._state() as index:
                return getattr(index, name)
        call = self._streamed if name in ("scan", "documents") else self._called
        return wraps(method)(partial(call, name))

    def within(self, filter: str) -> Index:
        """See ``Index.within``."""
        with self._state() as index:
            index.within(filter)
        return FollowedIndex(self._follower, (*self._filters, filter))

    def close(self) -> None:
        """See ``Index.close``. Calls in flight end as they would without it."""
        if not self._filters:
            self._follower.close()

    @contextmanager
    def _state(
        self, result: Hashable | None = None, *, continues: bool = False
    ) -> Generator[Index]:
        with self._follower.use(result, continues=continues) as index:
            for filter in self._filters:
                index = index.within(filter)
            yield index

    def _called(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of one state of the index."""
        same = {key: value for key, value in options.items() if key not in _PAGE_OPTIONS}
        result = (self._filters, name, repr((arguments, sorted(same.items()))))
        continues = bool(options.get("offset") or options.get("after"))
        is_paged = name.endswith("_search")
        with self._state(result if is_paged else None, continues=continues) as index:
            return getattr(index, name)(*arguments, **options)

    def _streamed(self, name: str, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yield the items of a method of one state, which stays open until the end."""
        with self._state() as index:
            yield from getattr(index, name)(*arguments, **options)


@checked
def open_index(
    location: str | Path,
    *,
    filter: str | None = None,
    ca_certs: str | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    vectors: str | Path | None = None,
    encoder: Encoder | str | None = None,
    nprobe: int | None = None,
    search_timeout_s: float | None = DEFAULT_SEARCH_TIMEOUT_S,
    refresh: Literal["auto"] | None = None,
) -> Index:
    """Open the index in a folder, or at the address of a server (``https://host:9200/name``).

    ``filter`` is a query of metadata clauses (``lang:en AND year:>=2000``, NOTs alone allowed) that
    every search, count and read obeys. For a server, user and password are taken from
    ``OPENSEARCH_USERNAME`` and ``OPENSEARCH_PASSWORD``; ``ca_certs`` is a file of trusted
    authorities (default: ``OPENSEARCH_CA_CERTS``, else the usual ones), ``client_cert`` and
    ``client_key`` are files for a server that asks for a certificate (default:
    ``OPENSEARCH_CLIENT_CERT`` and ``OPENSEARCH_CLIENT_KEY``).

    ``vectors`` is the folder that ``arag-search embed`` wrote to (default: ``ARAG_VECTORS``, else
    ``vectors`` in the folder of the index). If it is named, the vectors are opened and compared
    with the index at once, otherwise by the first search that needs them. ``encoder`` is an open
    encoder or a name (default: the encoder that made the vectors). ``nprobe`` is the number of
    lists that a search of approximate vectors probes (default: that of the vectors). A query that
    takes the engine longer than ``search_timeout_s`` seconds is stopped with QueryTimeoutError;
    None is no limit.

    An open index stays as it was when it was opened. With ``refresh`` "auto" it follows builds and
    updates (on a server, within a second): every call is answered from one state of the index, the
    newest, and further pages of a result (``offset``, ``after``) from the state of its first page.

    Raises IndexNotFoundError, IndexVersionError, IndexDamagedError, QueryError for the filter,
    JvmError, VectorsError, and for a server ArgumentError, AccessError, UnavailableError,
    EngineError.
    """
    opening = IndexOpening(
        str(location),
        filter,
        ca_certs,
        client_cert,
        client_key,
        vectors,
        encoder,
        nprobe,
        search_timeout_s,
    )
    if refresh == "auto":
        return FollowedIndex(opening.follow(lambda index: index))
    return opening.open()


def unknown_chunks(ids: Sequence[str], location: str) -> UnknownChunkError:
    """Return the error for ids that an index does not hold."""
    named = ", ".join(f'"{id_}"' for id_ in ids)
    return UnknownChunkError(
        f"No chunk has the id {named}." if len(ids) == 1 else f"No chunks have the ids {named}.",
        where=location,
        allowed="ids as searches show them in brackets",
        do="Search first, and copy the id.",
    )


def _is_plain(request: SearchRequest) -> bool:
    """Return whether a search is for the first passages by score, with their text."""
    return (
        request.granularity == "chunk"
        and not request.offset
        and request.with_text
        and request.sort is None
        and request.per_document is None
    )


def _names_title(parsed: ParsedQuery) -> bool:
    return any(isinstance(leaf, TextLeaf) and leaf.field == TITLE for leaf in leaves(parsed.tree))

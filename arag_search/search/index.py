"""An open index: the object that front ends, tools and Python code search with.

with arag_search.open_index("my-index") as index:
    for hit in index.logical_search('"antonio vivaldi" AND librett*').hits:
        print(hit.id, hit.title, hit.snippet)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

from arag_search.corpus import Chunk, nfc
from arag_search.engines.base import (
    DEFAULT_SEARCH_TIMEOUT_S,
    Calls,
    Hit,
    SearchEngine,
    check_search_timeout,
)
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.problems import NOTE_UNMARKED
from arag_search.query.reading import Operator, Query, parse
from arag_search.query.regexes import Stopwatch
from arag_search.search.asked import Hybrid, Keywords, Meaning, Naive, Search
from arag_search.search.by_vectors import (
    NearSentence,
    encode_queries,
    nearest_sentences,
    vector_search,
)
from arag_search.search.documents import (
    IndexDocument,
    ReadChunk,
    document_of,
    documents_of,
    read_chunks,
)
from arag_search.search.fields import (
    DEFAULT_VALUES,
    Contents,
    FieldsResult,
    FieldSummary,
    fields_of,
)
from arag_search.search.following import Use, part_of
from arag_search.search.keywords import keyword_search
from arag_search.search.lines import DocumentLines
from arag_search.search.logical import logical_search
from arag_search.search.named import named
from arag_search.search.results import SearchResult
from arag_search.search.standing import Standing
from arag_search.search.state import IndexState
from arag_search.search.words import WordSummary, words_of
from arag_search.system.arguments import checked, takes
from arag_search.vectors.opening import OpenVectors, VectorSource

_FEWER = "Name fewer of them, or narrow the scope with a filter."
_T = TypeVar("_T")


class Index:
    """An open index. Safe to use from several threads; close it, or use it as a context manager.

    ``scope`` is a filter that every search, count and read obeys. ``vectors`` opens the vectors of
    the index; without it, searches by vectors raise NotServedError. A query whose execution in the
    engine takes longer than ``search_timeout_s`` seconds is stopped, and raises QueryTimeoutError;
    None is no limit. ``manifest`` describes the index. ``is_outdated`` returns whether another
    state of the index has been published since it was opened.

    An index that follows builds and updates (see ``open_index``) answers every call from one state
    of it, from the beginning of the call to its end, and so are the chunks of a ``scan`` and the
    ``documents``. Its attributes are those of the newest state.
    """

    def __init__(
        self,
        engine: SearchEngine,
        location: str,
        scope: ResolvedPlan | None = None,
        on_close: Callable[[], None] | None = None,
        vectors: VectorSource | None = None,
        search_timeout_s: float | None = DEFAULT_SEARCH_TIMEOUT_S,
        is_outdated: Callable[[], bool] = lambda: False,
    ) -> None:
        check_search_timeout(search_timeout_s)
        state = IndexState(
            engine,
            location,
            scope,
            vectors,
            search_timeout_s,
            is_outdated,
            Calls(location),
            ThreadPoolExecutor(thread_name_prefix="by-words"),  # starts none by itself
        )
        self._use: Use = lambda asked, within: nullcontext(state)
        self._closes = (state.close, *([] if on_close is None else [on_close]))

    @classmethod
    def over(cls, use: Use, *closes: Callable[[], None]) -> Index:
        """Return an index that answers from the states of one. ``closes`` close it."""
        index = cls.__new__(cls)
        index._use, index._closes = use, closes
        return index

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def state(self) -> IndexState:
        """The newest state."""
        with self._use(None, ()) as state:
            return state

    @property
    def engine(self) -> SearchEngine:
        """The engine, which only tests and benches call."""
        return self.state.engine

    @property
    def manifest(self) -> Manifest:
        """The description of the whole index."""
        return self.state.manifest

    @property
    def location(self) -> str:
        """Where the index is."""
        return self.state.location

    @property
    def scope(self) -> ResolvedPlan | None:
        """The filter that everything obeys."""
        return self.state.scope

    @property
    def standing(self) -> Standing | None:
        """How the index stands beside the files that it was made of, as far as this machine knows;
        ``standing.line()`` says so where they have changed."""
        return self.state.standing

    @property
    def metadata_fields(self) -> tuple[FieldSummary, ...]:
        """The declared fields with frequent values or ranges, within the scope: in descriptions of
        tools. They are read once, and may be approximate after updates; ``fields`` counts."""
        return self.state.metadata_fields

    @property
    def contents(self) -> Contents:
        """Whether passages in the scope have titles and neighbours, for descriptions of tools and
        notes. It is read once."""
        return self.state.contents

    @property
    def some_titles(self) -> tuple[str, ...]:
        """The titles of at most three documents in the scope, for descriptions of tools. They are
        read once."""
        return self.state.some_titles

    def is_outdated(self) -> bool:
        """Return whether another state of the index has been published since it was opened."""
        return self.state.is_outdated()

    @checked
    def within(self, filter: str) -> Index:
        """Return the part of the index that a filter admits, as an index of its own.

        ``filter`` is a query of metadata clauses, such as ``acl:(everyone OR hr)``, which narrows
        the scope that there is. The part shares the open engine and vectors, and opens nothing. It
        ends with this index; closing it has no effect. ``manifest`` describes the whole index, and
        BM25 scores use statistics of the whole index; all else that a part returns is computed from
        its own passages. Raises QueryError for the filter.
        """
        part = Index.over(part_of(self._use, filter))
        with part._use(None, ()):  # a wrong filter is an error here
            return part

    def close(self) -> None:
        """Wait for searches in flight, then free all resources. Closing twice is allowed."""
        for close in self._closes:
            close()

    @checked
    def parse(
        self,
        query: str,
        *,
        default_operator: Operator = "OR",
        operators: bool = True,
        published: bool = False,
    ) -> Query:
        """Parse a query with the fields of this index. ``published`` is as in ``logical_search``.
        Raises QueryError."""
        with self._use(None, ()) as state:
            return parse(
                query,
                state.schema,
                default_operator=default_operator,
                operators=operators,
                published=published,
            )

    # Searches

    def search(self, asked: Search | Keywords | Meaning) -> SearchResult:
        """Return what a search finds: see the methods below, whose arguments are its fields."""
        with self._use(asked, ()) as state:
            with Stopwatch() as watch:
                result = self._asked(state, asked)
            notes = (*result.notes, NOTE_UNMARKED) if watch.has_stopped else result.notes
            standing = state.standing
            if standing is not None and asked.filter:
                standing = standing.within_scope()
            return replace(result, notes=notes, standing=standing)

    def _asked(self, state: IndexState, asked: Search | Keywords | Meaning) -> SearchResult:
        if isinstance(asked, Search):
            return logical_search(state, asked)
        if isinstance(asked, Keywords):
            return keyword_search(state, asked)
        result = vector_search(state, asked)
        if asked.where is None or result.passages != 0:
            return result
        # No passage meets the condition, and a logical search for it says why.
        why = Search(asked.where, filter=asked.filter, relax=asked.relax)
        matches = logical_search(state, why)
        asks = replace(why, query=asked.query)
        return replace(matches, asked=asks) if not matches.total else result

    @takes(Search)
    def logical_search(self, asked: Search) -> SearchResult:
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
        alternative of an OR that has none on it, unless it is a frequent word; with ``relax`` an
        alternative that matches nothing gets ``nearest``, too. None of these are hits.
        With ``first_page``, the number of passages on the page from offset 0, an OR at the top
        gives the last places of that page to the best passages of alternatives without one on it,
        in the order written. What gives way comes on later pages, which need the same number.

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
        return self.search(asked)

    @takes(Keywords)
    def keyword_search(self, asked: Keywords) -> SearchResult:
        """Return passages by count of keywords times their length (A-RAG Eq. 1).

        All sentences with a keyword are the snippet (Eq. 2). There may be 1 to 20 keywords of at
        most 200 characters; a repeated keyword counts twice. ``substring`` matching scans every
        passage, as the paper's reference implementation does. ``branches`` counts the passages of
        each of several keywords, which takes one request more. ``show`` "titles" reads no text, and
        counts all matches; so does "lines", which lists the sentences. Pages and
        ``filter`` are as in ``logical_search``. Raises ArgumentError, QueryError for the filter,
        QueryTimeoutError and IndexClosedError.
        """
        return self.search(asked)

    @takes(Meaning)
    def semantic_search(self, asked: Meaning) -> SearchResult:
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
        return self.search(asked)

    @takes(Hybrid)
    def hybrid_search(self, asked: Hybrid) -> SearchResult:
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
        return self.search(asked)

    @takes(Naive)
    def naive_embedding_search(self, asked: Naive) -> SearchResult:
        """Return whole passages by the cosine of their vector with the query (A-RAG Naive).

        Pages and conditions are as in ``semantic_search``, whose errors it raises.
        """
        return self.search(asked)

    def named(
        self, names: Mapping[str, str], *, filter: str | None = None
    ) -> dict[str, tuple[list[Hit], int]]:
        """Return, for each name that documents in scope have (see ``query.names``), their first
        passages, and how many passages hold the text that the name is mapped to, at most MAX_TOTAL
        + 1; an empty text is not counted. Raises QueryError for the filter."""
        with self._use(None, ()) as state:
            return named(state, names, filter)

    @checked
    def nearest_sentences(
        self, query: str, n: int, *, filter: str | None = None
    ) -> list[NearSentence]:
        """Return the sentences with the greatest cosine with the query, best first, each with its
        passage. ``n`` is 1 to 1,000. Raises the errors of ``semantic_search``."""
        with self._use(None, ()) as state:
            return nearest_sentences(state, query, n, filter)

    def open_vectors(self) -> OpenVectors:
        """Open the vectors and their encoder; otherwise the first search by vectors opens them.

        Raises NotServedError if the index has none, and what opening them raises.
        """
        with self._use(None, ()) as state:
            return state.open_vectors()

    @checked
    def encode_queries(self, queries: Sequence[str]) -> None:
        """Encode queries of later searches together, which is faster than separately."""
        with self._use(None, ()) as state:
            encode_queries(state, queries)

    # What the index holds

    @checked
    def fields(
        self, *names: str, values: int = DEFAULT_VALUES, filter: str | None = None
    ) -> FieldsResult:
        """Return the fields of the index, of all or those named: how many passages have them, the
        most frequent ``values`` (0 to 1,000) of keywords, and the ranges of numbers and dates.

        All numbers are exact, and count passages within the scope, which ``filter`` narrows. Raises
        QueryError for the filter, ArgumentError, QueryTimeoutError and IndexClosedError.
        """
        with self._use(None, ()) as state, state.timed(_FEWER) as deadline:
            scope, _ = state.narrowed(filter)
            return fields_of(state.engine, names, values, scope, deadline)

    @checked
    def words(self, *words: str, filter: str | None = None) -> tuple[WordSummary, ...]:
        """Return how many passages have each of up to 70 words, prefixes, phrases and queries such
        as ``film AND librett*``: in title and text, in which written forms, and the nearest words
        of one that occurs nowhere. Numbers and errors are as in ``fields``."""
        with self._use(None, ()) as state, state.timed(_FEWER) as deadline:
            scope, _ = state.narrowed(filter)
            return words_of(state.engine, words, state.schema, scope, deadline)

    @checked
    def chunk_read(self, ids: Sequence[str], *, filter: str | None = None) -> list[ReadChunk]:
        """Return the chunks with these ids in full, in the same order.

        ``filter`` narrows the scope as in ``logical_search``; it applies to the neighbours too.
        Raises UnknownChunkError naming every id that the index (or the scope) does not hold, and
        QueryError for the filter.
        """
        with self._use(None, ()) as state:
            scope, _ = state.narrowed(filter)
            return read_chunks(state.engine, state.location, ids, scope)

    @checked
    def read(self, ids: Sequence[str], *, filter: str | None = None) -> list[Chunk | None]:
        """Return the chunks with these ids; None for an id that the index or the scope, narrowed by
        ``filter``, does not hold."""
        with self._use(None, ()) as state:
            scope, _ = state.narrowed(filter)
            return state.engine.read([nfc(id_) for id_ in ids], scope)

    @checked
    def with_neighbours(self, chunk: Chunk) -> ReadChunk:
        """Return a chunk with the ids of the previous and the next chunk."""
        with self._use(None, ()) as state:
            return ReadChunk(chunk, *state.engine.neighbours(chunk, state.scope))

    @checked
    def scan(self, *, filter: str | None = None) -> Iterator[Chunk]:
        """Stream all chunks in the scope, narrowed by ``filter``, in corpus order."""
        return self._streamed(lambda state: state.engine.scan(state.narrowed(filter)[0]))

    @checked
    def documents(self, *, filter: str | None = None) -> Iterator[IndexDocument]:
        """Stream the documents in the scope, narrowed by ``filter``, in corpus order.

        Every document is read with its passages; one document is held in memory at a time. Raises
        QueryError for the filter, and IndexDamagedError if passages of a document are missing,
        because a server changed it while it was read.
        """
        return self._streamed(
            lambda state: documents_of(state.engine.scan(state.narrowed(filter)[0]), state.location)
        )

    @checked
    def document_read(self, doc_id: str, *, filter: str | None = None) -> IndexDocument:
        """Return the whole document with an id. ``filter`` narrows the scope.

        Raises UnknownDocumentError, which suggests ids, QueryError for the filter, and
        IndexDamagedError as ``documents`` does.
        """
        with self._use(None, ()) as state:
            scope, _ = state.narrowed(filter)
            return document_of(state.engine, state.location, doc_id, scope, state.search_timeout_s)

    @checked
    def document_lines(self, doc_ids: Sequence[str]) -> list[DocumentLines | None]:
        """Return the numbered lines of documents; None for one that the scope does not hold.

        The lines of the last documents are cached. Cached lines are checked against the current
        first passage of the document, all in one request; other documents are read in another
        request.
        """
        with self._use(None, ()) as state:
            return state.lines.of(state.engine, state.location, doc_ids, state.scope)

    def _streamed(self, items: Callable[[IndexState], Iterator[_T]]) -> Iterator[_T]:
        """Return the items of one state, which stays open until the last of them."""
        with ExitStack() as stack:
            stream = items(stack.enter_context(self._use(None, ())))
            held = stack.pop_all()

        def read() -> Iterator[_T]:
            with held:
                yield from stream

        return read()

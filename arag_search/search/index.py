"""An open index: the object that front ends, tools and Python code search with.

with arag_search.open_index("my-index") as index:
    for hit in index.logical_search('"antonio vivaldi" AND librett*').hits:
        print(hit.id, hit.title, hit.snippet)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, lru_cache, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from arag_search.engines.base import (
    DEFAULT_SEARCH_TIMEOUT_S,
    Calls,
    SearchEngine,
    check_search_timeout,
)
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.filters import Data, filter_text
from arag_search.query.regexes import Stopwatch
from arag_search.search.asked import Hybrid, Keywords, Meaning, Naive, Search
from arag_search.search.counting import fields, words
from arag_search.search.counting.fields import Contents, FieldSummary
from arag_search.search.finding import by_vectors, named
from arag_search.search.finding.by_vectors import hybrid_search, vector_search
from arag_search.search.finding.keywords import keyword_search
from arag_search.search.finding.logical import logical_search
from arag_search.search.following import OneState, PartStates, States
from arag_search.search.reading import documents, lines
from arag_search.search.results import SearchResult
from arag_search.search.standing import Standing
from arag_search.search.state import IndexState
from arag_search.system.arguments import checked, takes
from arag_search.vectors.opening import VectorSource

_SEARCHES: Mapping[type, Callable[[IndexState, Any], SearchResult]] = {
    Search: logical_search,
    Keywords: keyword_search,
    Meaning: vector_search,
    Naive: vector_search,
    Hybrid: hybrid_search,
}
KEPT_PARTS = 256
"""The most parts of an index that are kept, with all they read; others are made again on use."""
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _asks(
    function: Callable[Concatenate[IndexState, _P], _T],
) -> Callable[Concatenate[Index, _P], _T]:
    """Make a method of a function that asks one state of the index."""

    @wraps(function)
    def method(self: Index, *arguments: _P.args, **options: _P.kwargs) -> _T:
        states = self._states  # pyright: ignore[reportPrivateUsage]
        return states.answer(lambda state: asked(state, *arguments, **options))

    method.__qualname__ = f"Index.{function.__name__}"
    asked = checked(function, method)
    return method


def _streams(
    function: Callable[Concatenate[IndexState, _P], Iterator[_T]],
) -> Callable[Concatenate[Index, _P], Iterator[_T]]:
    """Make a method of a function that reads one state of the index, which stays open until the
    end of the iterator."""

    @wraps(function)
    def method(self: Index, *arguments: _P.args, **options: _P.kwargs) -> Iterator[_T]:
        with ExitStack() as stack:
            state = stack.enter_context(self._states.use())  # pyright: ignore[reportPrivateUsage]
            return _held(asked(state, *arguments, **options), stack.pop_all())

    method.__qualname__ = f"Index.{function.__name__}"
    asked = checked(function, method)
    return method


def _held(items: Iterator[_T], state: ExitStack) -> Iterator[_T]:
    with state:
        yield from items


class Index:
    """An open index. Safe to use from several threads; close it, or use it as a context manager.

    ``scope``: a filter that every search, count and read obeys.
    ``vectors``: opens the vectors of the index; without it, searches by vectors raise
    NotServedError.
    ``search_timeout_s``: seconds after which a query of the engine is stopped with
    QueryTimeoutError. None: no limit.
    ``is_outdated``: returns whether another state of the index was published since it was opened.
    ``manifest``: describes the index.

    An index that follows builds and updates (see ``open_index``) answers each call from one state,
    from the beginning of the call to its end. This holds for ``scan`` and ``documents`` too. Its
    attributes describe the newest state.
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
        )
        self._states: States = OneState(state)
        self._closes = (state.close, *([] if on_close is None else [on_close]))
        self.held = ExitStack()
        """Resources that are held until the index is closed."""

    @classmethod
    def over(cls, states: States, *closes: Callable[[], None]) -> Index:
        """Return an index that answers from the states of one. ``closes`` close it."""
        index = cls.__new__(cls)
        index._states, index._closes, index.held = states, closes, ExitStack()
        return index

    @classmethod
    def of_state(cls, state: IndexState) -> Index:
        """Return an index that answers from this state alone."""
        return cls.over(OneState(state))

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for close in self._closes:
            close()
        self.held.__exit__(kind, error, trace)

    @property
    def state(self) -> IndexState:
        """The newest state."""
        with self._states.use() as state:
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
        return self.state.once(fields.metadata_fields)

    @property
    def contents(self) -> Contents:
        """Whether passages in the scope have titles and neighbours, for descriptions of tools and
        notes. It is read once."""
        return self.state.once(fields.contents)

    @property
    def some_titles(self) -> tuple[str, ...]:
        """The titles of at most three documents in the scope, for descriptions of tools. They are
        read once."""
        return self.state.once(documents.some_titles)

    def is_outdated(self) -> bool:
        """Return whether another state of the index has been published since it was opened."""
        return self.state.is_outdated()

    @checked
    def within(self, filter: str | Data) -> Index:
        """Return the part of the index that a filter admits, as an index of its own.

        ``filter`` is data, such as ``{"acl": ["everyone", "hr"]}``, or a query of metadata clauses,
        such as ``acl:(everyone OR hr)``. It narrows the scope that there is. The part shares the
        open engine and vectors, and opens nothing; the same filter may give the same object. It
        ends with this index; closing it has no effect. ``manifest`` and the statistics of BM25
        scores are of the whole index. All else that a part returns is computed from its own
        passages. Raises QueryError for the filter.
        """
        return self._parts(filter_text(filter))

    @cached_property
    def _parts(self) -> Callable[[str], Index]:
        def part_of(filter: str) -> Index:
            part = Index.over(PartStates(self._states, filter))
            with part._states.use():  # a wrong filter is an error here
                return part

        return lru_cache(KEPT_PARTS)(part_of)

    def at_one_state(
        self, ask: Callable[[Index], _T], result: Hashable = None, *, continues: bool = False
    ) -> _T:
        """Return what ``ask`` makes of one state of the index, which it gets as an index of its
        own. It is the newest state. If the call ``continues`` a result, it is the state of the
        first page, while that is kept. If another state turns out to be published, ``ask`` is
        called once more."""
        return self._states.answer(
            lambda state: ask(state.once(Index.of_state)), result, continues=continues
        )

    def close(self) -> None:
        """Wait for searches in flight, then free all resources. Closing twice is allowed."""
        self.__exit__(None, None, None)

    # Searches

    def search(self, asked: Search | Keywords | Meaning) -> SearchResult:
        """Return what a search finds: see the methods below, whose arguments are its fields."""

        def result_of(state: IndexState) -> SearchResult:
            with Stopwatch():
                return _SEARCHES[type(asked)](state, asked)

        return self._states.answer(result_of, asked.result, continues=asked.is_continued)

    @takes(Search)
    def logical_search(self, asked: Search) -> SearchResult:
        """Return passages that match a logical query (LogicalRAG), best BM25 score first.

        ``top_k`` is 1 to 1,000, ``offset + top_k`` at most 10,000. ``filter`` is as
        in ``within``, for this call. Without ``snippets``
        no text is read. ``feedback`` counts the parts of a query that matches nothing, and names
        the nearest values of a field (in one more request). ``full_text`` reads whole passages even
        at sentence granularity, which takes a second request to a server.

        ``sort`` orders passages by a metadata field instead: ``year`` or ``year:asc`` (least value
        first) or ``year:desc``. Passages without a value come last; equal values are in order of
        score. ``per_document`` shows at most this many passages of a document, 1 to 1,000; the
        total counts all.

        With ``relax``, an AND that matches nothing gets ``nearest``: at most five passages that
        miss one condition. All miss the same one, and the other conditions rank them. They have
        the rarest word or name, and not only frequent words. Exclusions and scope still apply. They
        are found in the same request as the counts of the parts. ``branches`` counts the phrases,
        title clauses and alternatives of a query that has several, in the request of the search
        itself. To a first page it adds the best passage of each alternative of an OR that has none
        there, but not of a frequent word. With ``relax``, an alternative that matches nothing gets
        ``nearest``, too. None of these are hits. ``first_page`` is the number of passages on the
        page from offset 0. With it, an OR at the top gives last places of that page to the best
        passages of alternatives without one. They come in the order written. The passages that give
        way come on later pages, which need the same number.

        With ``as_written``, words match as they are written and not in their normal forms. PREFER,
        DEMOTE, patterns and fuzzy words are then off, as in presets that reproduce a paper. The
        same applies without ``operators``.

        ``show`` "titles" lists passages: it reads no text and counts all matches. "lines" lists all
        sentences that match best; at sentence granularity, all that match. "counts" lists documents
        by their best passages, each with its number of matches. A list of titles or lines that has
        more than 10,000 is in corpus order, unless another order, an offset or ``per_document`` is
        asked for. It goes on ``after`` the id of its last passage. With one passage per document,
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
        passage, as the paper's reference implementation does. With token matching, ``branches``
        puts passages with a keyword in the title first, and shows at most four sentences. If there
        are several keywords, it also counts the passages of each, and adds passages of rare ones.
        ``show`` "titles" reads no text; "titles" and "lines" count all matches.
        Pages and ``filter`` are as in ``logical_search``. Raises ArgumentError, QueryTimeoutError,
        IndexClosedError, and QueryError for the filter.
        """
        return self.search(asked)

    @takes(Meaning)
    def semantic_search(self, asked: Meaning) -> SearchResult:
        """Return passages by the cosine of their best sentence with the query (A-RAG Eq. 3).

        The nearest passage comes first; its nearest sentences are the snippet. Pages and
        ``filter`` are as in ``logical_search``; there is no total. ``names`` adds a note on
        names in the query that no passage contains, which takes a request for their counts.

        ``where`` is a logical query that passages must match, without effect on their order: the
        result has the nearest of the matching passages. If more than 60,000 match on a server, it
        is asked about the nearest passages only. If none matches, the result comes from a logical
        search for ``where``: its feedback and, with ``relax``, the passages that miss the fewest
        conditions.

        Raises QueryError for the filter, the condition, and a query that is empty or too long.
        Raises NotServedError if there are no sentence vectors, and QueryTimeoutError for the
        condition. Raises ArgumentError, IndexClosedError, and what opening the vectors raises.
        """
        return self.search(asked)

    @takes(Hybrid)
    def hybrid_search(self, asked: Hybrid) -> SearchResult:
        """Return passages by BM25 of the query's words and by vectors (Agentic Hybrid).

        They have the sentences with most of its words, or all sentences if ``full_text``.
        The rankings are merged by reciprocal rank fusion, as in LogicalRAG. The first 100 of both
        are merged, so that there are 200 passages at most; each hit has its ranks in both.

        ``vectors`` are made of passages, or of sentences as in ``semantic_search``. Conditions and
        errors are as there; conditions apply to both rankings. The search by words may raise
        QueryTimeoutError.
        """
        return self.search(asked)

    @takes(Naive)
    def naive_embedding_search(self, asked: Naive) -> SearchResult:
        """Return whole passages by the cosine of their vector with the query (A-RAG Naive).

        Pages and conditions are as in ``semantic_search``, whose errors it raises.
        """
        return self.search(asked)

    # What else it is asked, each as the function says

    named = _asks(named.named)
    nearest_sentences = _asks(by_vectors.nearest_sentences)
    open_vectors = _asks(IndexState.open_vectors)
    encode_queries = _asks(by_vectors.encode_queries)
    fields = _asks(fields.fields)
    words = _asks(words.words)
    chunk_read = _asks(documents.chunk_read)
    read = _asks(documents.read)
    with_neighbours = _asks(documents.with_neighbours)
    scan = _streams(documents.scan)
    document_read = _asks(documents.document_read)
    document_lines = _asks(lines.document_lines)
    documents = _streams(documents.documents)

"""One state of an index, and the part of it that is searched."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from arag_search.corpus import ordinal_of
from arag_search.engines.base import Calls, Deadline, SearchEngine
from arag_search.errors import AragError, NotServedError, QueryTimeoutError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, joined
from arag_search.plan.lower import lower_scope
from arag_search.query.fields import Schema
from arag_search.query.reading import parse_filter
from arag_search.query.tree import Scope
from arag_search.search.fields import Contents, FieldSummary, contents_of, metadata_fields
from arag_search.search.lines import LinesCache
from arag_search.search.standing import Standing, read_standing, standing_file
from arag_search.vectors.opening import OpenVectors, VectorSource

NARROWING = (
    "Write fewer clauses, shorter phrases and longer prefixes, or join with AND a rare word."
)
"""The advice on a logical query that takes too long."""
_READ = 8
_NAMED = 3


@dataclass(frozen=True, eq=False)
class IndexState:
    """An open engine and the vectors of the same texts, within a scope, and what is known of them;
    see ``Index``."""

    engine: SearchEngine
    location: str
    scope: ResolvedPlan | None
    source: VectorSource | None
    search_timeout_s: float | None
    is_outdated: Callable[[], bool]
    calls: Calls
    pool: ThreadPoolExecutor
    lines: LinesCache = field(default_factory=LinesCache)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the whole index."""
        return self.engine.manifest

    @cached_property
    def schema(self) -> Schema:
        """The fields of the index."""
        return self.manifest.query_schema

    @property
    def standing(self) -> Standing | None:
        """How the index stands beside its sources now; within a scope, only whether it does."""
        standing = read_standing(self._standing_file)
        return standing if standing is None or self.scope is None else standing.within_scope()

    @cached_property
    def _standing_file(self) -> Path:
        return standing_file(self.location, ".json")

    @cached_property
    def metadata_fields(self) -> tuple[FieldSummary, ...]:
        """See ``Index``."""
        return metadata_fields(self.engine, self.scope, Deadline.after(self.search_timeout_s))

    @cached_property
    def contents(self) -> Contents:
        """See ``Index``."""
        return contents_of(self.engine, self.manifest, self.scope, self.search_timeout_s)

    @cached_property
    def some_titles(self) -> tuple[str, ...]:
        """See ``Index``. A few of the first are read, and those outside of the scope left out."""
        ordinals = [ordinal_of(0, document, 0) for document in range(_READ)]
        try:
            chunks = self.engine.chunks_at(ordinals, self.scope)
        except AragError:  # of which the first search tells
            return ()
        titles = dict.fromkeys(chunk.title for chunk in chunks if chunk and chunk.title)
        return tuple(titles)[:_NAMED]

    def within(self, filter: str) -> IndexState:
        """Return the part that a filter admits. Raises QueryError."""
        return replace(self, scope=self.narrowed(filter)[0])

    def narrowed(self, filter: str | None) -> tuple[ResolvedPlan | None, str]:
        """Return the scope of a call, and the words for its filter; see ``narrowed``."""
        return narrowed(self.scope, filter, self.schema)

    @contextmanager
    def timed(self, advice: str) -> Generator[Deadline | None]:
        """Begin the time of a query. One that takes too long is told the limit, and the advice."""
        deadline = Deadline.after(self.search_timeout_s)
        try:
            yield deadline
        except QueryTimeoutError as error:
            if deadline is None:
                raise
            complete = deadline.exceeded()
            complete.where = self.location
            complete.do = advice
            raise complete from error

    def open_vectors(self) -> OpenVectors:
        """Open vectors and encoder, unless they are open.

        Raises NotServedError if the index has none, and what opening them raises.
        """
        if self.source is None:
            raise NotServedError(
                "The index was opened without vectors.",
                where=self.location,
                do="Open it with open_index, or give Index its vectors.",
            )
        return self.source.open()

    def close(self) -> None:
        """Wait for searches in flight, and close engine and vectors."""
        if self.calls.close():
            self.pool.shutdown()
            if self.source is not None:
                self.source.close()
        self.engine.close()


def narrowed(
    scope: ResolvedPlan | None, filter: str | None, schema: Schema
) -> tuple[ResolvedPlan | None, str]:
    """Return the scope of the documents that both the scope and the filter admit, and the words for
    the filter, such as `` within lang:en``.

    The filter can narrow the scope and never widen it. Raises QueryError for the filter.
    """
    if filter is None:
        return scope, ""
    own = parse_filter(filter, schema)
    return joined(scope, scope_of(own)), f" within {own}"


def scope_of(filter: Scope) -> ResolvedPlan:
    """Return the scope of a filter, which has no patterns."""
    return ResolvedPlan(lower_scope(filter))

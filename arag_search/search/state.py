"""One state of an index, and the part of it that is searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from arag_search.engines.base import Calls, Deadline, SearchEngine
from arag_search.errors import NotServedError, QueryTimeoutError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, joined
from arag_search.plan.lower import lower_scope
from arag_search.query.fields import Schema
from arag_search.query.filters import Data, parse_filter
from arag_search.search.standing import Standing, read_standing, standing_file
from arag_search.vectors.opening import OpenVectors, VectorSource

NARROWING = "Write fewer words, shorter phrases and longer prefixes, or join with AND a rare word."
"""The advice on a logical query that takes too long."""
FEWER = "Name fewer of them, or narrow the scope with a filter."
"""The advice on counts that take too long."""
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


@dataclass(frozen=True, eq=False)
class IndexState:
    """An open engine and the vectors of the same texts, within a scope; see ``Index``. ``whole`` is
    the state that this one is a part of, if it is a part."""

    engine: SearchEngine
    location: str
    scope: ResolvedPlan | None
    source: VectorSource | None
    search_timeout_s: float | None
    is_outdated: Callable[[], bool]
    calls: Calls
    whole: IndexState | None = None
    _made: dict[object, Any] = field(default_factory=dict[object, Any])
    _pools: dict[int, ThreadPoolExecutor] = field(default_factory=dict[int, ThreadPoolExecutor])

    @property
    def manifest(self) -> Manifest:
        """The manifest of the whole index."""
        return self.engine.manifest

    @cached_property
    def schema(self) -> Schema:
        """The fields of the index."""
        return self.manifest.query_schema

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads of this process; the threads of a parent do not survive a fork."""
        if (pid := os.getpid()) not in self._pools:
            self._pools.setdefault(pid, ThreadPoolExecutor(thread_name_prefix="by-words"))
        return self._pools[pid]

    @property
    def standing(self) -> Standing | None:
        """How the index stands beside its sources now; within a scope, only whether it does."""
        standing = read_standing(self._standing_file)
        return standing if standing is None or self.scope is None else standing.within_scope()

    @cached_property
    def _standing_file(self) -> Path:
        return standing_file(self.location, ".json")

    def once(self, make: Callable[[IndexState, *_Ts], _T], *of: *_Ts) -> _T:
        """Return what a function makes of this state and these values, or made of them before."""
        key = make, of
        if key not in self._made:
            self._made[key] = make(self, *of)
        return self._made[key]

    def within(self, filter: str | Data) -> IndexState:
        """Return the part that a filter admits. Raises QueryError."""
        scope, _ = self.narrowed(filter)
        return replace(self, scope=scope, whole=self.whole or self, _made={})

    def narrowed(self, filter: str | Data | None) -> tuple[ResolvedPlan | None, str]:
        """Return the scope narrowed by a filter, and how a reply words the filter, such as
        `` within lang:en``. Raises QueryError for the filter."""
        if filter is None:
            return self.scope, ""
        own = parse_filter(filter, self.schema)
        return joined(self.scope, lower_scope(own)), f" within {' AND '.join(map(str, own))}"

    @contextmanager
    def timed(self, advice: str) -> Generator[Deadline | None]:
        """Begin the time of a query. If it is too long, the error has the limit and the advice."""
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
        """Open the vectors and their encoder; otherwise the first search by vectors opens them.

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
            self.pool.shutdown()  # of no threads, before a hybrid search
            if self.source is not None:
                self.source.close()
        self.engine.close()

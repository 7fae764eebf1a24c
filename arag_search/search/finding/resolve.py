"""Plan -> resolved plan: the lookups of a query, such as patterns, verified on stored text before
an engine answers it.

An engine has no lookups. It lists the passages that the rest of the query lets match: a wanted
lookup counts as true, and a NOT that contains one is left out. Their texts are read and matched.
Then each lookup of the query becomes the list of the passages that match it. So hits, scores,
totals and counts are exact, and the same on every engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from arag_search.corpus import Chunk, chunk_ordinal
from arag_search.engines.base import Deadline, Granularity, SearchEngine
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    joined,
    leaf_clauses,
    resolved,
    superset_condition,
)
from arag_search.plan.lookup import RegexLookup
from arag_search.query.problems import Problem, ProblemKind, QueryError
from arag_search.query.regexes import SlowPatternError, stopwatch

MAX_VERIFIED = 20_000
"""The number of passages or sentences, within the scope, whose texts are read for a query."""
_BATCH = 1_000


def resolve_lookups(
    plan: Clause,
    engine: SearchEngine,
    granularity: Granularity = "chunk",
    scope: ResolvedPlan | None = None,
    deadline: Deadline | None = None,
) -> ResolvedPlan:
    """Return a plan that engines can run: with the ordinals of what its lookups match.

    Raises QueryError if more than MAX_VERIFIED texts might match, or a pattern takes too long, and
    QueryTimeoutError.
    """
    lookups = [(leaf, leaf.lookup) for leaf in leaf_clauses(plan) if leaf.lookup is not None]
    if not lookups:
        return ResolvedPlan(plan)
    within = superset_condition(plan)
    narrowed = scope if within is None else joined(scope, ResolvedPlan(within))
    listed = engine.ordinals(narrowed, deadline, granularity=granularity)
    ordinals = list(islice(listed, MAX_VERIFIED + 1))
    if len(ordinals) > MAX_VERIFIED:
        unit = "sentences" if granularity == "sentence" else "passages"
        size = {"limit": MAX_VERIFIED, "unit": unit}
        raise _refused(plan, *lookups[0], ProblemKind.TOO_MANY_FOR_PATTERN, **size)
    matching: list[list[int]] = [[] for _ in lookups]
    watch = stopwatch()
    for ordinal, passage in _passages(engine, ordinals, granularity, scope):
        if deadline is not None:
            deadline.check()
        for (leaf, lookup), members in zip(lookups, matching, strict=True):
            try:
                if lookup.matches(passage, watch):
                    members.append(ordinal)
            except SlowPatternError:
                raise _refused(plan, leaf, lookup, ProblemKind.SLOW_PATTERN) from None
    return ResolvedPlan(resolved(plan, matching))


def _passages(
    engine: SearchEngine, ordinals: list[int], granularity: Granularity, scope: ResolvedPlan | None
) -> Iterator[tuple[int, Chunk]]:
    """Yield the ordinal of each passage that is still there with the passage, or that of each
    sentence with the passage that it makes by itself."""
    by_chunk: dict[int, list[int]] = {}
    for ordinal in ordinals:
        by_chunk.setdefault(chunk_ordinal(ordinal), []).append(ordinal)
    chunks = list(by_chunk)
    for at in range(0, len(chunks), _BATCH):
        for chunk in engine.chunks_at(chunks[at : at + _BATCH], scope):
            if chunk is None:
                continue
            if granularity == "chunk":
                yield chunk.ordinal, chunk
                continue
            sentences = chunk.sentences()
            for ordinal in by_chunk[chunk.ordinal]:
                text = sentences[ordinal - chunk.ordinal]
                yield ordinal, replace(chunk, content=text, sentence_ends=(len(text),))


def _refused(
    plan: Clause, leaf: Clause, lookup: RegexLookup, kind: ProblemKind, **values: object
) -> QueryError:
    problem = Problem.of(lookup.start + 1, leaf.text, kind, **values)
    return QueryError(str(plan), (problem,), None)

"""Plan -> resolved plan: the lookups of a query, such as patterns, verified on stored text before
an engine answers it.

An engine has no lookups. It lists the passages that match the query without them. There a wanted
lookup counts as true if a word has the runs of letters that its pattern needs. A NOT with a lookup
is left out.
The texts of these passages are read and matched. Then each lookup of the query becomes the list of
the passages that match it. So hits, scores, totals and counts are exact, and the same on every
engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from arag_search.corpus import Chunk, chunk_ordinal
from arag_search.engines.base import Deadline, Granularity, SearchEngine
from arag_search.errors import ArgumentError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    joined,
    leaf_clauses,
    resolved,
    superset_condition,
)
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
    *,
    by_runs: bool = True,
) -> ResolvedPlan:
    """Return a plan that engines can run, with the ordinals of the matches of each lookup. Only
    texts with the runs of letters that the patterns need are read, unless ``by_runs`` is False or a
    server refuses that.

    Raises QueryError if more than MAX_VERIFIED texts might match, or a pattern takes too long, and
    QueryTimeoutError.
    """
    lookups = [(leaf, leaf.lookup) for leaf in leaf_clauses(plan) if leaf.lookup is not None]
    if not lookups:
        return ResolvedPlan(plan)
    by_runs = by_runs and not engine.withheld
    matching: list[list[int]] = [[] for _ in lookups]
    watch = stopwatch()
    try:
        for ordinal, passage in _candidates(plan, engine, granularity, scope, deadline, by_runs):
            if deadline is not None:
                deadline.check()
            for (leaf, lookup), members in zip(lookups, matching, strict=True):
                try:
                    if lookup.matches(passage, watch):
                        members.append(ordinal)
                except SlowPatternError:
                    raise _refused(plan, leaf, ProblemKind.SLOW_PATTERN) from None
    except ArgumentError:  # a server may refuse wildcards
        if not by_runs:
            raise
        return resolve_lookups(plan, engine, granularity, scope, deadline, by_runs=False)
    return ResolvedPlan(resolved(plan, matching))


def _candidates(
    plan: Clause,
    engine: SearchEngine,
    granularity: Granularity,
    scope: ResolvedPlan | None,
    deadline: Deadline | None,
    by_runs: bool,
) -> Iterator[tuple[int, Chunk]]:
    """Yield each passage that may match, with its ordinal. At sentence granularity, each sentence
    is a passage by itself, with the ordinal of the sentence.

    If there may be too many, they are counted: without runs first, for which an engine reads all of
    its words. Raises QueryError for too many.
    """
    is_sentence = granularity == "sentence"
    count = engine.manifest.sentences if is_sentence else engine.manifest.chunks
    within = [superset_condition(plan, runs) for runs in (False, by_runs)]
    plans = [joined(scope, None if part is None else ResolvedPlan(part)) for part in within]
    narrowed = plans[-1]
    for narrowed in dict.fromkeys(plans) if count > MAX_VERIFIED else ():
        if narrowed is not None:
            (count,) = engine.counts([(narrowed, granularity)], None, deadline, exact=True)
        if count <= MAX_VERIFIED // 20:  # soon read
            break
    if count > MAX_VERIFIED:
        first = next(leaf for leaf in leaf_clauses(plan) if leaf.lookup is not None)
        size = {"limit": MAX_VERIFIED, "unit": "sentences" if is_sentence else "passages"}
        raise _refused(plan, first, ProblemKind.TOO_MANY_FOR_PATTERN, **size)
    if engine.is_remote and not is_sentence:
        yield from ((chunk.ordinal, chunk) for chunk in engine.scan(narrowed, deadline))
        return
    by_chunk: dict[int, list[int]] = {}
    for ordinal in engine.ordinals(narrowed, deadline, granularity=granularity):
        by_chunk.setdefault(chunk_ordinal(ordinal), []).append(ordinal)
    chunks = list(by_chunk)
    for at in range(0, len(chunks), _BATCH):
        for chunk in filter(None, engine.chunks_at(chunks[at : at + _BATCH], scope)):
            if not is_sentence:
                yield chunk.ordinal, chunk
                continue
            sentences = chunk.sentences()
            for ordinal in by_chunk[chunk.ordinal]:
                text = sentences[ordinal - chunk.ordinal]
                yield ordinal, replace(chunk, content=text, sentence_ends=(len(text),))


def _refused(plan: Clause, leaf: Clause, kind: ProblemKind, **values: object) -> QueryError:
    problem = Problem.of(leaf.lookup.start + 1 if leaf.lookup else 1, leaf.text, kind, **values)
    return QueryError(str(plan), (problem,), None)

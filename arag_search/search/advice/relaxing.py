"""Advice on a query that finds nothing: the passages that miss the fewest of its conditions.

They are found by ordinary queries, so that every engine gives the same ones in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb

from arag_search.engines.base import Page, SearchRequest
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    any_clause,
    has_lookups,
    leaf_clauses,
    wanted,
    wanted_leaves,
    with_parts,
)
from arag_search.search.advice.judging import Judge
from arag_search.search.advice.questions import Advice, Answers, Counted, Questions, Subject
from arag_search.search.advice.told import MAX_RARE, Told
from arag_search.search.reading.snippets import Snippets

MAX_RELAXED_CLAUSES = 8
"""Queries with more clauses at the top are not relaxed."""
MAX_STEP_LEAVES = 1_000
"""A step of relaxing that takes more leaves is not tried."""
MAX_NEAREST = 5


def relaxed_queries(query: Clause) -> list[Clause]:
    """Return the queries for passages that miss one condition of an AND, two, and so on.

    If no query before matched anything, a passage of the next one matches exactly one alternative
    of it. Its score then comes from the conditions that it meets. Exclusions, preferences,
    demotions and weights stay. In an OR, every alternative is relaxed. Other queries have no
    conditions to miss.
    """
    alternatives = _alternatives(query)
    most = max(len(conditions) for _, conditions, _ in alternatives)
    if most > MAX_RELAXED_CLAUSES:
        return []
    in_all = len(leaf_clauses(query))
    queries: list[Clause] = []
    for missing in range(1, most):
        if in_all * comb(most - 1, missing) > MAX_STEP_LEAVES:  # a clause is in so many
            break
        left = [
            with_parts(group, [*kept, *modifiers])
            for group, conditions, modifiers in alternatives
            if len(conditions) > missing
            for kept in combinations(conditions, len(conditions) - missing)
        ]
        queries.append(any_clause(left, query.weight if query.kind == "any" else 1.0))
    return queries


def relaxed(subject: Subject) -> Advice[Told]:
    """Tell the passages nearest to a query that found nothing, each with the condition that it
    lacks. For an AND, all lack the same one: see ``_alike``.

    A query on sentences is first tried on whole passages. If it has patterns, which were matched in
    sentences, nothing is told.
    """
    request, query = subject.request, subject.query
    by_sentence = request.granularity == "sentence"
    if by_sentence and has_lookups(query):
        return Told()
    steps = [*([query] if by_sentence else []), *relaxed_queries(query)[:1]]
    is_counted = steps and query.kind == "all" and not has_lookups(query)
    parts = query.having("wanted") if is_counted else ()
    counted: list[Counted] = [(part, request.granularity) for part in parts]
    answers: Answers = yield Questions(counted, relaxed_requests(request, steps))
    for step, near in zip(steps, answers.pages, strict=True):
        if near.hits:
            hits = nearest_hits(query, step, near, subject.judge)
            counts = {part: answers.counts[part, request.granularity] for part in parts}
            return Told(nearest=_alike(hits, counts) if counts and hits and hits[0].lacks else hits)
    return Told()


def _alike(hits: tuple[Hit, ...], counts: Mapping[Clause, int]) -> tuple[Hit, ...]:
    """Return the hits that have the rarest condition and lack the one with the most alternatives.
    A group of alternatives is no rarest condition. If hits share only frequent words with the
    query, there are none."""
    single = {part.text: counts[part] for part in counts if counts[part] and not part.parts}
    rare = {text for text in single if single[text] == min(single.values())}
    widths = {part.text: len(wanted_leaves(part)) for part in counts}
    kept = [hit.lacks for hit in hits if rare.difference(hit.lacks) or not rare]
    lacks = max(kept, key=lambda lacked: sum(widths.get(text, 0) for text in lacked), default=())
    is_near = any(
        counts[part] <= MAX_RARE or any(leaf.is_name for leaf in wanted_leaves(part))
        for part in counts
        if part.text not in lacks
    )
    return tuple([hit for hit in hits if hit.lacks == lacks]) if is_near else ()


def relaxed_requests(request: SearchRequest, steps: Sequence[Clause]) -> list[SearchRequest]:
    """Return a search for each step: for few passages, with the scope and time of the request."""
    most = min(request.top_k, MAX_NEAREST)
    return [
        SearchRequest(ResolvedPlan(step), most, scope=request.scope, deadline=request.deadline)
        for step in steps
    ]


def nearest_hits(query: Clause, step: Clause, page: Page, judge: Judge) -> tuple[Hit, ...]:
    """Return the passages of a step with what each lacks of the query. Passages that a pattern
    excludes are left out, since its matches were looked up only where the query might match."""
    chooser = Snippets(step, judge.texts)
    lacks = _lacking(query, page.hits, judge)
    hits = [hit for hit in page.hits if hit.id in lacks]
    nearest = lacks[hits[0].id] if hits else ()
    firsts = {lacks[hit.id]: hit.id for hit in reversed(hits)}
    kept = [hit for hit in hits if lacks[hit.id] == nearest or firsts[lacks[hit.id]] == hit.id]
    return tuple(chooser.shown(hit)._replace(lacks=lacks[hit.id]) for hit in kept)


def _lacking(query: Clause, hits: Sequence[Hit], judge: Judge) -> dict[str, tuple[str, ...]]:
    """Return by id the conditions that each hit lacks, of the alternative that lacks the fewest."""
    lacks: dict[str, tuple[str, ...]] = {}
    for _, conditions, modifiers in _alternatives(query):
        excluded = [wanted(part) for part in modifiers if part.role == "excluded"]
        judged = judge.meeting(hits, [*conditions, *excluded])
        met, out = judged[: len(conditions)], set[str]().union(*judged[len(conditions) :])
        for hit in hits:
            own = [
                condition.text
                for condition, ids in zip(conditions, met, strict=True)
                if hit.id not in ids
            ]
            is_fewer = hit.id not in lacks or len(own) < len(lacks[hit.id])
            if hit.id not in out and len(own) < max(len(conditions), 2) and is_fewer:
                lacks[hit.id] = tuple(dict.fromkeys(own))
    return lacks


def _alternatives(query: Clause) -> list[tuple[Clause, tuple[Clause, ...], list[Clause]]]:
    """Return a query, or each alternative of an OR, with its conditions and its other parts."""
    return [
        (child, child.having("wanted"), [part for part in child.parts if part.role != "wanted"])
        if child.kind == "all"
        else (child, (child,), [])
        for child in (query.parts if query.kind == "any" else (query,))
    ]

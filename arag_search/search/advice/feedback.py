"""Why nothing matched: the hits of the parts of a query."""

from __future__ import annotations

from collections.abc import Mapping

from arag_search.plan.clauses import (
    Clause,
    all_clauses,
    has_lookups,
    leaf_clauses,
    wanted,
    wanted_leaves,
)
from arag_search.search.advice.questions import Advice, Answers, Counted, Questions, Subject
from arag_search.search.advice.told import MAX_RARE, Absence, ClauseCount, Feedback, Told
from arag_search.search.advice.values import (
    MAX_FIELDS,
    case_variants,
    missing_values,
    values_request,
)

MAX_COUNTED_CLAUSES = 8
"""The maximum number of top-level clauses, and of further leaves, that are counted."""


def feedback(subject: Subject) -> Advice[Told]:
    """Count the parts of a query that matched nothing, at most 41. Then read the values of metadata
    clauses without a match.

    Patterns were looked up only where the rest of the query matches. So a part with a pattern is
    counted only if it is an alternative.
    """
    query, granularity = subject.query, subject.request.granularity
    clauses = (query,)
    if query.kind == "any":
        clauses = query.parts[:MAX_COUNTED_CLAUSES]
    elif query.kind == "all":  # what is preferred or demoted does not decide what matches
        clauses = (*query.having("wanted"), *query.having("excluded"))[:MAX_COUNTED_CLAUSES]
    parts: dict[Clause, bool] = {}  # whether it is excluded
    for clause in clauses:
        if not (query.kind == "all" and has_lookups(clause)):
            parts.setdefault(wanted(clause), clause.role == "excluded")
    inner = dict.fromkeys(
        leaf
        for clause in clauses
        if clause.parts
        for leaf in map(wanted, leaf_clauses(clause))
        if leaf.lookup is None and leaf not in parts
    )
    parts |= dict.fromkeys(list(inner)[:MAX_COUNTED_CLAUSES], False)
    rest = _without_each(query) if query.kind == "all" and len(clauses) > 2 else []
    rest = [(clause, node) for clause, node in rest if not has_lookups(node)]
    in_chunks = [query] if granularity == "sentence" and not has_lookups(query) else []
    variants = case_variants(query)
    queries: list[Counted] = [
        *((part, granularity) for part in (*parts, *(node for _, node in rest))),
        *((part, "chunk") for part in (*in_chunks, *variants)),
    ]
    answers: Answers = yield Questions(queries)
    counts = answers.counts
    alone = [
        ClauseCount(part.text, counts[part, granularity], None if part.parts else part, excluded)
        for part, excluded in parts.items()
    ]
    without = [ClauseCount(str(clause), counts[node, granularity], None) for clause, node in rest]
    nowhere = {row.clause for row in alone if row.leaf and not row.count and not row.excluded}
    unmatched = [leaf for leaf in wanted_leaves(query) if leaf.is_metadata and leaf.text in nowhere]
    unmatched = list(dict.fromkeys(unmatched))[:MAX_FIELDS]
    if wanted_values := values_request(unmatched, subject.request):
        answers = yield Questions(values=wanted_values)
    of_variants = [(variant, counts[variant, "chunk"]) for variant in variants]
    missing = missing_values(unmatched, [pair for pair in of_variants if pair[1]], answers.values)
    counted = Feedback(
        tuple(alone),
        tuple(row for row in without if row.count),
        counts[query, "chunk"] if in_chunks else None,
        missing,
    )
    return Told(feedback=counted, absent=_absent(subject, counts))


def _absent(subject: Subject, counts: Mapping[Counted, int]) -> tuple[Absence, ...]:
    """Return what the passages of a rare name lack, if the query is this name AND one of several
    words, and nothing matches."""
    query = subject.query
    names = [part for part in query.parts if part.is_name]
    words = [leaf for part in query.parts for leaf in part.parts or (part,) if not leaf.is_name]
    is_plain = query.kind == "all" and all(leaf.kind in ("word", "prefix") for leaf in words)
    is_one = len(query.having("wanted")) == len(query.parts) == 2 and len(names) == 1
    if not (is_one and is_plain) or subject.is_corrected:
        return ()
    passages = counts.get((names[0], "chunk"), 0)
    texts = tuple([leaf.text for leaf in words])
    return (Absence(names[0].text, passages, texts),) if 0 < passages <= MAX_RARE else ()


def _without_each(query: Clause) -> list[tuple[Clause, Clause]]:
    """Return the first clauses with the query without each, if something positive is left."""
    clauses = (*query.having("wanted"), *query.having("excluded"))
    result: list[tuple[Clause, Clause]] = []
    for dropped in range(min(len(clauses), MAX_COUNTED_CLAUSES)):
        rest = [part for at, part in enumerate(clauses) if at != dropped]
        if any(part.role == "wanted" for part in rest):
            result.append((clauses[dropped], all_clauses(rest)))
    return result

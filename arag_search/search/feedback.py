"""Why nothing matched: the hits of the parts of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arag_search.engines.base import MAX_TOTAL, Granularity
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    all_of,
    has_patterns,
    leaves,
    wanted,
    wanted_leaves,
)
from arag_search.query.fields import TITLE
from arag_search.query.problems import shortened
from arag_search.search.nearest import MissingValue, ValueReader, case_variants, missing_values
from arag_search.system.progress import counted

MAX_CLAUSES = 8
"""The maximum number of top-level clauses, and of further leaves, that are counted."""

Counter = Callable[[Sequence[tuple[ResolvedPlan, Granularity]]], list[int]]


@dataclass(frozen=True, slots=True)
class ClauseCount:
    """A clause and its hits on its own; ``count`` above MAX_TOTAL means "more than 1,000".
    ``titles`` are those of its hits that are not shown, if they are few."""

    clause: str
    count: int
    leaf: bool
    excluded: bool = False
    titles: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.leaf and not self.count:
            return f"{self.clause} occurs nowhere"
        excluded = " (excluded)" if self.excluded else ""
        return f"{self.clause} {count_text(self.count)}{excluded}"


@dataclass(frozen=True, slots=True)
class Feedback:
    """The hits of the parts of a query that matched nothing.

    ``alone`` counts each top-level clause, then each leaf within these. ``without`` counts a query
    of more than two clauses without one, for clauses whose removal gives hits. ``in_chunks`` is, at
    sentence granularity, the count of the whole query at chunk granularity, else None. ``missing``
    are the metadata clauses without a match, each with the values that there are.
    """

    alone: tuple[ClauseCount, ...]
    without: tuple[ClauseCount, ...]
    in_chunks: int | None = None
    missing: tuple[MissingValue, ...] = ()

    def __str__(self) -> str:
        explained = {value.clause for value in self.missing}
        alone = [clause for clause in self.alone if clause.clause not in explained]
        sentences = [f"Alone: {'; '.join(map(str, alone))}"] if alone else []
        sentences += [f"Without {rest.clause}: {count_text(rest.count)}" for rest in self.without]
        if self.in_chunks is not None:
            sentences.append(f"With granularity chunk: {count_text(self.in_chunks)}")
        sentences += map(str, self.missing)
        return f"{'. '.join(sentences)}."

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in types of JSON, and the ``text`` that says the same in words."""
        return {
            "text": str(self),
            "alone": [
                {"clause": clause.clause, "count": clause.count, "excluded": clause.excluded}
                for clause in self.alone
            ],
            "without": [
                {"clause": clause.clause, "count": clause.count} for clause in self.without
            ],
            "in_chunks": self.in_chunks,
            "missing_values": [value.to_dict() for value in self.missing],
        }


def count_text(count: int) -> str:
    """Return the count as text, or "more than 1,000"."""
    return f"{count:,}" if count <= MAX_TOTAL else f"more than {MAX_TOTAL:,}"


def feedback(
    query: Clause, granularity: Granularity, count: Counter, read_values: ValueReader
) -> Feedback:
    """Count the parts of a query that matched nothing.

    ``count`` is called once, with at most 41 queries; ``read_values`` at most once, for the
    metadata clauses without a match. What a pattern matches is known only where the rest of the
    query matches, so a part with one is counted only if it is an alternative.
    """
    clauses = (query,)
    if query.kind == "any":
        clauses = query.parts[:MAX_CLAUSES]
    elif query.kind == "all":  # what is preferred or demoted does not decide what matches
        clauses = (*query.having("wanted"), *query.having("excluded"))[:MAX_CLAUSES]
    parts: dict[Clause, bool] = {}  # whether it is excluded
    for clause in clauses:
        if not (query.kind == "all" and has_patterns(clause)):
            parts.setdefault(wanted(clause), clause.role == "excluded")
    inner = dict.fromkeys(
        leaf
        for clause in clauses
        if clause.parts
        for leaf in map(wanted, leaves(clause))
        if leaf.kind != "pattern" and leaf not in parts
    )
    parts |= dict.fromkeys(list(inner)[:MAX_CLAUSES], False)
    rest = _without_each(query) if query.kind == "all" and len(clauses) > 2 else []
    rest = [(clause, node) for clause, node in rest if not has_patterns(node)]
    in_chunks = [query] if granularity == "sentence" and not has_patterns(query) else []
    variants = case_variants(query)
    queries: list[tuple[Clause, Granularity]] = [
        *((part, granularity) for part in (*parts, *(node for _, node in rest))),
        *((part, "chunk") for part in (*in_chunks, *variants)),
    ]
    numbers = count([(ResolvedPlan(part), unit) for part, unit in queries])
    counts = dict(zip(queries, numbers, strict=True))
    alone = [
        ClauseCount(part.text, counts[part, granularity], not part.parts, excluded)
        for part, excluded in parts.items()
    ]
    without = [ClauseCount(str(clause), counts[node, granularity], False) for clause, node in rest]
    nowhere = {row.clause for row in alone if row.leaf and not row.count and not row.excluded}
    unmatched = [leaf for leaf in wanted_leaves(query) if leaf.is_metadata and leaf.text in nowhere]
    of_variants = [(variant, counts[variant, "chunk"]) for variant in variants]
    missing = missing_values(unmatched, [pair for pair in of_variants if pair[1]], read_values)
    return Feedback(
        tuple(alone),
        tuple(row for row in without if row.count),
        counts[query, "chunk"] if in_chunks else None,
        missing,
    )


def without_exclusions(query: Clause) -> Clause | None:
    """Return an AND without the NOTs that exclude words of the content, which is counted to say how
    much they remove. None for other queries, and where what a pattern matches is not known."""
    if query.kind != "all" or has_patterns(query):
        return None
    excluded = _excluded_words(query)
    kept = [part for part in query.parts if part not in excluded]
    return None if len(kept) == len(query.parts) else all_of(kept)


def exclusion_note(query: Clause, remaining: int, count: int) -> str:
    """Return the note on NOTs that remove more than half of what the rest of a query finds, whose
    ``count`` is that of ``without_exclusions``; empty for others."""
    if query.kind != "all" or 2 * remaining >= count:
        return ""
    excluded = " ".join(map(str, _excluded_words(query)))
    share = f"{count - remaining:,} of {counted(count, 'passage')}"
    if count > MAX_TOTAL:
        share = f"all but {remaining:,} of more than {MAX_TOTAL:,} passages"
    return f"{shortened(excluded)} removes {share}: DEMOTE instead of NOT keeps and lowers them."


def _excluded_words(query: Clause) -> list[Clause]:
    """Return the NOTs of an AND that exclude words of the content."""
    return [
        part
        for part in query.having("excluded")
        if any(leaf.is_text and leaf.field != TITLE for leaf in leaves(part))
    ]


def _without_each(query: Clause) -> list[tuple[Clause, Clause]]:
    """Return the first clauses with the query without each, if something positive is left."""
    clauses = (*query.having("wanted"), *query.having("excluded"))
    result: list[tuple[Clause, Clause]] = []
    for dropped in range(min(len(clauses), MAX_CLAUSES)):
        rest = [part for at, part in enumerate(clauses) if at != dropped]
        if any(part.role == "wanted" for part in rest):
            result.append((clauses[dropped], all_of(rest)))
    return result

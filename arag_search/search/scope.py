"""The scope of one search: that of the index, narrowed by the filter of the call, and for a search
by vectors by its condition."""

from __future__ import annotations

from typing import NamedTuple

from arag_search.plan.clauses import Clause, ResolvedPlan, joined
from arag_search.plan.lower import lower, lower_scope
from arag_search.query.fields import Schema
from arag_search.query.reading import parse_filter, parse_where
from arag_search.query.tree import Scope, unweighted


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


class Conditions(NamedTuple):
    """What passages have to satisfy to be ranked: the scope, in words such as `` where a AND b
    within lang:en``; with a condition ``where``, its clauses, canonical text, and notes on it."""

    scope: ResolvedPlan | None
    words: str
    where: str = ""
    notes: tuple[str, ...] = ()
    condition: Clause | None = None


def conditions(
    scope: ResolvedPlan | None, filter: str | None, where: str | None, schema: Schema
) -> Conditions:
    """Read the filter of a call, which narrows the scope of an index, and its condition ``where``,
    a logical query. Raises QueryError for the filter and the condition."""
    scope, within = narrowed(scope, filter, schema)
    if where is None:
        return Conditions(scope, within)
    parsed = parse_where(where, schema)
    words = f" where {parsed.text}{within}"
    condition = lower(unweighted(parsed.tree), parsed.language)
    return Conditions(scope, words, parsed.text, parsed.notes, condition)

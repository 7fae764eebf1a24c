"""The scope of one search: that of the index, narrowed by the filter of the call, and for a search
by vectors by its condition."""

from __future__ import annotations

from typing import NamedTuple

from arag_search.query.fields import Schema
from arag_search.query.parser import parse_filter, parse_where
from arag_search.query.tree import Scope


def narrowed(scope: Scope | None, filter: str | None, schema: Schema) -> tuple[Scope | None, str]:
    """Return the scope of the documents that both the scope and the filter admit, and the words for
    the filter, such as `` within lang:en``.

    The filter can narrow the scope and never widen it. Raises QueryError for the filter.
    """
    if filter is None:
        return scope, ""
    own = parse_filter(filter, schema)
    return joined(scope, own), f" within {own}"


class Conditions(NamedTuple):
    """What passages have to satisfy to be ranked: the scope, in words such as `` where a AND b
    within lang:en``; with a condition ``where``, its canonical text, and notes on it."""

    scope: Scope | None
    words: str
    where: str = ""
    notes: tuple[str, ...] = ()


def conditions(
    scope: Scope | None, filter: str | None, where: str | None, schema: Schema
) -> Conditions:
    """Join the scope of an index, the filter of a call, and its condition ``where``, a logical
    query. Raises QueryError for the filter and the condition."""
    scope, within = narrowed(scope, filter, schema)
    if where is None:
        return Conditions(scope, within)
    parsed = parse_where(where, schema)
    both = joined(scope, Scope((parsed.tree,)))
    return Conditions(both, f" where {parsed.understood}{within}", parsed.understood, parsed.notes)


def joined(first: Scope | None, second: Scope | None) -> Scope | None:
    """Return the scope of the documents that both scopes admit."""
    if first is None or second is None:
        return first or second
    return Scope((*first.include, *second.include), (*first.exclude, *second.exclude))

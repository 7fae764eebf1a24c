"""The scope of one search: that of the index, narrowed by the filter of the call."""

from __future__ import annotations

from arag_search.query.fields import Schema
from arag_search.query.parser import parse_filter
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


def joined(first: Scope | None, second: Scope | None) -> Scope | None:
    """Return the scope of the documents that both scopes admit."""
    if first is None or second is None:
        return first or second
    return Scope((*first.include, *second.include), (*first.exclude, *second.exclude))

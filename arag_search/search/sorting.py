"""The order of a search by a field: ``year``, ``year:asc`` or ``year:desc``."""

from __future__ import annotations

from typing import cast

from arag_search.engines.base import SortBy
from arag_search.errors import ArgumentError
from arag_search.query.fields import DOC_ID, Schema

_DIRECTIONS = {"asc": False, "desc": True}


def parse_sort(text: str, schema: Schema) -> SortBy:
    """Return the order that a text names; without a direction, ascending.

    Raises ArgumentError for a field that is not metadata of the schema, and another direction.
    """
    if not isinstance(cast(object, text), str):
        raise ArgumentError(
            f"sort is {text!r}.", allowed="a string such as year:desc", do="Name one field."
        )
    field, colon, direction = text.strip().partition(":")
    fields = [*schema.metadata, DOC_ID]
    if field not in fields:
        raise ArgumentError(
            f"sort names the field {_shown(field)}, which has no order."
            if schema.kind(field) == "text"
            else f"sort names the field {_shown(field)}, which the index does not have.",
            allowed=f"{', '.join(fields)}; with :asc or :desc",
            do="Leave it out to rank by score.",
        )
    if colon and direction not in _DIRECTIONS:
        raise ArgumentError(
            f"sort has the direction {_shown(direction)}.",
            allowed=f"{field}:asc or {field}:desc",
            do="Without a direction, the least value comes first.",
        )
    return SortBy(field, _DIRECTIONS.get(direction, False))


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'

"""The fields of an index: how many passages have them, and with which values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arag_search.engines.base import (
    Deadline,
    FieldsRequest,
    FieldValues,
    SortBy,
    ValueCount,
)
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.field_counts import KEPT_VALUES, FieldCounts
from arag_search.plan.clauses import joined, unranked
from arag_search.plan.lower import lower
from arag_search.query.field_types import FIELD_TYPES, KEYWORD
from arag_search.query.fields import DOC_ID, TEXT_FIELDS, TITLE, FieldKind, Schema
from arag_search.query.filters import Data
from arag_search.query.reading import parse
from arag_search.search.finding.resolve import resolve_lookups
from arag_search.search.state import FEWER, IndexState

MAX_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """A field and its values in the passages of a scope.

    ``passages`` counts passages with a value; in a text field, with a word. A keyword field has the
    number of its ``distinct`` values, and the most frequent ``values`` with their passages. A
    number or date has the ``least`` and the ``greatest`` value, as queries write them. A date
    stands for the beginning of the period that a passage names. Values that do not apply are None
    or empty.
    """

    name: str
    kind: FieldKind
    passages: int
    distinct: int | None = None
    values: tuple[ValueCount, ...] = ()
    least: str | None = None
    greatest: str | None = None


@dataclass(frozen=True, slots=True)
class FieldsResult:
    """The fields of an index. ``passages`` is the number of all passages in scope."""

    passages: int
    fields: tuple[FieldSummary, ...]


def fields(
    state: IndexState,
    *names: str,
    values: int = 10,
    filter: str | Data | None = None,
    where: str | None = None,
    as_written: bool = False,
) -> FieldsResult:
    """Return the named fields of the index, or all of them if none is named.

    Each has its number of passages. A keyword field also has its most frequent ``values`` (0 to
    1,000); a number or a date has its range. All numbers are exact. They count
    passages within the scope, which ``filter`` narrows, that match the logical query ``where``, if
    it is given; ``as_written`` is as in ``logical_search``. If no field is named, ``doc_id`` has
    only its number of passages, since it has as many values as there are documents.

    Raises QueryError for the filter and the query, ArgumentError, QueryTimeoutError and
    IndexClosedError.
    """
    schema, (scope, _) = state.schema, state.narrowed(filter)
    _check(names, values, schema)
    chosen = tuple(dict.fromkeys(names)) or (*TEXT_FIELDS, *schema.metadata)
    with state.timed(FEWER) as deadline:
        if where is not None:
            query = parse(where, schema, as_written=as_written)
            clause = unranked(lower(query.tree, query.language))
            plan = resolve_lookups(clause, state.engine, "chunk", scope, deadline)
            scope = joined(scope, plan)
        request = FieldsRequest(chosen, values, scope, deadline=deadline)
        page = state.engine.field_values(request)
    summaries = [_summary(field, schema) for field in page.fields]
    if not names:
        at = len(TEXT_FIELDS)
        summaries.insert(at, FieldSummary(DOC_ID, KEYWORD.name, page.chunks))
    return FieldsResult(page.chunks, tuple(summaries))


def metadata_fields(state: IndexState) -> tuple[FieldSummary, ...]:
    """Return the declared fields with their most frequent values, at most KEPT_VALUES, or ranges.

    They come from the manifest, without a request, if it has them and there is no scope. Otherwise
    they are counted within the scope, in one round trip; if that takes too long, they are left out.
    """
    schema, deadline = state.schema, Deadline.after(state.search_timeout_s)
    names, counts = tuple(schema.metadata), state.manifest.field_counts
    if state.scope is None and counts.keys() >= schema.metadata.keys():
        return tuple(_counted(name, counts[name], schema) for name in names)
    request = FieldsRequest(names, KEPT_VALUES, state.scope, quick=True, deadline=deadline)
    try:
        page = state.engine.field_values(request) if names else None
    except QueryTimeoutError:
        return tuple(FieldSummary(name, schema.metadata[name], 0) for name in names)
    return tuple(_summary(field, schema) for field in page.fields) if page else ()


class Contents(NamedTuple):
    """The contents of a scope.

    ``has_titles``: whether a passage has a title.
    ``has_neighbours``: whether a passage has another one before or after it.
    ``passages``: their number; 0 if they were not counted in time.
    """

    has_titles: bool
    has_neighbours: bool
    passages: int


def contents(state: IndexState) -> Contents:
    """Return what passages in a scope have. Without a scope, the manifest says this; otherwise it
    takes one request. If that takes too long, titles and neighbours are assumed; so are neighbours
    if a server cannot count the documents in this request."""
    manifest, scope = state.manifest, state.scope
    several = manifest.already_chunked or manifest.chunks > manifest.documents
    if scope is None or not (several or manifest.has_titles):
        return Contents(manifest.has_titles, several, manifest.chunks)
    deadline = Deadline.after(state.search_timeout_s)
    request = FieldsRequest((TITLE, DOC_ID), 0, scope, quick=True, deadline=deadline)
    try:
        page = state.engine.field_values(request)
    except QueryTimeoutError:
        return Contents(True, True, 0)
    titles, documents = page.fields
    several = manifest.already_chunked or page.chunks > (documents.distinct or 0)
    return Contents(titles.chunks > 0, several, page.chunks)


def bound_text(value: float | None, kind: FieldKind) -> str | None:
    """Return the least or greatest value of a field as a query writes it."""
    return None if value is None else FIELD_TYPES[kind].written(value)


def _summary(field: FieldValues, schema: Schema) -> FieldSummary:
    kind = schema.kind(field.name) or KEYWORD.name
    ends = (bound_text(end, kind) for end in (field.least, field.greatest))
    return FieldSummary(field.name, kind, field.chunks, field.distinct, field.frequent, *ends)


def _counted(name: str, counts: FieldCounts, schema: Schema) -> FieldSummary:
    values = tuple(ValueCount(value, chunks) for value, chunks in counts.values.items())
    distinct = len(values) if counts.is_complete else None
    ends = (counts.least, counts.greatest)
    return _summary(FieldValues(name, counts.passages, distinct, values, *ends), schema)


def _check(names: Sequence[str], values: int, schema: Schema) -> None:
    unknown = [name for name in names if schema.kind(name) is None]
    if unknown:
        named = ", ".join(f'"{name[:40]}"' for name in unknown)
        raise ArgumentError(
            f"The index has no field {named}.", allowed=f"{schema.describe()}, or no name for all"
        )
    if not 0 <= values <= MAX_VALUES:
        raise ArgumentError(f"values is {values}.", allowed=f"0 to {MAX_VALUES:,}")


# The order of a search by a field: ``year``, ``year:asc`` or ``year:desc``


_DIRECTIONS = {"asc": False, "desc": True}


def parse_sort(text: str, schema: Schema) -> SortBy:
    """Return the order that a text names; without a direction, ascending.

    Raises ArgumentError for a field that is not metadata of the schema, and another direction.
    """
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

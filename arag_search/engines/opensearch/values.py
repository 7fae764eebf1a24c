"""The values of fields, counted by aggregations.

The counts of a ``terms`` aggregation are exact only if it returns all values, or says that a count
has no error. A field with more values is read by a ``composite`` aggregation, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    FieldsPage,
    FieldsRequest,
    FieldValues,
    ValueCount,
)
from arag_search.engines.opensearch import compile
from arag_search.engines.opensearch.answers import BY_ORDINAL, count_of
from arag_search.engines.opensearch.compile import Dsl
from arag_search.engines.opensearch.physical import Searcher
from arag_search.engines.opensearch.schema import opensearch_field
from arag_search.query.field_types import MetadataType, Storage
from arag_search.query.fields import TEXT_FIELDS, type_of

_PER_SHARD = 10_000
"""The values that every shard returns for MAX_QUICK_VALUES of them."""
_PAGE = 10_000


class FieldReader:
    """A reader of the values of fields, for one request."""

    def __init__(
        self, searcher: Searcher, request: FieldsRequest, metadata: Mapping[str, MetadataType]
    ) -> None:
        self._searcher = searcher
        self._request = request
        self._metadata = metadata
        self._query = compile.filtered(None, compile.scope_filter(request.scope))

    def page(self) -> FieldsPage:
        """Return the values of all fields. Raises QueryTimeoutError."""
        request = self._request
        total: Dsl = {"query": self._query, "size": 0, "track_total_hits": True}
        bodies = [
            total,
            *(self._body(_aggregation(name, self._storage(name))) for name in request.fields),
        ]

        def read(answers: Sequence[Mapping[str, Any]]) -> tuple[int, list[FieldValues]]:
            of_fields = zip(request.fields, answers[1:], strict=True)
            fields = [
                self._values(name, answer["aggregations"]["with"]) for name, answer in of_fields
            ]
            return count_of(answers[0]).number, fields

        chunks, fields = self._searcher.searches(
            [(request.granularity, body) for body in bodies], read, deadline=request.deadline
        )
        for at, field in enumerate(fields):
            is_cut = field.distinct is None and self._storage(field.name) == "term"
            if is_cut and not request.quick:
                fields[at] = self._every_value(field)
        return FieldsPage(chunks, tuple(fields))

    def _storage(self, name: str) -> Storage | None:
        """Return what the values of a field are, None for a text."""
        return None if name in TEXT_FIELDS else type_of(name, self._metadata).storage

    def _body(self, aggregations: Dsl) -> Dsl:
        # Where no hit is returned, the server takes a shortcut and says that it ended early.
        return {
            "query": self._query,
            "size": 1,
            "sort": BY_ORDINAL,
            "track_total_hits": False,
            "_source": False,
            "aggs": aggregations,
        }

    def _values(self, name: str, answer: Mapping[str, Any]) -> FieldValues:
        chunks = int(answer["doc_count"])
        storage = self._storage(name)
        if storage is None:
            return FieldValues(name, chunks)
        if storage == "term":
            return self._keywords(name, chunks, answer["values"])
        if not chunks:
            return FieldValues(name, 0)
        least, greatest = (float(answer[end]["value"]) for end in ("least", "greatest"))
        return FieldValues(name, chunks, least=least, greatest=greatest)

    def _keywords(self, name: str, chunks: int, values: Mapping[str, Any]) -> FieldValues:
        """Return the most frequent values; ``distinct`` is None if there are more."""
        buckets = values["buckets"]
        complete = not values["sum_other_doc_count"] and not values["doc_count_error_upper_bound"]
        counts = [
            ValueCount(
                bucket["key"],
                None if bucket["doc_count_error_upper_bound"] else int(bucket["doc_count"]),
            )
            for bucket in buckets[: self._request.values]
        ]
        return FieldValues(name, chunks, len(buckets) if complete else None, tuple(counts))

    def _every_value(self, field: FieldValues) -> FieldValues:
        """Return the values of a keyword field, of which all are read and counted."""
        request, name = self._request, field.name
        distinct = 0

        def counted() -> Iterator[tuple[int, str]]:
            nonlocal distinct
            for value, count in self._all(name):
                distinct += 1
                yield -count, value

        first = nsmallest(request.values, counted())
        if not first:  # nothing was requested, and nothing counted
            distinct = sum(1 for _ in self._all(name))
        frequent = tuple(ValueCount(value, -count) for count, value in first)
        return FieldValues(name, field.chunks, distinct, frequent)

    def _all(self, name: str) -> Iterator[tuple[str, int]]:
        """Yield all values of a keyword field, in order, with their counts. One request a page."""
        source = {"value": {"terms": {"field": opensearch_field(name)}}}
        composite: Dsl = {"size": _PAGE, "sources": [source]}
        body = self._body({"values": {"composite": composite}})
        deadline = self._request.deadline
        while True:
            counted, composite["after"] = self._searcher.search(
                self._request.granularity, body, _composite_page, deadline=deadline
            )
            yield from counted
            if len(counted) < _PAGE:
                return
            if deadline is not None:
                deadline.check()


def _composite_page(answer: Mapping[str, Any]) -> tuple[list[tuple[str, int]], Any]:
    """Return the values of a page with their counts, and what the next page comes after."""
    values = answer["aggregations"]["values"]
    buckets = [
        (str(bucket["key"]["value"]), int(bucket["doc_count"])) for bucket in values["buckets"]
    ]
    return buckets, values["after_key"] if len(buckets) == _PAGE else None


def _aggregation(name: str, storage: Storage | None) -> Dsl:
    if storage is None:
        # A text without a word exists too, but has no term.
        return {"with": {"filter": {"prefix": {name: {"value": ""}}}}}
    field = opensearch_field(name)
    within: Dsl = {"filter": {"exists": {"field": field}}}
    if storage == "term":
        terms = {
            "field": field,
            "size": MAX_QUICK_VALUES,
            "shard_size": _PER_SHARD,
            "show_term_doc_count_error": True,
            "order": [{"_count": "desc"}, {"_key": "asc"}],
        }
        within["aggs"] = {"values": {"terms": terms}}
    else:
        within["aggs"] = {"least": {"min": {"field": field}}, "greatest": {"max": {"field": field}}}
    return {"with": within}

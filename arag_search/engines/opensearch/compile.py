"""Compilation of operations to OpenSearch's query language. Words are analysed here, and sent as
terms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from arag_search.corpus import is_unicode, nfc
from arag_search.engines.base import KeywordRequest
from arag_search.engines.opensearch.schema import ORDINAL, exact_field, opensearch_field
from arag_search.plan.algebra import (
    AllOf,
    AnyOf,
    Best,
    Boost,
    Interval,
    Known,
    Lowered,
    Operation,
    Spread,
    Unknown,
    Values,
    Way,
)
from arag_search.plan.clauses import ResolvedPlan
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import DOC_ID, TEXT_FIELDS

Dsl = dict[str, Any]
"""A query as JSON."""

Compiled = tuple[Dsl, bool]
"""A query, and whether its matches have a score."""

NO_SCORE = 1e-30
"""The boost of terms that are added only for their statistics."""

_MAX_SCALE = 27_720  # divisible by 1 to 12 words


def compiled(operation: Operation, boost: float = 1.0) -> Compiled:
    """Return the query of an operation times a boost, and whether its matches have a score."""
    match operation:
        case Best():
            return _best(operation, boost), True
        case Spread():
            spread = {"filter": _any_place([*map(_spread, operation.ways)]), "boost": boost}
            return {"constant_score": spread}, True
        case AllOf():
            return _all(operation, boost)
        case AnyOf():
            return _any(operation, boost)
        case Boost():
            return compiled(operation.operation, operation.factor)
        case Values():
            field = opensearch_field(operation.field)
            if len(operation.values) == 1:
                return {"term": {field: {"value": operation.values[0]}}}, False
            return any_value(field, operation.values), False
        case Interval():
            field = opensearch_field(operation.field)
            return between(field, operation.lower, operation.upper), False
        case Known():
            return any_value(ORDINAL, operation.ordinals), False
        case Lowered():
            return _lowered(operation, boost)
        case Unknown():
            raise ValueError(f"what lookup {operation.number} matches is not known")
        case _:
            assert_never(operation)


def request_query(
    plan: ResolvedPlan, scope: ResolvedPlan | None, statistics: Sequence[Dsl] | None = None
) -> tuple[Dsl, bool]:
    """Return the query to send for a plan within a scope, and whether its matches have a score.

    ``statistics`` are the argument of ``with_statistics``, used if there is a score.
    """
    query, scored = compiled(plan.operation)
    within = scope_filter(scope)
    if not scored:
        return filtered(None, query, within), False
    return with_statistics(filtered(query, within), plan.operation, statistics), True


def condition(plan: ResolvedPlan, scope: ResolvedPlan | None, *filters: Dsl | None) -> Dsl:
    """Return the query of a plan within a scope and filters, without scores."""
    return filtered(None, compiled(plan.operation)[0], scope_filter(scope), *filters)


def shard_terms(terms: Mapping[str, Sequence[str]]) -> tuple[Dsl, ...]:
    """Return queries for terms, by text field, of which every shard with the field holds one."""
    return tuple(_way((field, (term,)), 0, NO_SCORE) for field in terms for term in terms[field])


def with_statistics(query: Dsl, operation: Operation, statistics: Sequence[Dsl] | None) -> Dsl:
    """Make a query return every shard's statistics of the words and fields of its ``operation``.

    Shards score alike only if each returns its counts and lengths. By itself, a shard omits those
    of a field whose words it lacks, and all of them if a filter excludes everything that it holds.
    So a clause that matches nothing is added next to the query, outside of any filter: the words
    of the query, and the ``statistics`` of ``shard_terms``. None is for an index of one shard.
    """
    if statistics is None:
        return query
    words = {
        (name, term): _way((name, (term,)), 0, NO_SCORE)
        for name, terms in scored_ways(operation)
        for term in terms
    }
    # If it matched, documents without a score would get one.
    nothing: Dsl = {"term": {DOC_ID: {"value": ""}}}
    unmatched: Dsl = {"bool": {"should": [*statistics, *words.values()], "filter": [nothing]}}
    return {"bool": {"should": [query, unmatched], "minimum_should_match": 1}}


def scored_ways(operation: Operation) -> Iterator[Way]:
    """Yield the ways of an operation that BM25 scores."""
    match operation:
        case Best():
            yield from operation.ways
        case AllOf():
            for scored in (*operation.scored, *operation.optional):
                yield from scored_ways(scored)
        case AnyOf():
            for scored in operation.operations:
                yield from scored_ways(scored)
        case Boost() | Lowered():
            yield from scored_ways(operation.operation)
        case _:
            pass


def filtered(query: Dsl | None, *filters: Dsl | None) -> Dsl:
    """Return the query within the filters, of which None is ignored; a None query matches all."""
    effective = [clause for clause in filters if clause is not None]
    if query is not None and not effective:
        return query
    if query is None and not effective:
        return {"match_all": {}}
    return {"bool": {**({} if query is None else {"must": [query]}), "filter": effective}}


def scope_filter(scope: ResolvedPlan | None) -> Dsl | None:
    """Return the filter of a scope; None without a scope."""
    return None if scope is None else compiled(scope.operation)[0]


def keyword_query(request: KeywordRequest) -> tuple[Dsl, int] | None:
    """Return the query of Eq. 1 times a scale, and the scale; None if no keyword has a token.

    Every keyword counts in each field and each of its spellings. The ``.exact`` fields score boost
    x frequency once for each word of a phrase. The scale makes each word's share an integer, so
    that equal sums are equal floats.
    """
    pairs = [
        (exact_field(field), spelling, len(keyword))
        for keyword in map(nfc, request.keywords)
        for spelling in spellings_of(keyword)
        for field in TEXT_FIELDS
    ]
    if not pairs:
        return None
    scale = min(math.lcm(*(len(spelling) for _, spelling, _ in pairs)), _MAX_SCALE)
    should = [
        _way((field, spelling), 0, length * scale / len(spelling))
        for field, spelling, length in pairs
    ]
    query = {"bool": {"should": should, "minimum_should_match": 1}}
    return filtered(query, scope_filter(request.scope)), scale


def any_value(field: str, values: Iterable[str | int]) -> Dsl:
    """Match documents whose field has one of the values; invalid Unicode matches none."""
    terms = [value for value in values if isinstance(value, int) or is_unicode(value)]
    return {"terms": {field: terms}}


def between(field: str, first: float, last: float) -> Dsl:
    """Match documents whose field has a number from ``first`` to ``last``, both included."""
    return {"range": {field: {"gte": first, "lte": last}}}


# Groups


def _all(operation: AllOf, boost: float) -> Compiled:
    clauses: dict[str, Any] = {
        name: [compiled(part)[0] for part in parts]
        for name, parts in (
            ("must", operation.scored),
            ("filter", operation.filters),
            ("must_not", operation.excluded),
            ("should", operation.optional),
        )
        if parts
    }
    if operation.optional:
        clauses["minimum_should_match"] = 0
    return {"bool": _with_boost(clauses, boost)}, bool(operation.scored or operation.optional)


def _any(operation: AnyOf, boost: float) -> Compiled:
    alternatives = [compiled(part) for part in operation.operations]
    scored = any(has_score for _, has_score in alternatives)
    should = [
        query if has_score or not scored else {"constant_score": {"filter": query, "boost": 0.0}}
        for query, has_score in alternatives
    ]
    clauses: Dsl = {"should": should, "minimum_should_match": 1}
    return {"bool": _with_boost(clauses, boost)}, scored


def _lowered(operation: Lowered, boost: float) -> Compiled:
    query, scored = compiled(operation.operation)
    demoted: Dsl = {
        "query": query,
        "functions": [
            {"filter": compiled(demotion)[0], "weight": factor}
            for demotion, factor in operation.demotions
        ],
        "score_mode": "multiply",
        "boost_mode": "multiply",
    }
    return {"function_score": _with_boost(demoted, boost)}, scored


def _with_boost(query: Dsl, boost: float) -> Dsl:
    return query if boost == 1 else {**query, "boost": boost}


# Leaves


def _best(operation: Best, boost: float) -> Dsl:
    ways, slop = operation.ways, operation.slop
    if len(ways) == 1:
        return _way(ways[0], slop, boost)
    best: Dsl = {"tie_breaker": 0.0, "queries": [_way(way, slop, 1.0) for way in ways]}
    return {"dis_max": _with_boost(best, boost)}


def _way(way: Way, slop: int, boost: float) -> Dsl:
    field, terms = way
    with_boost = {} if boost == 1 else {"boost": boost}
    if len(terms) == 1:
        return {"term": {field: {"value": terms[0], **with_boost}}}
    # The terms are analysed already, and must not be analysed again.
    phrase = {"query": " ".join(terms), "analyzer": "whitespace", "slop": slop, **with_boost}
    return {"match_phrase": {field: phrase}}


def _spread(way: tuple[str, str, int]) -> Dsl:
    field, word, edits = way
    like: Dsl = {"value": word, "rewrite": "constant_score"}
    if edits:
        return {"fuzzy": {field: {**like, "fuzziness": edits}}}
    return {"prefix": {field: like}}


def _any_place(queries: list[Dsl]) -> Dsl:
    if len(queries) == 1:
        return queries[0]
    return {"bool": {"should": queries, "minimum_should_match": 1}}

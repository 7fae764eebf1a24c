"""Compilation of clauses to OpenSearch's query language. Words are analysed here, and sent as
terms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arag_search.corpus import is_unicode, nfc
from arag_search.engines.base import KeywordRequest
from arag_search.engines.opensearch.schema import exact_field, opensearch_field
from arag_search.engines.stored import ORDINAL
from arag_search.plan.clauses import Clause, ResolvedPlan, Way, scored_ways
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import DOC_ID, TEXT_FIELDS

Dsl = dict[str, Any]
"""A query as JSON."""

_Compiled = tuple[Dsl, bool]
"""A query, and whether its matches have a score."""

_NO_SCORE = 1e-30
"""The boost of terms that are added only for their statistics."""

_MAX_SCALE = 27_720  # divisible by 1 to 12 words


def compiled(clause: Clause) -> _Compiled:
    """Return the query of a clause, without its role, and whether its matches have a score."""
    boost = clause.weight
    if values := clause.values:
        field, texts = opensearch_field(values[0]), values[1]
        if len(texts) == 1:
            return {"term": {field: {"value": texts[0]}}}, False
        return any_value(field, texts), False
    match clause.kind:
        case "word" | "phrase":
            return _best(clause.ways, clause.slop, boost), True
        case "prefix" | "fuzzy" | "wildcard":
            edits: Dsl = {"fuzziness": clause.edits} if clause.edits else {}
            like: list[Dsl] = [
                {clause.kind: {name: {"value": word, "rewrite": "constant_score", **edits}}}
                for name, (word,) in clause.ways
            ]
            either = {"bool": {"should": like, "minimum_should_match": 1}}
            return {"constant_score": {"filter": either, "boost": boost}}, True
        case "all":
            return _all(clause)
        case "any":
            return _any(clause)
        case _:
            return _condition(clause), False


def _condition(clause: Clause) -> Dsl:
    if clause.known is not None:
        return any_value(ORDINAL, clause.known)
    if clause.interval is None:
        raise ValueError(f"what {clause.text} matches is not known")
    column, _, lower, upper = clause.interval
    return between(opensearch_field(column), lower, upper)


def request_query(
    plan: ResolvedPlan, scope: ResolvedPlan | None, statistics: Sequence[Dsl] | None = None
) -> tuple[Dsl, bool]:
    """Return the query to send for a plan within a scope, and whether its matches have a score.

    ``statistics`` are the argument of ``with_statistics``, used if there is a score.
    """
    query, scored = compiled(plan.root)
    within = scope_filter(scope)
    if not scored:
        return filtered(None, query, within), False
    return with_statistics(filtered(query, within), plan.root, statistics), True


def condition(plan: ResolvedPlan, scope: ResolvedPlan | None, *filters: Dsl | None) -> Dsl:
    """Return the query of a plan within a scope and filters, without scores."""
    return filtered(None, compiled(plan.root)[0], scope_filter(scope), *filters)


def shard_terms(terms: Mapping[str, Sequence[str]]) -> tuple[Dsl, ...]:
    """Return queries for terms, by text field, of which every shard with the field holds one."""
    return tuple(_way((field, (term,)), 0, _NO_SCORE) for field in terms for term in terms[field])


def with_statistics(query: Dsl, clause: Clause, statistics: Sequence[Dsl] | None) -> Dsl:
    """Make a query return every shard's statistics of the words and fields of its ``clause``.

    Shards score alike only if each returns its counts and lengths. By itself, a shard omits them
    for a field whose words it lacks, and all of them if a filter excludes everything that it holds.
    So a clause that matches nothing is added next to the query, outside of any filter. It has the
    words of the query, and the ``statistics`` of ``shard_terms``. None is for an index of one
    shard.
    """
    if statistics is None:
        return query
    words = {
        (name, term): _way((name, (term,)), 0, _NO_SCORE)
        for name, terms in scored_ways(clause)
        for term in terms
    }
    # If it matched, documents without a score would get one.
    nothing: Dsl = {"term": {DOC_ID: {"value": ""}}}
    unmatched: Dsl = {"bool": {"should": [*statistics, *words.values()], "filter": [nothing]}}
    return {"bool": {"should": [query, unmatched], "minimum_should_match": 1}}


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
    return None if scope is None else compiled(scope.root)[0]


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


def _all(clause: Clause) -> _Compiled:
    wanted = list(map(compiled, clause.having("wanted")))
    kinds: dict[str, list[Dsl]] = {
        "must": [query for query, scored in wanted if scored],
        "filter": [query for query, scored in wanted if not scored],
        "must_not": [compiled(part)[0] for part in clause.having("excluded")],
        "should": [compiled(part)[0] for part in clause.having("preferred")],
    }
    scored = bool(kinds["must"] or kinds["should"])
    demoted = [
        {"filter": compiled(part)[0], "weight": part.factor} for part in clause.having("demoted")
    ]
    lowers = scored and bool(demoted)
    if lowers and len(clause.parts) == 1 + len(demoted) and kinds["must"]:
        query = kinds["must"][0]
    else:
        bool_query: Dsl = {name: queries for name, queries in kinds.items() if queries}
        if kinds["should"]:
            bool_query["minimum_should_match"] = 0
        query = {"bool": bool_query if lowers else _with_boost(bool_query, clause.weight)}
    if lowers:
        lowered: Dsl = {
            "query": query,
            "functions": demoted,
            "score_mode": "multiply",
            "boost_mode": "multiply",
        }
        query = {"function_score": _with_boost(lowered, clause.weight)}
    return query, scored


def _any(clause: Clause) -> _Compiled:
    alternatives = list(map(compiled, clause.parts))
    scored = any(has_score for _, has_score in alternatives)
    should = [
        query if has_score or not scored else {"constant_score": {"filter": query, "boost": 0.0}}
        for query, has_score in alternatives
    ]
    clauses: Dsl = {"should": should, "minimum_should_match": 1}
    return {"bool": _with_boost(clauses, clause.weight)}, scored


def _with_boost(query: Dsl, boost: float) -> Dsl:
    return query if boost == 1 else {**query, "boost": boost}


# Leaves


def _best(ways: Sequence[Way], slop: int, boost: float) -> Dsl:
    if len(ways) == 1:
        return _way(ways[0], slop, boost)
    best: Dsl = {"tie_breaker": 0.0, "queries": [_way(way, slop, 1.0) for way in ways]}
    return {"dis_max": _with_boost(best, boost)}


def _way(way: Way, slop: int, boost: float) -> Dsl:
    field, terms = way
    if len(terms) == 1:
        return {"term": {field: _with_boost({"value": terms[0]}, boost)}}
    # The terms are analysed already, and must not be analysed again.
    phrase: Dsl = {"query": " ".join(terms), "analyzer": "whitespace", "slop": slop}
    return {"match_phrase": {field: _with_boost(phrase, boost)}}

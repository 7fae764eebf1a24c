"""Compilation of query trees to OpenSearch's query language.

As for Lucene, a text leaf is the best of its fields and spellings (a dis_max without tie breaker),
a prefix scores its weight, and metadata filters. Words are analysed here and sent as terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from arag_search.corpus import is_unicode, nfc
from arag_search.engines import compiling
from arag_search.engines.base import KeywordRequest
from arag_search.engines.compiling import (
    Leaves,
    date_bounds,
    index_field,
    searched_fields,
    shared_keyword_field,
)
from arag_search.engines.opensearch.schema import ORDINAL, exact_field, opensearch_field
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import DOC_ID, TEXT_FIELDS
from arag_search.query.matching import patterns_of
from arag_search.query.tree import (
    And,
    DateRange,
    Fuzzy,
    KeywordEquals,
    Node,
    NumberRange,
    Or,
    Phrase,
    Prefix,
    Regex,
    Scope,
    Term,
    TextLeaf,
    positive_leaves,
    scores,
)

Dsl = dict[str, Any]
"""A query as JSON."""

Compiled = tuple[Dsl, bool]
"""A query, and whether its matches have a score."""

NO_SCORE = 1e-30
"""The boost of terms that are added only for their statistics."""

_MAX_SCALE = 27_720  # divisible by 1 to 12 words
_LAST_NUMBER = 1.7976931348623157e308


def compiled(node: Node) -> Compiled:
    """Return the query of a node, and whether its matches have a score."""
    match node:
        case Term() | Phrase() | Prefix() | Fuzzy():
            return _in_fields(node, searched_fields(node), node.weight), True
        case And():
            return _and(node)
        case Or():
            return _or(node)
        case KeywordEquals():
            return {"term": {opensearch_field(node.field): {"value": node.value}}}, False
        case NumberRange():
            return _number_range(node), False
        case DateRange():
            return _date_range(node), False
        case Regex():
            return any_value(ORDINAL, compiling.known_matches(node)), False
        case _:
            assert_never(node)


def request_query(
    node: Node, scope: Scope | None, statistics: Sequence[Dsl] | None = None
) -> tuple[Dsl, bool]:
    """Return the query to send for a node within a scope, and whether its matches have a score.

    ``statistics`` are the argument of ``with_statistics``, used if there is a score.
    """
    query, scored = compiled(node)
    within = scope_filter(scope)
    if not scored:
        return filtered(None, query, within), False
    return with_statistics(filtered(query, within), node, statistics), True


def condition(node: Node, scope: Scope | None, *filters: Dsl | None) -> Dsl:
    """Return the query of a node within a scope and filters, without scores."""
    return filtered(None, compiled(node)[0], scope_filter(scope), *filters)


def shard_terms(terms: Mapping[str, Sequence[str]]) -> tuple[Dsl, ...]:
    """Return queries for terms, by text field, of which every shard with the field holds one."""
    return tuple(_spelling(field, (term,), 0, NO_SCORE) for field in terms for term in terms[field])


def with_statistics(query: Dsl, node: Node, statistics: Sequence[Dsl] | None) -> Dsl:
    """Make a query return every shard's statistics of the words and fields of ``node``.

    Shards score alike only if each returns its counts and lengths. By itself, a shard omits those
    of a field whose words it lacks, and all of them if a filter excludes everything that it holds.
    So a clause that matches nothing is added next to the query, outside of any filter: the words
    of the query, and the ``statistics`` of ``shard_terms``. None is for an index of one shard.
    """
    if statistics is None:
        return query
    words = {
        (name, leaf.language, word): _spelling(
            index_field(name, leaf.language), (word,), 0, NO_SCORE
        )
        for leaf in positive_leaves(node)
        if isinstance(leaf, Term | Phrase)
        for name in searched_fields(leaf)
        for spelling in leaf.spellings
        for word in spelling
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


def scope_filter(scope: Scope | None) -> Dsl | None:
    """Return the filter of a scope, which may consist of exclusions alone; None without a scope."""
    if scope is None:
        return None
    return {
        "bool": {
            "filter": [compiled(node)[0] for node in scope.include],
            "must_not": [compiled(node)[0] for node in scope.exclude],
        }
    }


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
        _spelling(field, spelling, 0, length * scale / len(spelling))
        for field, spelling, length in pairs
    ]
    query = {"bool": {"should": should, "minimum_should_match": 1}}
    return filtered(query, scope_filter(request.scope)), scale


def leaf_queries(node: Node) -> Leaves[Dsl]:
    """Return the positive text leaves from left to right, each as text and a query per field."""
    return compiling.leaf_queries(
        node, compiled, lambda leaf, name, weight: _in_fields(leaf, (name,), weight)
    )


def any_value(field: str, values: Iterable[str | int]) -> Dsl:
    """Match documents whose field has one of the values; invalid Unicode matches none."""
    terms = [value for value in values if isinstance(value, int) or is_unicode(value)]
    return {"terms": {field: terms}}


def between(field: str, first: int, last: int) -> Dsl:
    """Match documents whose field has an integer from ``first`` to ``last``, both included."""
    return {"range": {field: {"gte": first, "lte": last}}}


# Groups


def _and(node: And) -> Compiled:
    clauses: dict[str, Any] = {}
    for child in node.positive:
        query, child_scores = compiled(child)
        clauses.setdefault("must" if child_scores else "filter", []).append(query)
    if node.excluded:
        clauses["must_not"] = [compiled(child.child)[0] for child in node.excluded]
    if node.preferred:
        clauses["should"] = [compiled(child.child)[0] for child in node.preferred]
        clauses["minimum_should_match"] = 0
    scored = scores(node)
    if not (scored and node.demoted):
        return _bool(clauses, node.weight), scored
    demoted: Dsl = {
        "query": _bool(clauses, 1.0),
        "functions": [
            {"filter": compiled(child.child)[0], "weight": child.factor} for child in node.demoted
        ],
        "score_mode": "multiply",
        "boost_mode": "multiply",
    }
    return {"function_score": _with_boost(demoted, node.weight)}, True


def _or(node: Or) -> Compiled:
    field = shared_keyword_field(node)
    if field is not None:
        values = (child.value for child in node.children if isinstance(child, KeywordEquals))
        return any_value(opensearch_field(field), values), False
    alternatives = [compiled(child) for child in node.children]
    scored = any(has_score for _, has_score in alternatives)
    should = [
        query if has_score or not scored else {"constant_score": {"filter": query, "boost": 0.0}}
        for query, has_score in alternatives
    ]
    return _bool({"should": should, "minimum_should_match": 1}, node.weight), scored


def _bool(clauses: Dsl, weight: float) -> Dsl:
    return {"bool": _with_boost(clauses, weight)}


def _with_boost(query: Dsl, weight: float) -> Dsl:
    return query if weight == 1 else {**query, "boost": weight}


# Leaves


def _in_fields(leaf: TextLeaf, names: Sequence[str], weight: float) -> Dsl:
    if isinstance(leaf, Prefix | Fuzzy):
        return _expanded(leaf, names, weight)
    slop = leaf.slop if isinstance(leaf, Phrase) else 0
    fields = [index_field(name, leaf.language) for name in names]
    pairs = [(field, spelling) for field in fields for spelling in leaf.spellings]
    if len(pairs) == 1:
        return _spelling(*pairs[0], slop, weight)
    best: Dsl = {"tie_breaker": 0.0, "queries": [_spelling(*pair, slop, 1.0) for pair in pairs]}
    return {"dis_max": _with_boost(best, weight)}


def _spelling(field: str, terms: tuple[str, ...], slop: int, weight: float) -> Dsl:
    boost = {} if weight == 1 else {"boost": weight}
    if len(terms) == 1:
        return {"term": {field: {"value": terms[0], **boost}}}
    # The terms are analysed already, and must not be analysed again.
    phrase = {"query": " ".join(terms), "analyzer": "whitespace", "slop": slop, **boost}
    return {"match_phrase": {field: phrase}}


def _expanded(leaf: Prefix | Fuzzy, names: Sequence[str], weight: float) -> Dsl:
    fuzzy = {"fuzziness": leaf.edits} if isinstance(leaf, Fuzzy) else {}
    expanded: list[Dsl] = [
        {
            "fuzzy" if fuzzy else "prefix": {
                index_field(name, pattern.language): {
                    "value": word,
                    "rewrite": "constant_score",
                    **fuzzy,
                }
            }
        }
        for pattern in patterns_of(leaf)
        for name in names
        for (word,) in pattern.spellings
    ]
    any_place = expanded[0]
    if len(expanded) > 1:
        any_place = {"bool": {"should": expanded, "minimum_should_match": 1}}
    return {"constant_score": {"filter": any_place, "boost": weight}}


def _number_range(node: NumberRange) -> Dsl:
    lower = "gte" if node.include_lower else "gt"
    upper = "lte" if node.include_upper else "lt"
    bounds = {
        lower: -_LAST_NUMBER if node.lower is None else node.lower,
        upper: _LAST_NUMBER if node.upper is None else node.upper,
    }
    return {"range": {opensearch_field(node.field): bounds}}


def _date_range(node: DateRange) -> Dsl:
    return between(opensearch_field(node.field), *date_bounds(node))

"""Query trees compiled for OpenSearch."""

import json
from typing import Any

from hypothesis import given, settings

from arag_search.engines.base import KeywordRequest
from arag_search.engines.opensearch.compile import (
    any_value,
    compiled,
    keyword_query,
    request_query,
    shard_terms,
)
from arag_search.plan.clauses import ResolvedPlan, resolved
from arag_search.query.reading import parse
from arag_search.query.tree import Node, leaves
from tests.support.examples import examples
from tests.support.plans import planned, written
from tests.support.strategies import SCHEMA, trees

QUERY_KINDS = {
    "bool", "constant_score", "dis_max", "function_score", "match_all", "match_phrase", "prefix",
    "range", "term", "fuzzy", "terms",
}  # fmt: skip
"""All kinds of query that are sent. The server never parses text."""


def plan(query: str) -> ResolvedPlan:
    """Return the plan of a query of written words."""
    return written(parse(query, SCHEMA, as_written=True).tree)


def dsl(query: str) -> Any:
    return compiled(plan(query).root)[0]


def term(field: str, value: str, **more: object) -> Any:
    return {"term": {field: {"value": value, **more}}}


def test_the_two_apostrophes_are_alternatives() -> None:
    assert dsl("title:it's")["dis_max"]["queries"] == [term("title", "it's"), term("title", "it’s")]


def test_a_phrase_is_sent_in_terms_that_are_not_analysed_again() -> None:
    assert dsl('title:"Antonio VIVALDI"~2') == {
        "match_phrase": {"title": {"query": "antonio vivaldi", "analyzer": "whitespace", "slop": 2}}
    }


def test_an_alternative_of_metadata_has_no_score() -> None:
    assert dsl("title:opera OR lang:en") == {
        "bool": {
            "should": [
                term("title", "opera"),
                {"constant_score": {"filter": term("metadata.lang", "en"), "boost": 0.0}},
            ],
            "minimum_should_match": 1,
        }
    }


def test_values_of_one_field_are_one_query() -> None:
    assert dsl("lang:en OR lang:de") == {"terms": {"metadata.lang": ["en", "de"]}}


def test_ranges_are_sent_with_both_bounds() -> None:
    assert dsl("year:>1670") == {
        "range": {"metadata.year": {"gte": 1670.0000000000002, "lte": 1.7976931348623157e308}}
    }
    assert dsl("published:1970-01-02") == {
        "range": {"metadata.published": {"gte": 86_400_000, "lte": 2 * 86_400_000 - 1}}
    }


def test_a_query_of_metadata_alone_filters_and_needs_no_statistics() -> None:
    statistics = shard_terms({"content": ("the",)})
    query, scored = request_query(plan("lang:en"), None, statistics)
    assert (query, scored) == ({"bool": {"filter": [term("metadata.lang", "en")]}}, False)


def test_words_are_repeated_outside_the_filter_in_a_clause_that_never_matches() -> None:
    statistics = shard_terms({"content": ("the", "of"), "title": ()})
    query, _ = request_query(plan("title:opera AND year:1678"), None, statistics)
    matching_clause, statistics_clause = query["bool"]["should"]
    assert query["bool"]["minimum_should_match"] == 1
    assert matching_clause == dsl("title:opera AND year:1678")
    assert statistics_clause == {
        "bool": {
            "should": [
                term("content", "the", boost=1e-30),
                term("content", "of", boost=1e-30),
                term("title", "opera", boost=1e-30),
            ],
            "filter": [term("doc_id", "")],
        }
    }


def test_keywords_without_a_token_are_no_query() -> None:
    assert keyword_query(KeywordRequest(("…", "!"))) is None


def test_a_lone_surrogate_is_no_id() -> None:
    assert any_value("id", ["a", "\udc00"]) == {"terms": {"id": ["a"]}}


@settings(max_examples=examples(200))
@given(trees(awkward=True))
def test_only_known_kinds_of_query_are_sent(tree: Node) -> None:
    known = ResolvedPlan(resolved(planned(tree).root, [()] * len(leaves(tree))))
    query, _ = request_query(known, None, shard_terms({"title": ("a",), "content": ("b",)}))
    json.dumps(query, allow_nan=False)
    assert set(kinds(query)) <= QUERY_KINDS


def kinds(query: Any) -> list[str]:
    """Return the kinds of query in a query, nested ones included."""
    ((kind, inside),) = query.items()
    names = [kind]
    if kind in ("bool", "dis_max", "constant_score"):
        for name in ("must", "should", "filter", "must_not", "queries"):
            below = inside.get(name, [])
            for clause in below if isinstance(below, list) else [below]:
                names += kinds(clause)
    if kind == "function_score":
        for clause in (inside["query"], *(function["filter"] for function in inside["functions"])):
            names += kinds(clause)
    return names

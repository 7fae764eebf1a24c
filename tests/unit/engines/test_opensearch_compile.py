"""Query trees compiled for OpenSearch."""

import json
from dataclasses import replace
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
from arag_search.query.parser import parse, parse_scope
from arag_search.query.tree import Node, Regex, with_leaves
from tests.support.examples import examples
from tests.support.strategies import SCHEMA, trees

QUERY_KINDS = {
    "bool", "constant_score", "dis_max", "function_score", "match_all", "match_phrase", "prefix",
    "range", "term", "fuzzy", "terms",
}  # fmt: skip
"""All kinds of query that are sent. The server never parses text."""


def tree(query: str) -> Node:
    """Parse a query of written words."""
    return parse(query, SCHEMA, published=True).tree


def dsl(query: str) -> Any:
    return compiled(tree(query))[0]


def term(field: str, value: str, **more: object) -> Any:
    return {"term": {field: {"value": value, **more}}}


def test_a_word_is_the_best_of_title_and_content() -> None:
    assert dsl("Opera^2") == {
        "dis_max": {
            "tie_breaker": 0.0,
            "queries": [term("title", "opera"), term("content", "opera")],
            "boost": 2.0,
        }
    }


def test_a_word_in_one_field_is_one_term() -> None:
    assert dsl("title:opera^0.5") == term("title", "opera", boost=0.5)


def test_the_two_apostrophes_are_alternatives() -> None:
    assert dsl("title:it's")["dis_max"]["queries"] == [term("title", "it's"), term("title", "it’s")]


def test_normal_forms_are_searched_in_fields_of_their_own() -> None:
    schema = replace(SCHEMA, language="en")
    query, _ = compiled(parse("title:Operas^2", schema).tree)
    assert query == {"term": {"title_forms": {"value": "opera", "boost": 2}}}
    query, _ = compiled(parse('title:getUserById AND title:"=Operas"', schema).tree)
    whole, written = query["bool"]["must"]
    parts = {"query": "get user by id", "analyzer": "whitespace", "slop": 0}
    assert whole["dis_max"]["queries"] == [
        term("title_forms", "getuserbyid"),
        {"match_phrase": {"title_forms": parts}},
    ]
    assert written == term("title", "operas")


def test_a_phrase_is_sent_in_terms_that_are_not_analysed_again() -> None:
    assert dsl('title:"Antonio VIVALDI"~2') == {
        "match_phrase": {"title": {"query": "antonio vivaldi", "analyzer": "whitespace", "slop": 2}}
    }


def test_a_prefix_scores_its_weight_once() -> None:
    assert dsl("libr*^3") == {
        "constant_score": {
            "filter": {
                "bool": {
                    "should": [
                        {"prefix": {"title": {"value": "libr", "rewrite": "constant_score"}}},
                        {"prefix": {"content": {"value": "libr", "rewrite": "constant_score"}}},
                    ],
                    "minimum_should_match": 1,
                }
            },
            "boost": 3.0,
        }
    }


def test_metadata_clauses_filter_and_nots_exclude() -> None:
    assert dsl("title:opera AND lang:en NOT doc_id:d1") == {
        "bool": {
            "must": [term("title", "opera")],
            "filter": [term("metadata.lang", "en")],
            "must_not": [term("doc_id", "d1")],
        }
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
        "range": {"metadata.year": {"gt": 1670.0, "lte": 1.7976931348623157e308}}
    }
    assert dsl("published:1970-01-02") == {
        "range": {"metadata.published": {"gte": 86_400_000, "lte": 2 * 86_400_000 - 1}}
    }


def test_a_scope_of_exclusions_alone_is_a_filter() -> None:
    scope = parse_scope("NOT lang:de", SCHEMA)
    query, scored = request_query(tree("title:opera"), scope)
    assert scored
    assert query == {
        "bool": {
            "must": [term("title", "opera")],
            "filter": [{"bool": {"filter": [], "must_not": [term("metadata.lang", "de")]}}],
        }
    }


def test_a_query_of_metadata_alone_filters_and_needs_no_statistics() -> None:
    statistics = shard_terms({"content": ("the",)})
    query, scored = request_query(tree("lang:en"), None, statistics)
    assert (query, scored) == ({"bool": {"filter": [term("metadata.lang", "en")]}}, False)


def test_words_are_repeated_outside_the_filter_in_a_clause_that_never_matches() -> None:
    statistics = shard_terms({"content": ("the", "of"), "title": ()})
    query, _ = request_query(tree("title:opera AND year:1678"), None, statistics)
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


def test_keywords_weigh_their_length_divided_among_their_words() -> None:
    scaled = keyword_query(KeywordRequest(("opera", "born in", "…")))
    assert scaled is not None
    query, scale = scaled
    phrase = {"query": "born in", "analyzer": "whitespace", "slop": 0, "boost": 7.0}
    assert scale == 2
    assert query["bool"]["should"] == [
        term("title.exact", "opera", boost=10.0),
        term("content.exact", "opera", boost=10.0),
        {"match_phrase": {"title.exact": phrase}},
        {"match_phrase": {"content.exact": phrase}},
    ]


def test_keywords_without_a_token_are_no_query() -> None:
    assert keyword_query(KeywordRequest(("…", "!"))) is None


def test_a_lone_surrogate_is_no_id() -> None:
    assert any_value("id", ["a", "\udc00"]) == {"terms": {"id": ["a"]}}


@settings(max_examples=examples(200))
@given(trees(awkward=True))
def test_only_known_kinds_of_query_are_sent(tree: Node) -> None:
    tree = with_leaves(
        tree, lambda leaf: replace(leaf, matches=frozenset()) if isinstance(leaf, Regex) else leaf
    )
    query, _ = request_query(tree, None, shard_terms({"title": ("a",), "content": ("b",)}))
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

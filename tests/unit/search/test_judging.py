"""Judging of passages: a condition means the same to it as to the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchRequest
from arag_search.engines.hits import Hit
from arag_search.query.tree import Node, Range, condition_of
from arag_search.search.advice.judging import Judge
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk
from tests.support.plans import planned
from tests.support.strategies import METADATA, corpora, trees


@settings(max_examples=examples(100))
@given(corpora(8), st.lists(trees(), max_size=4))
def test_passages_meet_the_conditions_that_the_oracle_finds_them_by(
    chunks: list[Chunk], conditions: list[Node]
) -> None:
    oracle = MemoryEngine(chunks, metadata=METADATA)
    hits = [Hit.of(chunk, 0.0) for chunk in chunks]
    expected = [
        {hit.id for hit in oracle.search(SearchRequest(planned(condition_of(node)), 1_000)).hits}
        for node in conditions
    ]
    clauses = [planned(node).root for node in conditions]
    assert Judge(METADATA).meeting(hits, clauses) == expected


@pytest.mark.parametrize("include_lower", [True, False])
@pytest.mark.parametrize("include_upper", [True, False])
def test_the_ends_of_a_range_are_in_it_as_written(include_lower: bool, include_upper: bool) -> None:
    hits = [Hit.of(chunk(n, f"d{n}", "", "Text.", year=n), 0.0) for n in range(4)]
    years = Range(
        "year", "number", "1", "2", include_lower=include_lower, include_upper=include_upper
    )
    expected = {"d1.1"} if include_lower else set[str]()
    expected |= {"d2.1"} if include_upper else set[str]()
    assert Judge(METADATA).meeting(hits, [planned(years).root]) == [expected]

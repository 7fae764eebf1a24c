"""Matches of text leaves, token by token."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.plan.matching import loose_matches, patterns_of
from arag_search.query.tree import Phrase, Prefix, Term, TextLeaf
from tests.support.examples import examples
from tests.support.plans import written

TEXT = "the opera of venice was an opera by antonio vivaldi it's covid 19"
TOKENS = TEXT.split()


@pytest.mark.parametrize(
    ("leaf", "runs"),
    [
        (Term("opera"), [(1, 1), (6, 6)]),
        (Term("oper"), []),
        (Term("COVID-19"), [(11, 12)]),
        (Term("it’s"), [(10, 10)]),
        (Phrase("Antonio Vivaldi"), [(8, 9)]),
        (Phrase("vivaldi antonio"), []),
        (Phrase("vivaldi antonio", slop=2), [(9, 9), (8, 8)]),
        (Phrase("opera opera", slop=3), []),
        (Phrase("opera opera", slop=4), [(1, 1), (6, 6)]),
        (Prefix("ope"), [(1, 1), (6, 6)]),
        (Prefix("it's"), [(10, 10)]),
        (Prefix("א'1"), []),  # a word which is two with the other apostrophe
        (Term("opera", "title", 3.0), [(1, 1), (6, 6)]),
    ],
)
def test_a_leaf_matches_these_runs_of_tokens(leaf: TextLeaf, runs: list[tuple[int, int]]) -> None:
    pattern = patterns_of(written(leaf).root)[0]
    assert list(pattern.runs(TOKENS)) == runs
    assert pattern.matches(TOKENS) == bool(runs)


@pytest.mark.parametrize(
    "leaf", [Term("it's"), Term("COVID-19"), Phrase("it's opera", slop=3), Prefix("it's")]
)
def test_a_leaf_matches_where_any_of_its_spellings_matches(leaf: TextLeaf) -> None:
    pattern = patterns_of(written(leaf).root)[0]
    parts = [pattern._replace(spellings=(words,)) for words in pattern.spellings]
    assert len(parts) == len(written(leaf).root.words)
    assert [run for part in parts for run in part.runs(TOKENS)] == list(pattern.runs(TOKENS))


_POSITIONS = st.lists(
    st.lists(st.integers(0, 9), max_size=4, unique=True).map(sorted), min_size=2, max_size=3
)


@given(_POSITIONS, st.integers(0, 6))
@settings(max_examples=examples(80))
def test_loose_matches_include_every_choice_of_distinct_positions_within_the_slop(
    positions: list[list[int]], slop: int
) -> None:
    def spread(match: tuple[int, ...]) -> int:
        shifted = [at - number for number, at in enumerate(match)]
        return max(shifted) - min(shifted)

    matches = {
        match
        for match in itertools.product(*positions)
        if len(set(match)) == len(match) and spread(match) <= slop
    }
    choices = list(loose_matches(positions, slop))
    assert bool(choices) == bool(matches)
    for match in matches:
        assert any(
            all(at in choice for at, choice in zip(match, options, strict=True))
            for options in choices
        )

"""Vectors stay with their texts, whatever is done to an index."""

from pathlib import Path

import pytest

from tests.support.examples import some_of
from tests.support.vector_sequences import run_sequence

STEPS = 7


@pytest.mark.parametrize("seed", some_of([20263, 20260, 20266, 20272, 20289], 2))
def test_searches_by_vectors_equal_those_of_a_fresh_embedding_after_any_sequence_of_steps(
    seed: int, tmp_path: Path
) -> None:
    outcome = run_sequence(seed, str(tmp_path / "index"), tmp_path, STEPS)
    assert outcome.differences == []
    assert outcome.steps == STEPS
    assert outcome.searches > 20

"""Vectors stay with their texts, whatever is done to an index."""

from pathlib import Path

import pytest

from tests.support.examples import examples, some_of
from tests.support.vector_sequences import STEPS, run_sequence


@pytest.mark.parametrize("seed", some_of(range(examples(300))))
def test_searches_by_vectors_equal_those_of_a_fresh_embedding_and_only_new_texts_are_encoded(
    seed: int, tmp_path: Path
) -> None:
    outcome = run_sequence(seed, str(tmp_path / "index"), tmp_path)
    assert outcome.differences == []
    assert outcome.steps == STEPS
    assert outcome.searches > 0

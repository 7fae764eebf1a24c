"""Vectors stay with their texts, whatever is done to an index on a server."""

from pathlib import Path

import pytest

from tests.support.examples import some_of
from tests.support.opensearch_indexes import Site
from tests.support.vector_sequences import run_sequence


@pytest.mark.parametrize("seed", some_of(range(7, 15)))
def test_vectors_stay_with_their_texts_in_an_index_on_a_server(
    opensearch: Site, tmp_path: Path, seed: int
) -> None:
    outcome = run_sequence(seed, opensearch.address, tmp_path)
    assert outcome.differences == []
    assert outcome.searches > 0

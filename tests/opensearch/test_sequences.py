"""Vectors stay with their texts, whatever is done to an index on a server."""

from pathlib import Path

from tests.support.opensearch_indexes import Site
from tests.support.vector_sequences import run_sequence

STEPS = 7


def test_vectors_stay_with_their_texts_in_an_index_on_a_server(
    opensearch: Site, tmp_path: Path
) -> None:
    outcome = run_sequence(20267, opensearch.address, tmp_path, STEPS)
    assert outcome.differences == []
    assert outcome.searches > 20

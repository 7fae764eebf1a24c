"""The bench of recall: its definition, and that a small run measures it."""

from pathlib import Path

import numpy as np

from arag_search.vectors.base import EncoderIdentity, Nearest
from bench.quality import recall
from tests.support.vector_stores import unit_vectors


def test_a_small_run_measures_recall_of_each_index(tmp_path: Path) -> None:
    encoder = EncoderIdentity(kind="bench", name="bench", revision="1", dimension=256)
    vectors = np.tile(unit_vectors(11_000, dimension=16), 16) / 4
    figures = recall.measured(recall.Encoded(encoder, vectors, vectors[:5]), tmp_path, {})
    found = {figure.name: figure.rows[0].value for figure in figures}
    assert found["flat"] == 1.0
    assert len(found) == 7
    assert min(found.values()) > 0.5


def test_recall_is_the_share_of_the_exact_neighbours_that_were_found() -> None:
    exact = [[1, 2], [3, 4]]
    approximate = [
        [Nearest(2, 0.8, b""), Nearest(9, 0.1, b"")],
        [Nearest(4, 0.6, b""), Nearest(3, 0.5, b"")],
    ]
    assert recall.recall(exact, approximate) == 0.75
    assert recall.recall(exact, [[], []]) == 0.0

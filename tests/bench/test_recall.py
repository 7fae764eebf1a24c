"""The bench of recall: its definition."""

from arag_search.vectors.base import Nearest
from bench.quality import recall


def test_recall_is_the_share_of_the_exact_neighbours_that_were_found() -> None:
    exact = [[1, 2], [3, 4]]
    approximate = [
        [Nearest(2, 0.8, b""), Nearest(9, 0.1, b"")],
        [Nearest(4, 0.6, b""), Nearest(3, 0.5, b"")],
    ]
    assert recall.recall(exact, approximate) == 0.75
    assert recall.recall(exact, [[], []]) == 0.0

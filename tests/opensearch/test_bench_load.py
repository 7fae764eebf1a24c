"""The bench of loading: both sides load the same documents, and leave nothing behind."""

from pathlib import Path

import pytest

from bench.cluster import opensearch_load
from tests.support.builds import corpus, in_own_folder  # noqa: F401
from tests.support.opensearch_indexes import Site


def test_both_sides_load_the_same_documents(opensearch: Site) -> None:
    corpus("c.jsonl", 40)
    options = opensearch_load.parser().parse_args(["--rounds", "1", "--warm-up", "0"])
    figure = opensearch_load.measure(Path("c.jsonl"), 40, opensearch.address, options)
    ratio, ours, bare, *_ = figure.rows
    assert (ratio.unit, ours.unit, bare.unit) == ("x", "passages/s", "passages/s")
    assert ratio.value == pytest.approx(ours.value / bare.value)
    assert (figure.details["passages"], figure.details["documents"]) == (40, 160)
    assert figure.details["bulk_bytes"] > 10_000
    assert opensearch.indexes() == []

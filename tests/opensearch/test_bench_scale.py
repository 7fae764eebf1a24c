"""The bench of growth, on a server."""

from pathlib import Path

from bench.scale import synthetic
from bench.scale.sides import OpenSearchSide, measure
from tests.support.opensearch_indexes import Site


def test_a_server_is_measured_and_left_as_it_was(opensearch: Site, tmp_path: Path) -> None:
    server, _, name = opensearch.address.rpartition("/")
    corpus = tmp_path / "corpus.jsonl"
    synthetic.write(300, corpus)
    sample = [each.chunk() for each in synthetic.sample(300, 2000)]
    found = measure(OpenSearchSide(server, name), corpus, sample, 3)
    assert found.passages == 300
    assert found.bytes > 100_000
    assert found.latency["sentence"].queries == 3
    assert opensearch.indexes() == []

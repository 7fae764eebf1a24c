"""The bench of growth, run on a server."""

from pathlib import Path

from bench.scale import synthetic
from bench.scale.sides import OpenSearchSide, measure
from tests.support.opensearch_indexes import Site


def test_a_server_is_measured_and_left_as_it_was(opensearch: Site, tmp_path: Path) -> None:
    server, _, name = opensearch.address.rpartition("/")
    corpus = tmp_path / "corpus.jsonl"
    synthetic.write(300, corpus)
    sample = [passage.chunk() for passage in synthetic.sample(300, 2000)]
    measurement = measure(OpenSearchSide(server, name), corpus, sample, 3)
    assert measurement.passages == 300
    assert measurement.bytes > 100_000
    assert measurement.latency["sentence"].queries == 3
    assert opensearch.indexes() == []

"""The bench of growth, run on a server."""

from pathlib import Path

import pytest

from bench.scale import searching, steps, worst
from bench.scale.sides import Side, measure
from bench.scale.steps import Task
from tests.support.opensearch_indexes import Site


@pytest.mark.long
def test_a_server_is_measured_with_a_shard_for_each_node_and_left_as_it_was(
    opensearch: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards: list[str] = []

    def started(step: str, task: Task) -> int:
        steps.STEPS[step](task)
        rows = opensearch.client.call("GET", "/_cat/shards/arag-bench-*", params={"format": "json"})
        shards.append(",".join(sorted({row["shard"] for row in rows})))
        return 0

    candidates = worst.candidates  # the fuzzy ones take seconds
    monkeypatch.setattr(worst, "candidates", lambda *words: candidates(*words)[:2])
    monkeypatch.setattr(searching, "MAX_WARM_UP", 1)
    monkeypatch.setattr(searching, "ROUNDS", 1)
    monkeypatch.setattr(steps, "started", started)
    side = Side("opensearch", 3, opensearch.address.rpartition("/")[0])
    assert side.name == "opensearch, 3 nodes"
    measured = measure(side, tmp_path, 200, 2)
    assert measured.passages == 200
    assert measured.build.bytes > 100_000
    assert measured.latency["sentence"].queries == 2
    assert set(measured.changes) == {"delete", "add", "compact"}
    assert shards == ["0,1,2"] * 5
    assert opensearch.client.call("GET", "/_alias/arag-bench-*") == {}

"""The bench of crowds: a small run over a real node and a real server. No test judges a time."""

from pathlib import Path

import orjson
import pytest

from bench import crowd


@pytest.mark.server
def test_the_node_is_killed_and_hangs_under_clients_and_the_server_ends_under_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd, "DOWN_S", 4.0)
    results = tmp_path / "crowd.json"
    options = ["--passages", "300", "--only", "outages,end", "--json", str(results)]
    assert crowd.main([*options, "--work", str(tmp_path)]) == 0
    figures = orjson.loads(results.read_bytes())["figures"]
    values = {row["what"]: row["value"] for figure in figures.values() for row in figure["rows"]}
    for kind in ("killed", "hung"):
        failed = values[f"{kind}: replies that failed"]
        assert values[f"{kind}: of these, replies that name the outage"] == failed
        assert values[f"{kind}: /health was not ok"] == 0
    assert values["killed: replies that failed"] > 0  # a short hang may only slow calls down
    assert "killed: /ready is red after" in values
    assert values["calls that ran at SIGTERM"] > 0
    assert values["of these, lost"] == 0
    assert values["its exit code"] == 143

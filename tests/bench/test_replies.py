"""The bench that makes recorded calls again, on runs of the offline model over the sample."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arag_search.cli.app import run
from bench.data import SAMPLE
from bench.replay import replies


@pytest.fixture(name="data", scope="module")
def recorded_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder of data sets with the sample as one, and a run of six of its questions."""
    folder = tmp_path_factory.mktemp("data")
    corpus, runs = folder / "musique", folder / "model_runs"
    corpus.mkdir()
    runs.mkdir()
    shutil.copy(SAMPLE / "corpus.jsonl", corpus)
    index, out = str(folder / "index"), folder / "run"
    assert run(["index", str(corpus / "corpus.jsonl"), "--to", index]) == 0
    assert run(["run", index, str(SAMPLE / "questions.jsonl"), "--preset", "logicalrag",
                "--model", "offline", "--limit", "6", "--out", str(out)]) == 0  # fmt: skip
    shutil.copy(out / "records.jsonl", runs / "musique.logical_read.jsonl")
    shutil.copy(SAMPLE / "questions.jsonl", runs / "musique.questions.jsonl")
    (runs / "musique.arag_full.jsonl").write_text("")
    return folder


def test_both_replies_are_measured_and_runs_with_vectors_are_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "replies.json"
    options = ["--data", str(data), "--work", str(tmp_path / "work"), "--json", str(results)]
    assert replies.main(options) == 0
    assert "musique.arag_full: left out" in capsys.readouterr().err
    figures = json.loads(results.read_text("utf-8"))["figures"]
    assert set(figures) == {"musique.logical_read", "all runs"}
    rows = {row["what"]: row["value"] for row in figures["all runs"]["rows"]}
    assert rows["calls a question, old"] == rows["calls a question, new"] > 1
    assert rows["retrieved tokens a question, new"] > rows["retrieved tokens a question, old"] > 0
    assert rows["model tokens a question, old"] > 1_000

"""The benches of vectors: small runs, and the definition of recall."""

import json
from pathlib import Path

import pytest

from arag_search.vectors.base import Nearest
from bench.quality import recall
from bench.speed import vectors


def test_a_small_run_measures_flat_vectors_and_an_inverted_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    work = tmp_path / "work"
    work.mkdir()
    sizes = ["--rows", "2000", "--dimension", "16", "--index", "IVF8,Flat", "--rounds", "1"]
    assert vectors.main([*sizes, "--work", str(work), "--json", str(results)]) == 0
    flat, inverted = json.loads(results.read_text())["figures"].values()
    rows = {row["what"]: row for row in flat["rows"]}
    assert rows["bytes a row"]["value"] > 64
    assert rows["search, 4 at once: ours over FAISS"]["target"] == "at most 1.2"
    assert {row["what"]: row for row in inverted["rows"]}["opening"]["value"] < 2
    assert "inverted, 2,000 rows" in capsys.readouterr().out
    assert list(work.iterdir()) == []


def test_recall_is_the_share_of_the_exact_neighbours_that_were_found() -> None:
    exact = [[1, 2], [3, 4]]
    approximate = [
        [Nearest(2, 0.8, b""), Nearest(9, 0.1, b"")],
        [Nearest(4, 0.6, b""), Nearest(3, 0.5, b"")],
    ]
    assert recall.recall(exact, approximate) == 0.75
    assert recall.recall(exact, [[], []]) == 0.0

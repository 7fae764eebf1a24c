"""The benches of vectors: small runs, and the definition of recall."""

import json
from pathlib import Path

import pytest

from arag_search.vectors.base import Nearest
from bench.quality import recall
from bench.scale import vector_scale
from bench.speed import vectors


def test_a_small_run_compares_flat_search_with_faiss_and_keeps_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    work = tmp_path / "work"
    work.mkdir()
    arguments = ["--sizes", "2000", "--dimension", "16", "--rounds", "1", "--side-s", "0.01"]
    assert vectors.main([*arguments, "--work", str(work), "--json", str(results)]) == 0
    (figure,) = json.loads(results.read_text())["figures"].values()
    rows = {row["what"]: row for row in figure["rows"]}
    assert rows["bytes a row"]["value"] > 64
    assert rows["search, 4 at once: ours over FAISS"]["target"] == "at most 1.2"
    assert "flat, 2,000 rows" in capsys.readouterr().out
    assert list(work.iterdir()) == []


def test_recall_is_the_share_of_the_exact_neighbours_that_were_found() -> None:
    exact = [
        [Nearest(1, 0.9, b""), Nearest(2, 0.8, b"")],
        [Nearest(3, 0.7, b""), Nearest(4, 0.6, b"")],
    ]
    approximate = [
        [Nearest(2, 0.8, b""), Nearest(9, 0.1, b"")],
        [Nearest(4, 0.6, b""), Nearest(3, 0.5, b"")],
    ]
    assert recall.recall(exact, approximate) == 0.75
    assert recall.recall(exact, exact) == 1.0
    assert recall.recall(exact, [[], []]) == 0.0


def test_many_vectors_are_measured_and_nothing_is_left(tmp_path: Path) -> None:
    results, work = tmp_path / "results.json", tmp_path / "work"
    sizes = ["--rows", "4000", "--added", "400", "--dimension", "16", "--queries", "5"]
    files = ["--work", str(work), "--json", str(results)]
    assert vector_scale.main([*sizes, "--index", "IVF16,PQ4", *files]) == 0
    assert list(work.iterdir()) == []
    (figure,) = json.loads(results.read_text())["figures"].values()
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    assert rows["training vectors"] > 0
    assert "added: training vectors" not in rows
    assert 0.5 < rows["recall@10 of synthetic vectors, rescored"] <= 1
    assert rows["bytes a row, vectors"] == pytest.approx(32, abs=1)
    assert 12 < rows["added: bytes a row, FAISS index"] < 25

"""Suites of recorded runs: measured as they are, beside the figures of papers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.ablate import main
from bench.ablation.papers import all_tables
from tests.support.ablations import read_cells
from tests.support.records import record, search
from tests.support.shared_data import DATA

SUITES = Path(__file__).parents[2] / "bench" / "suites"
NAMES = sorted(path.stem for path in SUITES.glob("recorded_*.yaml"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Write two questions of each set, and runs over them: one finds both, one misses one and
    another fails."""
    folder = tmp_path / "data"
    rows = [
        {"id": "a", "question": "Where?", "answer": "Paris"},
        {"id": "b", "question": "Who?", "answer": "Ada Lane"},
    ]
    whole = [
        record("a", "Paris", search("p.1", tokens=100), search(tokens=0)),
        record("b", "Mayor Ada Lane", search("p.2", tokens=400)),
    ]
    half = [record("a", "Rome", search("p.1", tokens=50)), record("b", "", status="failed")]
    for name in ("2wikimultihopqa", "musique"):
        (folder / name).mkdir(parents=True)
        passage = json.dumps({"title": "Paris", "text": "Ada Lane is mayor of Paris."})
        (folder / name / "corpus.jsonl").write_text(passage)
        (folder / name / "arag_chunks.json").write_text('["0:ada lane is mayor of paris."]')
    for sets in ("2wikimultihopqa", "2wikimultihopqa_chunks", "musique"):
        lines = "\n".join(map(json.dumps, rows))
        path = folder / "model_runs" / f"{sets}.questions.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines)
        for preset in ("arag_full", "logical_read", "logicalrag", "direct_answer",
                       "agentic_hybrid", "logicalrag_no_operators"):  # fmt: skip
            records = half if preset in ("arag_full", "logicalrag") else whole
            content = b"".join(replace(kept, question="?").to_line() for kept in records)
            (folder / "model_runs" / f"{sets}.{preset}.jsonl").write_bytes(content)
            newer = folder / "model_runs_2" / f"{sets}.{preset}.jsonl"
            newer.parent.mkdir(exist_ok=True)
            newer.write_bytes(content)
    third = shutil.copytree(folder / "model_runs", folder / "model_runs_3")
    for name, sets in (("2wiki_cf", "2wikimultihopqa"), ("musique_cf", "musique")):
        shutil.copytree(folder / sets, third / name)
        shutil.copy(third / f"{sets}.questions.jsonl", third / name / "questions.jsonl")
        for preset in ("arag_full", "logical_read", "direct_answer"):
            shutil.copy(third / f"{sets}.{preset}.jsonl", third / f"{name}.{preset}.jsonl")
        for preset in ("ripgrep", "logical_hybrid"):
            shutil.copy(third / f"{name}.logical_read.jsonl", third / f"{name}.{preset}.jsonl")
    return folder


def command(name: str, data: Path, *more: str) -> list[str]:
    places = ["--data", str(data), "--work", str(data.parent / "work")]
    return [str(SUITES / f"{name}.yaml"), *places, *more]


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_are_measured_as_they_are_and_stand_beside_the_papers_figures(
    name: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command(name, data), "--dry-run"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.endswith(" cells, nothing was run.\n")
    assert main(command(name, data)) == 0, capsys.readouterr().err
    cells = read_cells(data.parent / "work" / name)
    values: dict[str, list[Any]] = {
        cell.key["run"]: [
            [row.values[measure] for measure in ("ContainAcc", "EM", "F1", "RetrievedTokens")]
            for row in cell.rows
        ]
        for cell in cells
    }
    assert values["logical_read"] == [[1, 1, 1, 100], [1, 0, pytest.approx(0.8), 400]]
    halves = [run for run in values if run in ("arag_full", "logicalrag")]
    assert all(values[run] == [[0, 0, 0, 50], [0, 0, 0, 0]] for run in halves)
    assert len(halves) == (name != "recorded_interfaces_real")
    assert all(row.values["EvidenceRecall"] is None for cell in cells for row in cell.rows)
    report = (data.parent / "work" / name / "report" / f"{name}.md").read_text()
    assert re.search(r"(12|16|20) questions", report.split("## How it was asked")[0])
    of_papers = {suite for paper in all_tables() for suite in paper["suites"]}
    assert ("## Not measured here" in report) == (name in of_papers)


def test_missing_and_broken_files_of_records_are_named_before_anything_is_measured(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "model_runs" / "2wikimultihopqa.arag_full.jsonl").unlink()
    (data / "model_runs" / "musique.logical_read.jsonl").write_text("{}")
    (data / "musique" / "corpus.jsonl").unlink()
    assert main(command("recorded_arag", data)) == 1
    errors = capsys.readouterr().err
    assert "1. The records cannot be read (No such file or directory)." in errors
    assert "2. A record cannot be read: " in errors
    assert "3. The corpus does not exist. Where: " in errors
    assert errors.endswith("Do: Name their folder with --data.\n")


@pytest.mark.shared_data
def test_recorded_runs_of_the_data_have_the_figures_that_their_guide_states(tmp_path: Path) -> None:
    """Compare with the table of the runs, which was made when they were recorded."""
    stated = {
        row[0].split(" ")[0]: tuple(float(cell.replace(",", "")) for cell in row[1:6])
        for line in (DATA / "model_runs" / "README.md").read_text().splitlines()
        if len(row := [cell.strip() for cell in line.split("|")[1:-1]]) == 7 and "." in row[0]
    }
    assert len(stated) == 10
    for name in (name for name in NAMES if "interfaces" not in name):  # of other runs
        chunks = "_chunks" if name.endswith("_chunks") else ""
        work = tmp_path / name
        assert main([str(SUITES / f"{name}.yaml"), "--data", str(DATA), "--work", str(work)]) == 0
        for cell in read_cells(work):
            wanted = stated.get(f"{cell.key['set']}{chunks}.{cell.key['run']}")
            if wanted is None:
                continue
            measures = ("ContainAcc", "RetrievedTokens", "ToolCalls", "TotalTokens")
            means = [sum(row.values[name] or 0 for row in cell.rows) / 20 for name in measures]
            expected = [wanted[0], wanted[1], wanted[3], wanted[4]]
            assert means == pytest.approx(expected, abs=0.51, rel=0.001), cell.key

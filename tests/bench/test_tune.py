"""The values that a ranking is tuned to, on a small corpus with long and short documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.quality.tune import main
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

COUNT = 12


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Build a corpus in which the right document has a word in a long text that others repeat, so
    that no normalisation of lengths is best."""
    corpus: list[str] = []
    questions: list[str] = []
    for number in range(COUNT):
        name = f"zebra{number}x"
        filler = " ".join(f"word{number}n{at}" for at in range(60))
        corpus.append(json.dumps({"title": f"Right {number}", "text": f"{name} {filler} {name}."}))
        for at in range(11):
            corpus.append(json.dumps({"title": f"Wrong {number} {at}", "text": f"{name}."}))
        questions.append(
            json.dumps(
                {
                    "id": f"q{number}",
                    "question": f"{name}?",
                    "answer": "yes",
                    "supporting_titles": [f"Right {number}"],
                }
            )
        )
    (tmp_path / "corpus.jsonl").write_text("\n".join(corpus))
    (tmp_path / "questions.jsonl").write_text("\n".join(questions))
    build_index([str(tmp_path / "corpus.jsonl")], tmp_path / "index", BuildOptions(workers=0))
    return str(tmp_path / "index"), str(tmp_path / "questions.jsonl")


def test_the_best_values_are_chosen_on_one_half_and_measured_on_the_other(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    assert main([*files, "--json", "--results", str(results)]) == 0
    printed = capsys.readouterr()
    (figure,) = json.loads(results.read_text())["figures"].values()
    before, after, difference = (row["value"] for row in figure["rows"])
    assert (before, after, difference) == (0, 1, 1)
    assert figure["rows"][2]["range"] == [1, 1]
    details = figure["details"]
    assert (details["development"], details["measured"]) == (COUNT // 2, COUNT // 2)
    assert details["index"].startswith("arag-search index SOURCE --bm25 ")
    assert float(details["index"].rpartition(",")[2]) < 0.75
    assert f"Build with: {details['index']}" in printed.err
    assert json.loads(printed.out)


def test_questions_without_evidence_are_an_error(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"id": "a", "question": "Why?", "answer": "so"}\n')
    assert main([files[0], str(bare), "--results", str(tmp_path / "r.json")]) == 1
    assert "0 of 1 questions have evidence or judgements." in capsys.readouterr().err

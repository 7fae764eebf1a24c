"""The bench of the offline model: its parts by hand, and a small run. No test judges a figure."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bench import RESULTS_FOLDER
from bench.data import SAMPLE
from bench.quality.offline import PARTS, main

PASSAGES = (
    {"title": "The Sea (film)", "text": "The Sea is a 1951 film directed by Ann Lee."},
    {"title": "Ann Lee", "text": "Ann Lee (4 May 1901 – 6 June 1981) was a Swiss director."},
    {"title": "Bob Ray", "text": "Bob Ray was a poet. He wrote of the sea."},
)
QUESTIONS = (
    {
        "id": "q1",
        "question": "When did the director of film The Sea die?",
        "question_type": "compositional",
        "answer": "6 June 1981",
        "evidence": [["The Sea", "director", "Ann Lee"], ["Ann Lee", "died", "6 June 1981"]],
    },
    {
        "id": "q2",
        "question": "When did Zoe Quux die?",
        "question_type": "inference",
        "answer": "1900",
        "evidence": [["Zoe Quux", "date of death", "1900"]],
    },
)


def test_the_bench_measures_evidence_and_tokens_beside_those_of_one_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / PARTS[0]
    data.mkdir()
    for name, records in (("corpus.jsonl", PASSAGES), ("questions.jsonl", QUESTIONS)):
        (data / name).write_bytes(b"\n".join(map(orjson.dumps, records)))
    results = tmp_path / "offline.json"

    folders = ["--data", str(tmp_path), "--work", str(tmp_path)]
    code = main([PARTS[0], *folders, "--json", str(results)])

    assert code == 0, capsys.readouterr().err
    figure = orjson.loads(results.read_bytes())["figures"][PARTS[0]]
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    assert rows["evidence recall"] == 0.5
    assert list(rows) == [
        "evidence recall",
        "retrieved tokens a question",
        "recall of one BM25 query, same tokens",
    ]
    assert figure["details"] == {"questions": 2}
    assert figure["run"]["questions"]["count"] == 2
    assert figure["run"]["preset"]["name"] == "logical_read"
    assert "evidence recall" in capsys.readouterr().out


def test_the_bench_runs_over_the_sample_and_leaves_published_results_alone(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = (RESULTS_FOLDER / "offline.json").read_bytes()
    assert main(["all", "--limit", "3", "--data", str(SAMPLE)]) == 0
    output = capsys.readouterr()
    assert "sample" in output.out
    assert str(own_cache / "bench" / "results" / "sample" / "offline.json") in output.err
    assert (own_cache / "bench" / "results" / "sample" / "offline.json").is_file()
    assert (RESULTS_FOLDER / "offline.json").read_bytes() == published

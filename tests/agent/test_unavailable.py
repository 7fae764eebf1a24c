"""Questions whose evidence is removed from the corpus, and the command that removes it."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from arag_search.evaluation.unavailable import (
    GONE,
    STILL_PRESENT,
)
from arag_search.questions.files import load_questions
from arag_search.questions.record import plain_record
from tests.support.commands import Command
from tests.support.shared_data import DATA

SAMPLE = files("arag_search") / "sample"


@pytest.mark.parametrize(
    "name",
    [
        "sample",
        *(
            pytest.param(name, marks=pytest.mark.shared_data)
            for name in ("2wikimultihopqa", "musique", "hotpotqa")
        ),
    ],
)
def test_a_question_is_read_back_from_its_plain_record(tmp_path: Path, name: str) -> None:
    folder = Path(str(SAMPLE)) if name == "sample" else DATA / name
    questions = load_questions(folder / "questions.jsonl")
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps(plain_record(question)) for question in questions))
    assert load_questions(path) == questions


def test_the_command_writes_questions_and_a_scope_to_run_with(
    arag: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert arag("index", str(SAMPLE / "corpus.jsonl"), "--to", "sample").code == 0
    done = arag(
        "unavailable", str(SAMPLE / "questions.jsonl"), "--index", "sample", "--out", "gone"
    )
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].endswith("answer still present 0.") or "answer gone" in done.lines[0]
    assert done.lines[-1] == (
        'Next: arag-search run sample gone/questions.jsonl --filter "$(cat gone/filter.txt)" '
        "--preset PRESET --out RUN"
    )
    scope = Path("gone/filter.txt").read_text().strip()
    run_done = arag("run", "sample", "gone/questions.jsonl", "--filter", scope, "--preset",
               "logical_read", "--model", "offline", "--out", "run")  # fmt: skip
    assert run_done.code == 0
    report = arag("score", "run", "--json").json
    head = arag("score", "run").lines[0]
    assert head.startswith("logical_read, model offline, index sample (NOT ")
    assert len(head) < 120
    removal = arag("unavailable", str(SAMPLE / "questions.jsonl"), "--index", "sample",
                   "--out", "gone", "--json").json  # fmt: skip
    removed_documents = set(removal["filter"]["documents"])
    records = [json.loads(line) for line in Path("run/records.jsonl").read_text().splitlines()]
    shown_documents = {
        id.rsplit(".", 1)[0]
        for record in records
        for step in record["trajectory"]
        for id in step["hit_ids"]
    }
    assert removed_documents
    assert shown_documents
    assert not shown_documents & removed_documents
    assert {row["type"] for row in report["rows"]} <= {"all", GONE, STILL_PRESENT}
    assert report["failures"]["questions"] == {}

"""The command questions with an index."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from tests.support.commands import Command

SAMPLE = str(files("arag_search") / "sample" / "questions.jsonl")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_evidence_is_resolved_to_the_passages_of_an_index(arag: Command) -> None:
    corpus = str(files("arag_search") / "sample" / "corpus.jsonl")
    assert arag("index", corpus, "--to", "sample").code == 0
    unknown = {"id": "x", "question": "Who?", "answer": "Ann", "supporting_titles": ["Nobody"]}
    lines = [*Path(SAMPLE).read_text().splitlines(), json.dumps(unknown)]
    Path("q.jsonl").write_text("\n".join(lines))
    done = arag("questions", "q.jsonl", "--index", "sample")
    assert "  resolved by  title 24, unresolved 1" in done.lines
    assert (
        "  found whole  12 of 13 questions; several passages hold 0 of 25 pieces, and any of them "
        "counts"
    ) in done.lines
    assert "  unresolved   Nobody (x)" in done.lines
    assert done.lines[-2:] == [
        "Problem: 1 of 13 questions have no type, which others have.",
        "Problem: 1 of 13 questions name evidence that no passage of the index holds: no search "
        "can find all of it.",
    ]

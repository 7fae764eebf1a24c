"""Calibration, and a run of the suite of BrowseComp-Plus with recorded answers and verdicts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from arag_search.agent.answers import parse_answer, stated_confidence
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from bench.ablate import main
from bench.ablation.cells import cell_files, read_cell
from bench.ablation.suite import ModelEntry
from bench.ablation.tables import calibration_error
from tests.support.scripted_model import ScriptedModel

SUITE = Path(__file__).parents[2] / "bench" / "suites" / "browsecomp_plus.yaml"


def test_the_error_is_that_of_bins_of_a_hundred_answers_of_like_confidence() -> None:
    sure, unsure = np.full(150, 0.9), np.full(100, 0.5)
    right_when_sure, right_when_unsure = (
        np.array([1.0] * right + [0.0] * wrong) for right, wrong in ((90, 60), (40, 60))
    )
    by_hand = math.sqrt((100 * (0.5 - 0.4) ** 2 + 150 * (0.9 - 0.6) ** 2) / 250)
    confidences = np.concatenate([sure, unsure])
    verdicts = np.concatenate([right_when_sure, right_when_unsure])
    assert calibration_error(confidences, verdicts) == pytest.approx(by_hand)
    order = np.random.default_rng(1).permutation(250)
    assert calibration_error(confidences[order], verdicts[order]) == pytest.approx(by_hand)
    few = calibration_error(np.array([1.0, 0.5]), np.array([1.0, 0.0]))
    assert few == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("Confidence: 80 %", 0.8),
        ("**Confidence:** 95%", 0.95),
        ("confidence: 0.7", 0.7),
        ("Confidence: 100", 1.0),
        ("Confidence: 300 %", 1.0),
        ("Confidence: high", None),
        ("", None),
    ],
)
def test_the_confidence_of_a_reply_is_no_part_of_its_answer(
    line: str, confidence: float | None
) -> None:
    reply = f"Answer: Venice\n{line}\nExplanation: It says so [3].\nSources: [3]"
    answer = parse_answer(reply, ["3"])
    assert (answer.short, answer.cited_ids) == ("Venice", ("3",))
    assert answer.explanation == "It says so [3]."
    assert stated_confidence(reply) == confidence


def write_set(folder: Path) -> None:
    folder.mkdir(parents=True)
    pages = [
        {"id": f"p{n}", "title": f"Town {n}", "text": f"Town {n} has a mill."} for n in range(9)
    ]
    questions = [
        {"query_id": str(n), "query": f"Which town has mill {n}?", "answer": f"Town {n}",
         "gold_docs": [{"docid": f"p{n}"}],
         "evidence_docs": [{"docid": f"p{n}"}, {"docid": f"p{n + 1}"}]}
        for n in range(4)
    ]  # fmt: skip
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, pages)))
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))


def answering(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return a model that searches for its town once, and is sure of every other answer."""

    def reply(request: ModelRequest) -> ModelReply:
        usage = Usage(10, 1, "endpoint")
        number = int(request.question_id)
        assert "Confidence: N %" in request.messages[0].content
        if request.messages[-1].role == "tool":
            sure = 100 if number % 2 else 50
            return ModelReply(f"Answer: Town {number}\nConfidence: {sure} %", usage=usage)
        query = f'"town {number}"'
        call = ToolCall("1", "logical_search", json.dumps({"query": query}))
        if any("read_search_results" in str(tool) for tool in request.tools):
            call = ToolCall("1", "search", json.dumps({"reason": "The town.", "query": query}))
        return ModelReply("", (call,), usage=usage)

    return ScriptedModel(reply)


def test_browsecomp_plus_reports_answers_documents_calls_and_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(tmp_path / "data" / "browsecomp_plus")
    judge = ScriptedModel(
        lambda request: ModelReply(
            f"Verdict: {'correct' if 'Town 1' in request.messages[-1].content else 'incorrect'}"
        )
    )
    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: judge)
    folders = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work")]
    arguments = [str(SUITE), *folders, "--judge", "j", "--model", "m", "--no-plots"]
    assert main(arguments, answering) == 0, capsys.readouterr().err
    files = cell_files(tmp_path / "work" / "browsecomp_plus" / "cells")
    rows = {cell.key["preset"]: rows for cell, rows in map(read_cell, files)}
    for row in rows["logical_read"]:
        assert (row.values["GoldRecall@1000"], row.values["Recall@1000"]) == (1, 0.5)
        assert row.values["ToolCalls"] == 1
    for row in rows["pi_serini"]:
        assert row.values["GoldRecall@1000"] == 1
        assert row.values["ToolCalls"] == 1
    report = next((tmp_path / "work").rglob("browsecomp_plus.md")).read_text()
    # One of four answers is right, the mean confidence is 0.75, and there is a single bin.
    line = "| browsecomp_plus | published, logical_read, m | 4 | 0.250 | 0.750 | 0.500 |"
    assert line in report.split("## Calibration")[1]

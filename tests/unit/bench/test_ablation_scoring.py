"""A record as a row of a cell: its values and its details."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.agent.models.base import Usage
from arag_search.agent.record import Record, Step
from arag_search.evaluation.judging.judge import Judgement, Verdict
from arag_search.evaluation.measurement import measure_question
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.questions.question import Question
from arag_search.tokens import count_tokens
from arag_search.tools.reply_text import read_spans
from bench.ablation.cells import CellRow
from bench.ablation.scoring import MEASURES, Sets, area, curve_of, row_of


def step(number: int, tokens: int, *ids: str, status: Any = "ok") -> Step:
    text = "\n".join(f"[{id}] Title\nText of {id}." for id in ids)
    spans = read_spans(text)
    return Step(
        number, "logical_search", {}, text, "", status, ids, 1, tokens, tokens + 5, 0.1, spans
    )


def record(*steps: Step, status: Any = "answered", answer: str = "Venice") -> Record:
    return Record(
        "q", "Where?", answer, answer, "", (), (), None, status, None, steps, None, 1, {},
        sum(step.retrieved_tokens for step in steps), 0, (), Usage(1, 1, "counted"), 1.0, {},
    )  # fmt: skip


def row(
    question: Question, scored: Record | None, sets: Sets, verdict: Verdict | None = None
) -> CellRow:
    judgement = None if verdict is None else Judgement(verdict, (verdict,))
    measured = measure_question(question, scored, MEASURES, sets, judgement)
    return row_of(question, scored, 1, "runs/a#q", sets, measured)


QUESTION = Question("q", "Where?", ("Venice",), "bridge", ("Griselda", "Vivaldi"))
SETS = [
    [
        EvidencePiece("Griselda", ("g.1", "g.2"), "title"),
        EvidencePiece("Vivaldi", ("v.1",), "title"),
    ]
]


def test_evidence_comes_with_the_tokens_of_the_step_that_showed_its_passage() -> None:
    scored = record(step(1, 100, "o.1"), step(2, 50, "v.1"), step(3, 850, "g.2", "o.1"))
    curve = curve_of(scored, SETS)
    assert curve == [(0, 0), (150, 0.5), (1000, 1)]
    assert area(curve) == pytest.approx((0.5 * 850 + 1 * 7000) / 8000)
    made = row(QUESTION, scored, SETS)
    assert made.values["TokensToEvidence"] == made.values["RetrievedTokens"] == 1000
    assert made.values["FullEvidence"] == made.values["EM"] == 1
    assert made.details["record"] == "runs/a#q"
    assert "failure" not in made.details


def test_of_several_sets_of_evidence_the_most_complete_one_counts() -> None:
    sets = [*SETS, [EvidencePiece("Other", ("o.1",), "title")]]
    assert curve_of(record(step(1, 70, "v.1"), step(2, 30, "o.1")), sets) == [(0, 0), (100, 1)]


def test_evidence_that_is_incomplete_or_too_late_is_charged_the_cap() -> None:
    late = record(step(1, 8_001, "v.1", "g.1"))
    half = record(step(1, 10, "v.1"), step(2, 5, status="empty"), step(3, 0, status="error"))
    for scored in (late, half, None, record(status="failed")):
        made = row(QUESTION, scored, SETS)
        assert made.values["TokensToEvidence"] == 8_000
        assert made.values["FullEvidence"] == 0
    details = row(QUESTION, half, SETS).details
    assert (details["searches"], details["zero_hits"], details["refused"]) == (3, 1, 1)
    assert details["failed_tokens"] == 15
    assert row(QUESTION, None, SETS).details["failed"]
    assert area(curve_of(late, SETS)) == 0


def test_tokens_of_passages_that_were_shown_before_count_as_repeated() -> None:
    once = record(step(1, 9, "o.1", "v.1"), step(2, 0, status="empty"))
    assert row(QUESTION, once, SETS).details["repeated_tokens"] == 0
    repeated = record(*once.trajectory, step(3, 9, "v.1"), step(4, 9, "v.1", "g.1"))
    tokens = count_tokens("Title") + count_tokens("Text of v.1.")
    details = row(QUESTION, repeated, SETS).details
    assert details["repeated_tokens"] == 2 * tokens


def test_a_question_without_evidence_is_not_measured_and_missing_passages_are_unresolved() -> None:
    made = row(Question("q", "Where?", ("Venice",)), record(), [])
    assert made.values["TokensToEvidence"] is None
    assert made.values["EvidenceArea"] is None
    assert made.values["EM"] == 1
    assert not made.details["unresolved"]
    lost = [[EvidencePiece("Griselda", (), None), EvidencePiece("Vivaldi", ("v.1",), "title")]]
    assert row(QUESTION, record(step(1, 1, "v.1")), lost).details["unresolved"]


def test_a_wrong_answer_has_a_reason_and_a_judge_may_find_it_right() -> None:
    wrong = record(step(1, 10, "v.1"), answer="Rome")
    assert row(QUESTION, wrong, SETS).details["failure"] == "never shown"
    judged = row(QUESTION, wrong, SETS, "correct")
    assert judged.values["JudgeAcc"] == 1
    assert "failure" not in judged.details

"""Measures of ten trajectories, each value worked out by hand. Those of rankings are in
test_measured, of intents and of A-RAG's categories in tests/unit/bench."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from arag_search.agent.models.base import Usage
from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import Judgement, Verdict
from arag_search.evaluation.measurement import means_by_type, measure_questions
from arag_search.evaluation.measures import KINDS, parse_measures
from arag_search.evaluation.trajectories import trajectories
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from tests.support.records import read, record, search
from tests.support.shared_data import DATA

ONE = search("d1.1", text="head\n[d1.1] One\nText.", tokens=100)
TWO = search("d2.1", text="head\n[d2.1] Two\nText.", tokens=200)
BOTH = search("d1.1", "d2.1", text="head\n[d1.1] One\nText.\n[d2.1] Two\nText.", tokens=300)
LONG = search("d2.1", text="head\n[d2.1] Two\nText.", tokens=8_000)
NONE = search(tokens=0)
READ = read("d1.1", text="[d1.1] One\nText.", tokens=50)
TITLES = ("One", "Two")


def question(id: str, *answers: str, is_answerable: bool = True) -> Question:
    titles = TITLES if is_answerable else ()
    return Question(id, "?", answers, None, titles, answerable=is_answerable)


QUESTIONS = [
    question("a", "Ada Lane"),
    question("b", "Ada Lane", "A. Lane"),
    question("c", "Paris"),
    question("d", "4 May 1901"),
    question("e", "Bath"),
    question("f", "Bath"),
    question("g", "Bath", is_answerable=False),
    question("h", "Bath", is_answerable=False),
    question("i", "Bath", is_answerable=False),
    question("j", "Bath", is_answerable=False),
]
RECORDS = [
    record("a", "Ada Lane", ONE, TWO),
    record("b", "the Lane", BOTH, READ),
    record("c", "Rome", ONE, NONE, explanation="It was not Paris."),
    record("d", "on 4 May 1901", ONE, LONG),
    record("e", "not found in the corpus", NONE),
    record("f", "Bath", ONE, TWO, status="failed"),
    record("g", "not found in the corpus", ONE, explanation="Bath is not named."),
    record("h", "Leeds", ONE),
    record("i", "Leeds", TWO, explanation="Once it was Bath."),
    record("j", "Bath"),
]
NAMES = ("EM", "F1", "ContainAcc", "EvidenceRecall", "FullEvidence", "TokensToEvidence",
         "RetrievedTokens", "Steps", "Refusal", "Hallucination", "GoldLeak")  # fmt: skip
BY_HAND: dict[str, tuple[float | None, ...]] = {
    "a": (1, 1, 1, 1, 1, 300, 300, 2, None, None, None),
    # "lane" of one word, against "ada lane" and "lane" (the article A goes)
    "b": (1, 1, 1, 1, 1, 300, 350, 2, None, None, None),
    "c": (0, 0, 1, 1 / 2, 0, 8_000, 100, 2, None, None, None),
    # 3 of 4 words, all 3 of the answer; the second title came after 8,100 tokens
    "d": (0, 6 / 7, 1, 1, 0, 8_000, 8_100, 2, None, None, None),
    "e": (0, 0, 0, 0, 0, 8_000, 0, 1, None, None, None),
    "f": (0, 0, 0, 0, 0, 8_000, 300, 2, None, None, None),
    "g": (1, 1, 1, None, None, None, 100, 1, 1, 0, 0),
    "h": (0, 0, 0, None, None, None, 100, 1, 0, 1, 0),
    "i": (0, 0, 0, None, None, None, 200, 1, 0, 0, 1),
    "j": (0, 0, 0, None, None, None, 0, 0, 0, 0, 1),
}


def values_of(
    names: tuple[str, ...], records: list[Record] = RECORDS, **of_judges: Any
) -> dict[str, tuple[float | None, ...]]:
    by_id = {kept.question_id: kept for kept in records}
    _, values = measure_questions(QUESTIONS, by_id, parse_measures(names), **of_judges)
    return {id: tuple(of[name] for name in names) for id, of in values.items()}


def test_answers_evidence_and_refusals_of_ten_trajectories_are_those_worked_out_by_hand() -> None:
    values = values_of(NAMES)
    for id, expected in BY_HAND.items():
        assert values[id] == pytest.approx(expected, nan_ok=True), id


def test_verdicts_of_ten_answers_decide_what_they_are() -> None:
    verdicts: dict[str, Verdict | None] = {
        "a": "correct", "b": "incorrect", "c": "correct", "d": "correct", "e": None,
        "g": "incorrect", "h": "abstained", "i": "incorrect", "j": None,
    }  # fmt: skip
    given = {id: Judgement(verdict, (verdict,)) for id, verdict in verdicts.items()}
    scores = {"a": 1.0, "b": 0.25, "c": 0.0, "d": 0.75, "e": 0.5, "g": 1.0, "h": 0.0, "i": None}
    names = ("JudgeAcc", "Factuality", "Refusal", "Hallucination", "GoldLeak")
    assert values_of(names, judgements=given, factuality=scores) == {
        "a": (1, 1, None, None, None),
        "b": (0, 0.25, None, None, None),
        "c": (1, 0, None, None, None),
        "d": (1, 0.75, None, None, None),
        "e": (None, 0.5, None, None, None),
        "f": (0, 0, None, None, None),
        "g": (0, 1, 0, 1, 0),
        "h": (1, 0, 1, 0, 0),
        "i": (0, None, 0, 1, 0),
        "j": (None, None, None, None, None),
    }


def test_costs_of_ten_trajectories_are_those_worked_out_by_hand() -> None:
    names = ("PromptTokens", "CompletionTokens", "TotalTokens", "ToolCalls", "SummarizeCalls",
             "Iterations", "Seconds", "Cost")  # fmt: skip
    records = [
        replace(
            kept,
            usage=Usage(100 * number, number, "endpoint"),
            tool_usage_summary={"search": number, "summarize": number % 2},
            loops=number + 1,
            seconds=number / 4,
            total_cost=number / 8,
        )
        for number, kept in enumerate(RECORDS[:9])
    ]
    values = values_of(names, records)
    assert values["a"] == (0, 0, 0, 0, 0, 1, 0, 0)
    assert values["d"] == (300, 3, 303, 4, 1, 4, 0.75, 0.375)
    assert values["i"] == (800, 8, 808, 8, 0, 9, 2, 1)
    assert values["j"] == (None,) * 8
    total = [sum(of[column] or 0 for of in values.values()) for column in range(8)]
    assert total == pytest.approx([3_600, 36, 3_636, 40, 4, 45, 9, 4.5])


def test_tokens_to_a_right_answer_count_those_of_wrong_answers_and_of_failures() -> None:
    (measure,) = parse_measures(["TokensToRight"])
    spent = {of.question_id: replace(of, usage=Usage(90, 10, "endpoint")) for of in RECORDS[:9]}
    outcomes, values = measure_questions(QUESTIONS, spent, [measure])
    scores = [outcome.score for outcome in outcomes]
    # 9 records of 100 tokens; right are a to d, and the refusal g
    assert means_by_type(scores, values, [measure])[0].values == {"TokensToRight": 180}
    judged = {id: {**of, "JudgeAcc": float(id == "a")} for id, of in values.items()}
    assert means_by_type(scores, judged, [measure])[0].values == {"TokensToRight": 900}
    assert means_by_type(scores[4:6], values, [measure])[0].values == {"TokensToRight": None}


def test_every_measure_that_is_no_ranking_has_its_value_by_hand() -> None:
    costs = {"PromptTokens", "CompletionTokens", "TotalTokens", "ToolCalls", "SummarizeCalls",
             "TokensToRight", "Iterations", "Seconds", "Cost"}  # fmt: skip
    measured = {*NAMES, "JudgeAcc", "Factuality", "GroundedAcc", "MemoryShare", *costs}
    assert {kind.name for kind in KINDS if not kind.is_ranking} == measured


RECORDED: list[tuple[float, ...]] = [
    # EM, F1, ContainAcc, RetrievedTokens, ToolCalls, TotalTokens, Iterations
    (0, 1 / 2, 1, 551 + 113, 2, 5_524 + 202, 3),  # 3 of 9 words, all of the answer
    (1, 1, 1, 70 + 101, 2, 4_389 + 188, 3),
    (1, 1, 1, 601 + 15 + 149 + 178 + 1_166, 5, 15_252 + 393, 6),
    (1, 1, 1, 45 + 126 + 175 + 122, 4, 8_503 + 291, 5),
    (1, 1, 1, 18 + 124, 2, 4_285 + 146, 3),
    (1, 1, 1, 202 + 230 + 268, 3, 7_400 + 255, 4),  # the article does not count
    (1, 1, 1, 34 + 62 + 321 + 154, 5, 11_284 + 398, 6),
    (0, 1 / 2, 1, 420, 1, 3_118 + 121, 2),  # 1 of 3 words, all of the answer
    (0, 6 / 7, 1, 206, 1, 2_959 + 152, 2),  # 3 of 4 words, all of the answer
    (0, 1 / 2, 1, 38 + 687, 2, 4_955 + 201, 3),  # 1 of 3 words, all of the alias Boeing
]


@pytest.mark.shared_data
def test_ten_recorded_trajectories_have_the_values_worked_out_by_hand() -> None:
    folder = DATA / "model_runs"
    lines = (folder / "musique.logical_read.jsonl").read_bytes().splitlines()[:10]
    records = {
        kept.question_id: kept for kept in (Record.from_json(json.loads(line)) for line in lines)
    }
    questions = load_questions(folder / "musique.questions.jsonl")[:10]
    names = ("EM", "F1", "ContainAcc", "RetrievedTokens", "ToolCalls", "TotalTokens", "Iterations")
    _, values = measure_questions(questions, records, parse_measures(names))
    for id, expected in zip(records, RECORDED, strict=True):
        assert tuple(values[id][name] for name in names) == pytest.approx(expected), id
    # Of 13 pairs of neighbouring searches, three share a passage: 1 of 1 and 2, of 2 and 19 (the
    # third question), of 1 and 4 (the fourth). One search found nothing, and the next one did.
    searched = trajectories(records.values())
    assert (searched.overlap.pairs, searched.overlap.empty_pairs) == (13, 0)
    assert searched.overlap.of_larger == pytest.approx((1 / 2 + 1 / 19 + 1 / 4) / 13)
    assert searched.overlap.jaccard == pytest.approx((1 / 2 + 1 / 20 + 1 / 4) / 13)
    assert (searched.recovery.failed, searched.recovery.at_once, searched.recovery.searches) == (
        1,
        1,
        1,
    )

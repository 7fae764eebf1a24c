"""A-RAG's categories of wrong answers, on ten trajectories with recorded verdicts."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.evaluation.resolution import Passages
from arag_search.questions.question import Question
from bench.ablation.judging.failures import (
    CATEGORIES,
    KINDS,
    MAX_CASES,
    NAIVE_CATEGORIES,
    FailureJudge,
    read_failure,
)
from tests.support.passages import chunk
from tests.support.records import read, record, search
from tests.support.scripted_model import ScriptedModel

VERDICTS = {
    "t1": "Category: Reasoning Chain Error\nKind: Entity Confusion",
    "t2": "**Category:** Reasoning Chain Error\n**Kind:** wrong strategy.",
    "t3": "Category: Judge Error",
    "t4": "Category: Model Gave Up",
    "t5": "Category: Corpus Missing",
    "t6": "Kind: Exceed Budget\nCategory: Reasoning Chain Error",
    "t7": "Category: Reasoning Chain Error\nKind: Entity Confusion",
    "t8": "Category: Model Understanding",
    "t9": "Category: Top-K Insufficient",
    "t10": "I cannot tell.",
}
PASSAGES = Passages([chunk(0, "b", "Bath", "The baths.")]).all
NAIVE = ("t8", "t9")
QUESTIONS = [Question(id, f"{id}?", ("Leeds" if id == "t5" else "Bath",)) for id in VERDICTS]


def recorded_reply(request: ModelRequest) -> ModelReply:
    return ModelReply(VERDICTS[request.question_id])


def test_the_categories_of_ten_trajectories_are_counted_as_by_hand() -> None:
    records = {
        id: record(id, "Rome", search("a"))
        if id in NAIVE
        else record(
            id, "Rome", search("a"), read("a"), status="forced" if id == "t4" else "answered"
        )
        for id in VERDICTS
    }
    model = ScriptedModel(recorded_reply)
    verdicts = FailureJudge(model).judge_wrong(QUESTIONS, records, PASSAGES)
    assert Counter(verdicts.values()) == {
        "Reasoning Chain Error: Entity Confusion": 2,
        "Reasoning Chain Error: Wrong Strategy": 1,
        "Reasoning Chain Error: Exceed Budget": 1,
        "Judge Error": 1,
        "Model Gave Up": 1,
        "Corpus Missing": 1,
        "Model Understanding": 1,
        "Top-K Insufficient": 1,
        "not judged": 1,
    }
    shown = {
        request.question_id: json.loads(request.messages[1].content) for request in model.requests
    }
    assert shown["t4"]["all rounds were used"] is True
    assert shown["t1"]["all rounds were used"] is False
    assert shown["t5"]["a right answer stands in the corpus"] is False
    assert shown["t1"]["a right answer stands in the corpus"] is True
    assert [step["tool"] for step in shown["t1"]["steps"]] == ["logical_search", "chunk_read"]
    prompts = {request.question_id: request.messages[0].content for request in model.requests}
    assert ("Multi-hop Retrieval" in prompts["t8"]) is ("Corpus Missing" in prompts["t1"]) is True


@pytest.mark.parametrize(
    ("reply", "allowed", "verdict"),
    [
        ("Category: Judge Error", CATEGORIES, "Judge Error"),
        ("Category: Judge Error\nKind: Wrong Strategy", CATEGORIES, "Judge Error"),
        ("Category: Judge Error\nCategory: Corpus Missing", CATEGORIES, "Corpus Missing"),
        ("Category: Reasoning Chain Error", CATEGORIES, None),
        ("Category: Model Understanding", CATEGORIES, None),
        ("Category: Model Understanding", NAIVE_CATEGORIES, "Model Understanding"),
        ("Maybe a Judge Error", CATEGORIES, None),
    ],
)
def test_the_last_category_counts_and_a_reasoning_error_needs_its_kind(
    reply: str, allowed: tuple[str, ...], verdict: str | None
) -> None:
    assert read_failure(reply, allowed) == verdict


def test_every_kind_is_read_with_its_category() -> None:
    for kind in KINDS:
        reply = f"Category: Reasoning Chain Error\nKind: {kind}"
        assert read_failure(reply, CATEGORIES) == f"Reasoning Chain Error: {kind}"


def test_the_first_hundred_wrong_answers_are_judged() -> None:
    questions = [Question(f"q{n}", "?", ("Bath",)) for n in range(MAX_CASES + 1)]
    records = {question.id: record(question.id, "Rome", search("a")) for question in questions}
    model = ScriptedModel(lambda _: ModelReply("Category: Model Understanding"))
    verdicts = FailureJudge(model).judge_wrong(questions, records, ())
    assert list(verdicts) == [question.id for question in questions[:MAX_CASES]]
    assert "stands in the corpus" not in model.requests[0].messages[1].content

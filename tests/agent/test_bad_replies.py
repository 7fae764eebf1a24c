"""A reply of an endpoint that is cut off, absurd or malformed costs its own question at most,
and no figure of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.record import Record
from arag_search.cli.output.answers import trajectory_text
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.question_score import score_question
from arag_search.questions.question import Question
from arag_search.runs.folder import read_records
from arag_search.runs.prices import Price, Prices
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.passages import VIVALDI, index_of
from tests.support.records import record
from tests.support.scripted_model import ScriptedModel

CUT = ModelReply("Answer: Vien", cut="length")
QUESTION = Question("q0", "Where did Vivaldi die?", ("Vien",))
PRICES = Prices({"scripted": Price(prompt=1.0, completion=1.0)})


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*VIVALDI)


def ask(index: Index, *replies: ModelReply, preset: str = "logical_read") -> Record:
    return Agent(index, load_preset(preset), ScriptedModel(replies)).ask(QUESTION.text, "q0")


@pytest.mark.parametrize("preset", ["logical_read", "direct_answer"])
def test_an_answer_that_is_cut_off_is_a_failure_that_keeps_its_text(
    index: Index, preset: str
) -> None:
    answer = ask(index, CUT, preset=preset)
    assert (answer.status, answer.answer, answer.answer_short) == ("failed", "Answer: Vien", "")
    assert (answer.citation, answer.cited_ids) == (None, ())
    assert answer.failure == (
        "ModelReplyError: The answer was cut off: it reached the token limit of a reply.\n"
        "Where: model scripted, finish reason length\n"
        "Do: Allow the model longer replies, or try another model."
    )
    score = score_question(QUESTION, answer)
    assert (score.status, score.exact_match, score.f1, score.contain_accuracy) == (
        "failed",
        0,
        0,
        0,
    )
    text = trajectory_text(answer, "scripted")
    assert "What there is of an answer, as the model wrote it:\nAnswer: Vien" in text


def test_a_forced_answer_that_is_cut_off_fails_too_and_says_why_where_it_is_empty(
    index: Index,
) -> None:
    search = ModelReply("", (ToolCall("a", "logical_search", '{"query": "opera"}'),))
    settings = load_preset("logical_read").model_copy(update={"max_loops": 1})
    partial_reply = ModelReply("Answer: V", cut="content_filter")
    answer = Agent(index, settings, ScriptedModel([search, partial_reply])).ask("Who?")
    assert answer.status == "failed"
    assert "the endpoint's content filter withheld the rest" in (answer.failure or "")
    empty_reply = ModelReply("", cut="length")
    answer = ask(index, empty_reply, empty_reply)
    assert (answer.failure or "").startswith(
        "ModelReplyError: The model replied twice with neither text nor a tool call; it reached "
    )


def test_a_complete_call_in_a_reply_that_is_cut_off_is_run(index: Index) -> None:
    call = ToolCall("a", "logical_search", '{"query": "opera"}')
    answer = ask(index, ModelReply("", (call,), cut="length"), ModelReply("Answer: x"))
    assert (answer.status, answer.trajectory[0].status) == ("answered", "ok")


def test_a_verdict_that_is_cut_off_is_asked_for_again() -> None:
    replies = [ModelReply("Verdict: incorrect", cut="length"), ModelReply("Verdict: correct")]
    judgement = Judge(ScriptedModel(replies)).judge(QUESTION, record("q0", "Vienna"))
    assert judgement.verdict == "correct"


@pytest.mark.parametrize("tokens", [-(10**6), 10**30, 10**400])
def test_one_reply_with_absurd_usage_ends_no_run_and_lowers_no_cost(
    index: Index, tmp_path: Path, tokens: int
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        count = tokens if request.question_id == "q1" else 10
        return ModelReply("Answer: x", usage=Usage(count, count, "endpoint"))

    questions = [
        replace(QUESTION, id=f"q{number}", text=f"Who is {number}?") for number in range(3)
    ]
    outcome = run(
        index, questions, load_preset("logical_read"), ScriptedModel(script), tmp_path,
        prices=PRICES, options=RunOptions(max_cost_usd=1.0),
    )  # fmt: skip
    assert (outcome.tally.answered, outcome.tally.failed, outcome.stopped) == (3, 0, None)
    records = read_records(tmp_path).by_id
    assert [records[f"q{number}"].usage.source for number in range(3)] == [
        "endpoint",
        "counted",
        "endpoint",
    ]
    assert all(0 < (entry.total_cost or 0) < 1 for entry in records.values())

"""A reply of an endpoint that is cut off, absurd or malformed costs its own question at most,
and no figure of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.replay import RecordingModel, ReplayModel
from arag_search.agent.models.replies import read_reply
from arag_search.agent.presets import load_preset
from arag_search.agent.record import Record
from arag_search.cli.trajectories import trajectory_text
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.question_score import score_question
from arag_search.questions.question import Question
from arag_search.runs.folder import read_records
from arag_search.runs.prices import Price, Prices
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index
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


def body(choice: object = None, **more: Any) -> str:
    choice = {"message": {"content": "Ada"}} if choice is None else choice
    return json.dumps({"choices": [choice], **more})


# Answers that are cut off


@pytest.mark.parametrize(
    ("reason", "cut"),
    [
        ("stop", None),
        ("tool_calls", None),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        (None, None),
        ("", None),
        ("eos", None),
        ("function_call", None),
        ("error", "error"),
        ("insufficient_system_resource", "insufficient_system_resource"),
        ("repetition_truncation", "repetition_truncation"),
        (7, None),
        (["length"], None),
        ({}, None),
    ],
)
def test_a_finish_reason_says_whether_a_reply_is_cut_off(reason: object, cut: str | None) -> None:
    choice = {"message": {"content": "Vien"}, "finish_reason": reason}
    assert read_reply(body(choice), 1) == ModelReply("Vien", cut=cut)  # pyright: ignore


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


def test_the_reason_of_a_cut_is_recorded_and_replayed(index: Index, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    recording = RecordingModel(ScriptedModel([CUT]), file)
    request = ModelRequest(())
    assert recording.reply(request) == ReplayModel(file).reply(request) == CUT
    recording.close()


def test_a_verdict_that_is_cut_off_is_asked_for_again() -> None:
    replies = [ModelReply("Verdict: incorrect", cut="length"), ModelReply("Verdict: correct")]
    judgement = Judge(ScriptedModel(replies)).judge(QUESTION, record("q0", "Vienna"))
    assert judgement.verdict == "correct"


# Usage

ABSURD: tuple[object, ...] = (
    -1,
    10**10,
    10**30,
    10**400,
    1.5,
    float("inf"),
    float("nan"),
    True,
    "7",
    None,
    [7],
    {},
)


@pytest.mark.parametrize("tokens", ABSURD)
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_impossible_usage_is_not_reported(field: str, tokens: object) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, field: tokens}
    assert read_reply(body(usage=usage), 1) == ModelReply("Ada")


def test_a_number_too_long_for_python_does_not_lose_a_reply() -> None:
    text = body(usage={"prompt_tokens": 1, "completion_tokens": 2}).replace("2}", f"{'9' * 5000}}}")
    assert read_reply(text, 1) == ModelReply("Ada")


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


# Any other reply

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "name", "arguments", "function", "id", "content", "type"]),
            inner,
        )
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["content", "refusal", "reasoning", "reasoning_content", "tool_calls", "role"]
)


@given(
    message=st.dictionaries(FIELDS, JSON) | JSON,
    more=st.dictionaries(st.sampled_from(["finish_reason", "index"]), JSON),
    usage=JSON | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens"]), JSON),
    choices=st.none() | JSON,
)
def test_any_reply_is_read_or_refused_with_a_message_of_ours(
    message: object, more: dict[str, object], usage: object, choices: object
) -> None:
    content: dict[str, object] = {"choices": choices or [{"message": message, **more}]}
    try:
        reply = read_reply(json.dumps({**content, "usage": usage}), 1)
    except ValueError as error:
        assert str(error).startswith("The endpoint's reply ")
    else:
        assert reply.usage is None or reply.usage.is_plausible


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "The endpoint's reply holds no choices"),
        ('{"choices": {}}', "The endpoint's reply is not a chat completion (at choices)"),
        ('{"choices": "ab"}', "The endpoint's reply is not a chat completion (at choices)"),
        ("[]", "The endpoint's reply holds no choices"),
        ("[" * 100_000, "The endpoint's reply is not JSON"),
    ],
)
def test_text_that_is_not_a_reply_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^The endpoint's reply") as caught:
        read_reply(text, 1)
    assert str(caught.value) == problem


def test_content_in_parts_is_text_whatever_the_parts_hold() -> None:
    parts = ["A", {"type": "text", "text": "da"}, {"type": "text", "text": None}, {"type": "x"}]
    assert read_reply(body({"message": {"content": parts}}), 1) == ModelReply("Ada")


@pytest.mark.parametrize("levels", [51, 200, 497, 990, 100_000])
def test_arguments_nested_too_deeply_are_refused_at_any_depth(index: Index, levels: int) -> None:
    nested = f'{{"query": {"[" * levels}{"]" * levels}}}'
    call = ModelReply("", (ToolCall("a", "logical_search", nested),))
    answer = ask(index, call, ModelReply("Answer: x"))
    (step,) = answer.trajectory
    assert (answer.status, step.status, step.tool_input) == ("answered", "error", nested)
    assert "not valid JSON (nested too deeply)" in step.tool_output

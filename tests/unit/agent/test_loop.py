"""The agent loop, with scripted models, over an index in memory."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from arag_search.agent.loop import LEFT_OUT, Agent
from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.prompts import prompt_text
from arag_search.agent.record import Record, Step, citation_warning
from arag_search.agent.state import State, message_tokens
from arag_search.errors import (
    ArgumentError,
    ContextLengthError,
    ModelAccessError,
    NotServedError,
)
from arag_search.manifest import Manifest
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.asking import CHUNKS, FINAL, QUESTION, Ask, call, calls, read, search
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import scoped
from tests.support.scripted_model import ScriptedModel
from tests.support.standings import note

# One question


@pytest.mark.parametrize("name", ["read_chunk", "functions.read_chunk", "functions.chunk_read:0"])
def test_a_tool_may_be_called_by_the_name_that_it_has_in_a_rag(ask: Ask, name: str) -> None:
    session = ask(calls(call(name, chunk_ids=["goldoni.1"])), FINAL)
    assert session.record.tool_usage_summary == {"chunk_read": 1}
    assert session.record.chunks_read_ids == ("goldoni.1",)
    assert session.last[2].tool_calls[0].name == "chunk_read"


def test_a_question_is_answered_step_by_step_with_its_evidence(ask: Ask) -> None:
    session = ask(search("griselda"), search("goldoni AND died"), read("goldoni.1"), FINAL)
    record = session.record
    assert (record.question_id, record.question, record.status) == ("q1", QUESTION, "answered")
    assert (record.answer_short, record.explanation) == ("Paris", "He died there.")
    assert (record.cited_ids, record.citation, record.failure) == (("goldoni.1",), "cited", None)
    assert record.answer == FINAL.text
    assert [(step.step, step.tool_name, step.hit_ids) for step in session.steps] == [
        (1, "logical_search", ("griselda.1",)),
        (2, "logical_search", ("goldoni.1", "venice.1")),
        (3, "chunk_read", ("goldoni.1",)),
    ]
    assert session.steps[0].tool_input == {"query": "griselda"}
    assert record.loops == 4
    assert record.tool_usage_summary == {"logical_search": 2, "chunk_read": 1}
    assert record.chunks_read_ids == ("goldoni.1",)
    assert record.chunks_read_count == 1
    assert record.total_retrieved_tokens == sum(step.retrieved_tokens for step in session.steps) > 0
    assert record.total_cost is None


def test_the_model_sees_prompt_question_calls_and_results_in_order(ask: Ask) -> None:
    session = ask(calls(call("logical_search", "a", query="venice"), text="First."), FINAL)
    first, second = session.requests
    assert [tool["function"]["name"] for tool in first.tools] == ["logical_search", "chunk_read"]
    assert first.question_id == "q1"
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool"]
    system, question, assistant, tool = second.messages
    assert "at most 15 turns of tool calls, up to 8 calls in each." in system.content
    assert question.content == QUESTION
    assert assistant == Message(
        "assistant", "First.", (call("logical_search", "a", query="venice"),)
    )
    assert tool == Message("tool", session.steps[0].tool_output, (), "a")
    assert session.steps[0].reasoning == "First."
    assert len(first.messages) == 2  # later steps do not change a request


def test_steps_are_reported_as_they_happen(index: Index, preset: Preset) -> None:
    reported: list[Step] = []
    model = ScriptedModel([search("griselda"), search("venice"), FINAL])
    record = Agent(index, preset, model).ask(QUESTION, on_step=reported.append)
    assert tuple(reported) == record.trajectory


def test_a_preset_without_tools_makes_one_request_without_tools(index: Index) -> None:
    model = ScriptedModel([ModelReply("Answer: Paris")])
    record = Agent(index, load_preset("direct_answer"), model).ask(QUESTION)
    assert (record.status, record.answer_short, record.citation) == ("answered", "Paris", "uncited")
    assert (record.loops, record.trajectory, model.requests[0].tools) == (1, (), ())
    assert "tool" not in model.requests[0].messages[0].content


def test_an_empty_question_is_rejected(index: Index, preset: Preset) -> None:
    with pytest.raises(ArgumentError) as caught:
        Agent(index, preset, ScriptedModel([])).ask("  ")
    assert str(caught.value) == "The question is empty.\nDo: Write a question."


def test_citing_a_passage_that_was_not_shown_is_marked_and_named(ask: Ask) -> None:
    record = ask(search("griselda"), FINAL).record
    assert (record.citation, record.wrong_ids) == ("wrong", ("goldoni.1",))


def test_an_id_without_a_passage_is_flagged_as_invented_and_is_no_citation(ask: Ask) -> None:
    final = ModelReply("Answer: Paris [nope.9]\nSources: griselda.1, venice.1")
    record = ask(search("griselda"), final).record
    assert (record.answer_short, record.cited_ids) == ("Paris", ("griselda.1", "venice.1"))
    assert (record.wrong_ids, record.invented_ids) == (("venice.1", "nope.9"), ("nope.9",))
    assert citation_warning(record) == (
        "Wrongly cited, never shown to the model: venice.1, nope.9.\n"
        "No passage has these ids: nope.9."
    )
    assert Record.from_json(json.loads(record.to_line())) == record


def test_an_engine_failure_after_the_answer_does_not_lose_the_answer(
    index: Index, preset: Preset
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        index.close()
        return ModelReply("Answer: Paris\nSources: goldoni.1")

    record = Agent(index, preset, ScriptedModel(script)).ask(QUESTION)
    assert (record.status, record.answer_short) == ("answered", "Paris")
    assert (record.wrong_ids, record.invented_ids) == (("goldoni.1",), ())


class WithoutExact(MemoryEngine):
    """An engine whose manifest omits keyword search."""

    @property
    def manifest(self) -> Manifest:
        return replace(super().manifest, without=("exact",))


def test_a_tool_that_the_index_cannot_serve_is_an_error_before_the_first_question() -> None:
    index = Index(WithoutExact(CHUNKS), "place")
    with pytest.raises(NotServedError) as caught:
        Agent(index, load_preset("arag_without_semantic"), ScriptedModel([]))
    assert str(caught.value) == (
        "The index does not serve keyword_search, which preset arag_without_semantic needs.\n"
        "Where: place\n"
        "Do: Build it again with exact, or use another preset."
    )


# Budgets and the forced answer


def test_after_max_loops_an_answer_without_tools_is_forced(ask: Ask) -> None:
    session = ask(search("griselda"), search("goldoni"), FINAL, max_loops=2)
    assert (session.record.status, session.record.answer_short) == ("forced", "Paris")
    assert session.record.loops == 2
    assert [request.may_call for request in session.requests] == [True, True, False]
    assert [len(request.tools) for request in session.requests] == [2, 2, 2]
    assert session.last[-1] == Message("user", prompt_text("forced_answer"))


def test_a_spent_token_budget_forces_the_answer(ask: Ask) -> None:
    forced = ask(search("griselda"), FINAL, token_budget=1)
    assert (forced.record.status, forced.steps) == ("forced", ())
    free = ask(search("griselda"), FINAL)
    history_tokens = sum(message_tokens(message) for message in free.last)
    exact = ask(search("griselda"), FINAL, token_budget=history_tokens)
    assert (len(exact.steps), exact.record.status) == (1, "forced")
    larger = ask(search("griselda"), search("venice"), FINAL, token_budget=history_tokens + 1)
    assert len(larger.steps) == 2
    assert larger.record.status == "forced"


def test_the_tokens_of_the_history_are_those_of_its_messages(index: Index, preset: Preset) -> None:
    token_counts: list[int] = []
    model = ScriptedModel(
        [search("griselda"), calls(ToolCall("", "?", "{")), read("goldoni.1"), FINAL]
    )
    agent = Agent(index, preset, model)
    state = agent.start(QUESTION)
    agent.resume(state, lambda step: token_counts.append(state.context_tokens))
    assert state.context_tokens == sum(map(message_tokens, state.messages))
    assert token_counts == [
        sum(map(message_tokens, request.messages)) for request in model.requests[1:]
    ]


def test_a_request_that_is_too_long_leads_to_an_answer_without_the_newest_result(ask: Ask) -> None:
    too_long = ContextLengthError("Too long.")
    session = ask(search("griselda"), search("venice"), too_long, FINAL)
    assert (session.record.status, session.record.answer_short) == ("forced", "Paris")
    results = [message.content for message in session.last if message.role == "tool"]
    assert results == [session.steps[0].tool_output, LEFT_OUT]
    assert not session.requests[-1].may_call


def test_older_results_are_left_out_while_a_request_is_too_long_and_then_the_question_fails(
    ask: Ask,
) -> None:
    too_long = ContextLengthError("Too long.")
    searches = [search(word) for word in ("griselda", "venice", "goldoni", "paris")]
    session = ask(*searches, too_long, too_long, FINAL)
    results = [message.content for message in session.last if message.role == "tool"]
    assert results == [LEFT_OUT, LEFT_OUT, session.steps[2].tool_output, LEFT_OUT]
    assert session.record.status == "forced"
    failed = ask(*searches, *[too_long] * 4)
    assert (failed.record.status, failed.record.failure) == (
        "failed",
        "ContextLengthError: Too long.",
    )
    assert [message.content for message in failed.last if message.role == "tool"] == [LEFT_OUT] * 4


def test_results_that_are_left_out_are_no_longer_counted(index: Index, preset: Preset) -> None:
    script = [search("griselda"), search("venice"), ContextLengthError("Too long."), FINAL]
    agent = Agent(index, preset, ScriptedModel(script))
    state = agent.start(QUESTION)
    agent.resume(state)
    assert state.context_tokens == sum(map(message_tokens, state.messages))


def test_calls_in_a_forced_answer_are_not_run(ask: Ask) -> None:
    session = ask(calls(call("logical_search", query="a"), text="Answer: Rome"), token_budget=1)
    assert (session.record.status, session.record.answer_short, session.steps) == (
        "forced",
        "Rome",
        (),
    )


# Failures


def test_an_empty_reply_is_asked_for_again_once(ask: Ask) -> None:
    session = ask(ModelReply(" "), FINAL)
    assert session.record.status == "answered"
    assert session.requests[0] == session.requests[1]
    failed = ask(search("griselda"), ModelReply(""), ModelReply(""), FINAL)
    assert failed.record.status == "failed"
    assert failed.record.failure == (
        "ModelReplyError: The model replied twice with neither text nor a tool call.\n"
        "Where: model scripted, turn 2\n"
        "Do: Try another model, or other settings of it."
    )
    assert (failed.record.answer, failed.record.citation) == ("", None)
    assert len(failed.steps) == 1


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (ModelReply("", reasoning="Hm."), "thoughts and no answer"),
        (
            ModelReply("[TOOL_CALLS]", is_unread=True),
            "a tool call that this server left in the text",
        ),
        (ModelReply("", cut="error"), "neither text nor a tool call; it ended with 'error'"),
    ],
)
def test_what_is_no_answer_is_asked_for_again_and_then_fails(
    ask: Ask, reply: ModelReply, what: str
) -> None:
    assert ask(reply, FINAL).record.status == "answered"
    failure = ask(reply, reply).record.failure or ""
    assert failure.startswith(f"ModelReplyError: The model replied twice with {what}.\n")


def test_a_call_where_only_an_answer_was_left_is_reported_as_one(ask: Ask) -> None:
    again = search("griselda")
    failure = ask(again, again, again, again, max_loops=2).record.failure or ""
    assert "replied twice with a tool call where only an answer was left." in failure


def test_an_ending_that_is_not_known_is_named(ask: Ask) -> None:
    record = ask(ModelReply("Answer: Vie", cut="insufficient_system_resource")).record
    assert record.status == "failed"
    assert "it ended with 'insufficient_system_resource'" in (record.failure or "")


def test_an_error_of_the_model_is_a_failed_record_with_its_cause(ask: Ask) -> None:
    session = ask(search("griselda"), ModelAccessError("The key was refused.", do="Set another."))
    assert session.record.status == "failed"
    assert session.record.failure == "ModelAccessError: The key was refused.\nDo: Set another."
    assert len(session.steps) == 1


def test_an_engine_that_fails_ends_the_question(index: Index, ask: Ask) -> None:
    index.close()
    record = ask(search("griselda"), FINAL).record
    assert record.status == "failed"
    assert record.failure is not None
    assert record.failure.startswith("IndexClosedError: ")


def test_a_bug_is_recorded_and_logged_with_its_trace(
    index: Index, preset: Preset, caplog: pytest.LogCaptureFixture
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        raise ZeroDivisionError("by zero")

    with caplog.at_level(logging.ERROR):
        record = Agent(index, preset, ScriptedModel(script)).ask(QUESTION, "q7")
    assert (record.status, record.failure) == ("failed", "ZeroDivisionError: by zero")
    assert caplog.messages == ["Question q7 failed."]
    assert "Traceback" in caplog.text


def test_an_error_raised_by_a_listener_is_no_failure_of_the_question(
    index: Index, preset: Preset
) -> None:
    def listen(step: Step) -> None:
        raise LookupError("not here")

    agent = Agent(index, preset, ScriptedModel([search("griselda"), FINAL]))
    with pytest.raises(LookupError, match="not here"):
        agent.ask(QUESTION, on_step=listen)


# Usage and state


def test_usage_is_what_the_endpoint_reports_retries_included(ask: Ask) -> None:
    def with_usage(reply: ModelReply, prompt: int) -> ModelReply:
        return ModelReply(reply.text, reply.tool_calls, "", Usage(prompt, 5, "endpoint"))

    session = ask(
        with_usage(search("venice"), 100), with_usage(ModelReply(""), 200), with_usage(FINAL, 300)
    )
    assert session.record.usage == Usage(600, 15, "endpoint")


def test_usage_that_is_not_reported_is_counted_and_marked(ask: Ask) -> None:
    session = ask(search("venice"), FINAL)
    first, second = (sum(map(message_tokens, request.messages)) for request in session.requests)
    usage = session.record.usage
    assert usage.source == "counted"
    assert usage.completion_tokens == sum(
        message_tokens(Message("assistant", reply.text, reply.tool_calls))
        for reply in (search("venice"), FINAL)
    )
    tools = usage.prompt_tokens - first - second
    assert tools > 400
    assert tools % 2 == 0
    mixed = ask(ModelReply("Answer: a", usage=Usage(1, 1, "endpoint"))).record.usage
    assert mixed.source == "endpoint"
    half = ask(calls(*search("a").tool_calls, usage=Usage(1, 1, "endpoint")), FINAL).record.usage
    assert half.source == "counted"


def test_a_state_saved_after_any_step_resumes_to_the_same_record(
    index: Index, preset: Preset
) -> None:
    script = [
        search("griselda"),
        search("griselda"),
        read("goldoni.1"),
        read("goldoni.1"),
        calls(ToolCall("x", "logical_search", "{")),
        FINAL,
    ]

    def next_reply(request: ModelRequest) -> ModelReply:
        return script[sum(message.role == "tool" for message in request.messages)]

    agent = Agent(index, preset, ScriptedModel(next_reply))
    saved_states: list[str] = []
    state = agent.start(QUESTION, "q1")
    expected = agent.resume(state, lambda step: saved_states.append(json.dumps(state.to_json())))
    assert len(saved_states) == 5
    for line in saved_states:
        other = Agent(index, preset, ScriptedModel(next_reply))
        record = other.resume(State.from_json(json.loads(line)))
        assert without_seconds(record) == without_seconds(expected)


def without_seconds(record: Record) -> dict[str, Any]:
    values = record.to_json()
    values.pop("seconds")
    for step in values["trajectory"]:
        step.pop("seconds")
    return values


def test_fingerprints_identify_preset_index_model_and_code(index: Index, preset: Preset) -> None:
    from arag_search.query.filters import parse_filter

    fingerprints = Agent(index, preset, ScriptedModel([])).fingerprints
    assert list(fingerprints) == ["preset", "index", "model", "code"]
    scope = scoped(parse_filter("doc_id:venice", index.manifest.query_schema))
    narrowed = Agent(Index(index.engine, "memory", scope), preset, ScriptedModel([])).fingerprints
    assert narrowed == {**fingerprints, "index": f"{fingerprints['index']} in doc_id:venice"}


@pytest.mark.usefixtures("own_cache")
def test_a_record_depends_on_the_index_and_not_on_how_it_stands_beside_its_files(ask: Ask) -> None:
    script = (search("vivaldi"), search("nowhere"), read("goldoni.1"), FINAL)
    before = ask(*script)
    note("memory")
    after = ask(*script)
    assert [step.tool_output for step in after.steps] == [s.tool_output for s in before.steps]
    assert after.last == before.last

"""The agent loop, with models whose replies are written beforehand, over an index in memory."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from arag_search.agent.loop import LEFT_OUT, Agent
from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.presets import Preset, load_preset
from arag_search.agent.prompts import prompt_text
from arag_search.agent.record import Record, Step
from arag_search.agent.state import State, message_tokens
from arag_search.agent.wording import citation_warning
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.errors import (
    ArgumentError,
    ContextLengthError,
    ModelAccessError,
    NotServedError,
)
from arag_search.manifest import Manifest
from arag_search.search.index import Index
from tests.support.asking import CHUNKS, FINAL, QUESTION, Ask, call, calls, read, search

# One question


def test_a_question_is_answered_step_by_step_with_its_evidence(ask: Ask) -> None:
    asked = ask(search("griselda"), search("goldoni AND died"), read("goldoni.1"), FINAL)
    record = asked.record
    assert (record.question_id, record.question, record.status) == ("q1", QUESTION, "answered")
    assert (record.answer_short, record.explanation) == ("Paris", "He died there.")
    assert (record.cited_ids, record.citation, record.failure) == (("goldoni.1",), "cited", None)
    assert record.answer == FINAL.text
    assert [(one.step, one.tool_name, one.hit_ids) for one in asked.steps] == [
        (1, "logical_search", ("griselda.1",)),
        (2, "logical_search", ("goldoni.1",)),
        (3, "chunk_read", ("goldoni.1",)),
    ]
    assert asked.steps[0].tool_input == {"query": "griselda"}
    assert record.loops == 4
    assert record.tool_usage_summary == {"logical_search": 2, "chunk_read": 1}
    assert record.chunks_read_ids == ("goldoni.1",)
    assert record.chunks_read_count == 1
    assert record.total_retrieved_tokens == sum(one.retrieved_tokens for one in asked.steps) > 0
    assert record.total_cost is None


def test_the_model_sees_prompt_question_calls_and_results_in_order(ask: Ask) -> None:
    asked = ask(calls(call("logical_search", "a", query="venice"), text="First."), FINAL)
    first, second = asked.requests
    assert [one["function"]["name"] for one in first.tools] == ["logical_search", "chunk_read"]
    assert first.question_id == "q1"
    assert [one.role for one in second.messages] == ["system", "user", "assistant", "tool"]
    system, question, assistant, tool = second.messages
    assert "You may make at most 15 tool calls." in system.content
    assert question.content == QUESTION
    assert assistant == Message(
        "assistant", "First.", (call("logical_search", "a", query="venice"),)
    )
    assert tool == Message("tool", asked.steps[0].tool_output, (), "a")
    assert asked.steps[0].reasoning == "First."
    assert len(first.messages) == 2  # a request is not changed by what comes later


def test_steps_are_told_as_they_are_made(index: Index, preset: Preset) -> None:
    told: list[Step] = []
    model = ScriptedModel([search("griselda"), search("venice"), FINAL])
    record = Agent(index, preset, model).ask(QUESTION, on_step=told.append)
    assert tuple(told) == record.trajectory


def test_a_preset_without_tools_asks_once_and_offers_none(index: Index) -> None:
    model = ScriptedModel([ModelReply("Answer: Paris")])
    record = Agent(index, load_preset("direct_answer"), model).ask(QUESTION)
    assert (record.status, record.answer_short, record.citation) == ("answered", "Paris", "uncited")
    assert (record.loops, record.trajectory, model.requests[0].tools) == (1, (), ())
    assert "tool" not in model.requests[0].messages[0].content


def test_an_empty_question_is_refused(index: Index, preset: Preset) -> None:
    with pytest.raises(ArgumentError) as caught:
        Agent(index, preset, ScriptedModel([])).ask("  ")
    assert str(caught.value) == "The question is empty.\nDo: Write a question."


def test_citing_what_was_not_shown_is_marked_and_named(ask: Ask) -> None:
    record = ask(search("griselda"), FINAL).record
    assert (record.citation, record.wrong_ids) == ("wrong", ("goldoni.1",))


def test_an_id_that_no_passage_has_is_invented_and_no_citation(ask: Ask) -> None:
    final = ModelReply("Answer: Paris [nope.9]\nSources: griselda.1, venice.1")
    record = ask(search("griselda"), final).record
    assert (record.answer_short, record.cited_ids) == ("Paris", ("griselda.1", "venice.1"))
    assert (record.wrong_ids, record.invented_ids) == (("venice.1", "nope.9"), ("nope.9",))
    assert citation_warning(record) == (
        "Wrongly cited, never shown to the model: venice.1, nope.9.\n"
        "No passage has these ids: nope.9."
    )
    assert Record.from_json(json.loads(record.to_line())) == record


def test_an_engine_that_fails_once_the_answer_is_there_loses_no_answer(
    index: Index, preset: Preset
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        index.close()
        return ModelReply("Answer: Paris\nSources: goldoni.1")

    record = Agent(index, preset, ScriptedModel(script)).ask(QUESTION)
    assert (record.status, record.answer_short) == ("answered", "Paris")
    assert (record.wrong_ids, record.invented_ids) == (("goldoni.1",), ())


class WithoutExact(MemoryEngine):
    """An engine whose manifest says that keyword search was left out."""

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
        "Do: Build it again without --without exact, or take another preset."
    )


# Budgets and the forced answer


def test_after_max_loops_an_answer_without_tools_is_forced(ask: Ask) -> None:
    asked = ask(search("griselda"), search("goldoni"), FINAL, max_loops=2)
    assert (asked.record.status, asked.record.answer_short) == ("forced", "Paris")
    assert asked.record.loops == 2
    assert [len(one.tools) for one in asked.requests] == [2, 2, 0]
    assert asked.last[-1] == Message("user", prompt_text("forced_answer"))


def test_a_spent_token_budget_forces_the_answer(ask: Ask) -> None:
    asked = ask(search("griselda"), FINAL, token_budget=1)
    assert (asked.record.status, asked.steps) == ("forced", ())
    spent = ask(search("griselda"), FINAL)
    whole = sum(message_tokens(one) for one in spent.last)
    exact = ask(search("griselda"), FINAL, token_budget=whole)
    assert (len(exact.steps), exact.record.status) == (1, "forced")
    after = ask(search("griselda"), search("venice"), FINAL, token_budget=whole + 1)
    assert len(after.steps) == 2
    assert after.record.status == "forced"


def test_the_tokens_of_the_history_are_those_of_its_messages(index: Index, preset: Preset) -> None:
    states: list[int] = []
    model = ScriptedModel(
        [search("griselda"), calls(ToolCall("", "?", "{")), read("goldoni.1"), FINAL]
    )
    agent = Agent(index, preset, model)
    state = agent.start(QUESTION)
    agent.resume(state, lambda step: states.append(state.context_tokens))
    assert state.context_tokens == sum(message_tokens(one) for one in state.messages)
    assert states == [sum(map(message_tokens, one.messages)) for one in model.requests[1:]]


def test_a_request_that_is_too_long_leads_to_an_answer_without_the_newest_result(ask: Ask) -> None:
    too_long = ContextLengthError("Too long.")
    asked = ask(search("griselda"), search("venice"), too_long, FINAL)
    assert (asked.record.status, asked.record.answer_short) == ("forced", "Paris")
    shown = [one.content for one in asked.last if one.role == "tool"]
    assert shown == [asked.steps[0].tool_output, LEFT_OUT]
    assert asked.requests[-1].tools == ()


def test_where_even_that_is_too_long_older_results_go_and_then_it_fails(ask: Ask) -> None:
    too_long = ContextLengthError("Too long.")
    searches = [search(word) for word in ("griselda", "venice", "goldoni", "paris")]
    asked = ask(*searches, too_long, too_long, FINAL)
    kept = [one.content for one in asked.last if one.role == "tool"]
    assert kept == [LEFT_OUT, LEFT_OUT, asked.steps[2].tool_output, LEFT_OUT]
    assert asked.record.status == "forced"
    failed = ask(*searches, *[too_long] * 4)
    assert (failed.record.status, failed.record.failure) == (
        "failed",
        "ContextLengthError: Too long.",
    )
    assert [one.content for one in failed.last if one.role == "tool"] == [LEFT_OUT] * 4


def test_what_is_left_out_is_not_counted_any_more(index: Index, preset: Preset) -> None:
    script = [search("griselda"), search("venice"), ContextLengthError("Too long."), FINAL]
    agent = Agent(index, preset, ScriptedModel(script))
    state = agent.start(QUESTION)
    agent.resume(state)
    assert state.context_tokens == sum(map(message_tokens, state.messages))


def test_calls_in_a_forced_answer_are_not_run(ask: Ask) -> None:
    asked = ask(calls(call("logical_search", query="a"), text="Answer: Rome"), token_budget=1)
    assert (asked.record.status, asked.record.answer_short, asked.steps) == ("forced", "Rome", ())


# What ends a question


def test_an_empty_reply_is_asked_for_again_once(ask: Ask) -> None:
    asked = ask(ModelReply(" "), FINAL)
    assert asked.record.status == "answered"
    assert asked.requests[0] == asked.requests[1]
    failed = ask(search("griselda"), ModelReply(""), ModelReply("", reasoning="Hm."), FINAL)
    assert failed.record.status == "failed"
    assert failed.record.failure == (
        "ModelReplyError: The model replied twice with neither text nor a tool call.\n"
        "Where: model scripted, turn 2\n"
        "Do: Try another model, or other settings of it."
    )
    assert (failed.record.answer, failed.record.citation) == ("", None)
    assert len(failed.steps) == 1


def test_an_error_of_the_model_is_a_failed_record_with_its_cause(ask: Ask) -> None:
    asked = ask(search("griselda"), ModelAccessError("The key was refused.", do="Set another."))
    assert asked.record.status == "failed"
    assert asked.record.failure == "ModelAccessError: The key was refused.\nDo: Set another."
    assert len(asked.steps) == 1


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


def test_what_a_listener_raises_is_no_failure_of_the_question(index: Index, preset: Preset) -> None:
    def listen(step: Step) -> None:
        raise LookupError("not here")

    agent = Agent(index, preset, ScriptedModel([search("griselda"), FINAL]))
    with pytest.raises(LookupError, match="not here"):
        agent.ask(QUESTION, on_step=listen)


# Usage and state


def test_usage_is_what_the_endpoint_reports_retries_included(ask: Ask) -> None:
    def used(reply: ModelReply, prompt: int) -> ModelReply:
        return ModelReply(reply.text, reply.tool_calls, "", Usage(prompt, 5, "endpoint"))

    asked = ask(used(search("venice"), 100), used(ModelReply(""), 200), used(FINAL, 300))
    assert asked.record.usage == Usage(600, 15, "endpoint")


def test_usage_that_is_not_reported_is_counted_and_marked(ask: Ask) -> None:
    asked = ask(search("venice"), FINAL)
    first, second = (sum(map(message_tokens, one.messages)) for one in asked.requests)
    usage = asked.record.usage
    assert usage.source == "counted"
    assert usage.completion_tokens == sum(
        message_tokens(Message("assistant", one.text, one.tool_calls))
        for one in (search("venice"), FINAL)
    )
    tools = usage.prompt_tokens - first - second
    assert tools > 1000
    assert tools % 2 == 0
    mixed = ask(ModelReply("Answer: a", usage=Usage(1, 1, "endpoint"))).record.usage
    assert mixed.source == "endpoint"
    half = ask(calls(*search("a").tool_calls, usage=Usage(1, 1, "endpoint")), FINAL).record.usage
    assert half.source == "counted"


def test_a_state_written_out_after_any_step_goes_on_to_the_same_record(
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

    def replies(request: ModelRequest) -> ModelReply:
        return script[sum(one.role == "tool" for one in request.messages)]

    agent = Agent(index, preset, ScriptedModel(replies))
    saved: list[str] = []
    state = agent.start(QUESTION, "q1")
    whole = agent.resume(state, lambda step: saved.append(json.dumps(state.to_json())))
    assert len(saved) == 5
    for text in saved:
        other = Agent(index, preset, ScriptedModel(replies))
        record = other.resume(State.from_json(json.loads(text)))
        assert without_seconds(record) == without_seconds(whole)


def without_seconds(record: Record) -> dict[str, Any]:
    plain = record.to_json()
    plain.pop("seconds")
    for step in plain["trajectory"]:
        step.pop("seconds")
    return plain


def test_fingerprints_tell_preset_index_model_and_code(index: Index, preset: Preset) -> None:
    from arag_search.query.parser import parse_scope

    whole = Agent(index, preset, ScriptedModel([])).fingerprints
    assert list(whole) == ["preset", "index", "model", "code"]
    scope = parse_scope("doc_id:venice", index.manifest.query_schema)
    part = Agent(Index(index.engine, "memory", scope), preset, ScriptedModel([])).fingerprints
    assert part == {**whole, "index": f"{whole['index']} in doc_id:venice"}

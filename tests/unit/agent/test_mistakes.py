"""Mistakes of a model, and the loop's answers to them: bad calls, repeated calls, plans."""

from __future__ import annotations

import json

import pytest

from arag_search.agent.loop import ONE_A_STEP, Agent
from arag_search.agent.models.base import Message, ModelReply, ToolCall
from arag_search.agent.prompts import prompt_text
from arag_search.agent.record import Record
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.preset_files import load_preset
from arag_search.tools.replies.parts import CALLS_LEFT, read_spans
from arag_search.tools.toolbox import NOTHING_NEW
from tests.support.asking import FINAL, QUESTION, Ask, call, calls, read, search
from tests.support.scripted_model import ScriptedModel

# Bad calls


def test_of_several_calls_the_first_is_run_and_the_others_are_answered(ask: Ask) -> None:
    reply = calls(
        call("logical_search", "a", query="venice"),
        call("chunk_read", "b", chunk_ids=["venice.1"]),
        ToolCall("d", "logical_search", "{broken"),
    )
    session = ask(reply, FINAL, reproduces="LogicalRAG")
    assert len(session.steps) == 1
    assert session.last[2].tool_calls == (
        *reply.tool_calls[:2],
        ToolCall("d", "logical_search", "{}"),
    )
    assert [(message.tool_call_id, message.content) for message in session.last[3:]] == [
        ("a", session.steps[0].tool_output),
        ("b", ONE_A_STEP),
        ("d", "One tool a step: this call was not run."),
    ]


def test_broken_json_is_answered_as_an_error_and_counts_as_a_step(ask: Ask) -> None:
    session = ask(calls(ToolCall("a", "logical_search", '{"query": "venice"')), FINAL)
    (step,) = session.steps
    assert (step.status, step.tool_input) == ("error", '{"query": "venice"')
    assert step.tool_output == (
        "Tool not run: the arguments are not valid JSON (unexpected end of data at character 19):"
        ' {"query": "venice"\n'
        "Allowed: one JSON object with the arguments of the tool."
    )
    assert session.last[2].tool_calls[0].arguments == "{}"
    assert session.record.loops == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"query": NaN}', "unexpected character, expected a JSON value at character 11"),
        ('{"top_k": 1e999}', "number is infinity when parsed as double at character 11"),
        *(
            (f'{{"query": {"[" * levels}{"]" * levels}}}', "nested too deeply")
            for levels in (51, 497, 990)
        ),
        (f'{{"query": {"[" * 100_000}', "depth limit exceeded at character 1035"),
        ('{"query": "\\ud800"}', "no low surrogate in string at character 12"),
        ("vivaldi", "unexpected character, expected a JSON value at character 1"),
    ],
)
def test_arguments_that_are_not_strict_json_are_rejected(
    ask: Ask, arguments: str, problem: str
) -> None:
    (step,) = ask(calls(ToolCall("a", "logical_search", arguments)), FINAL).steps
    assert (step.status, step.tool_input) == ("error", arguments)
    assert step.tool_output.startswith(
        f"Tool not run: the arguments are not valid JSON ({problem}): "
    )
    assert step.result_tokens < 200


def test_an_unknown_tool_is_answered_with_the_names_of_the_tools(ask: Ask) -> None:
    (step,) = ask(calls(call("google", query="venice")), FINAL).steps
    assert (step.status, step.tool_name, step.tool_input) == (
        "error",
        "google",
        {"query": "venice"},
    )
    assert step.tool_output == (
        'Tool not run: there is no tool "google". Tools: logical_search, chunk_read.'
    )


def test_no_arguments_at_all_are_an_empty_object(ask: Ask) -> None:
    (step,) = ask(calls(ToolCall("a", "logical_search", "")), FINAL).steps
    assert step.tool_input == {}
    assert step.tool_output.startswith('Tool not run: 1 problem.\n1. argument "query" is missing.')


def test_numbers_beyond_64_bits_are_recorded_as_other_programs_read_them(ask: Ask) -> None:
    arguments = f'{{"query": "a", "top_k": {"9" * 31}}}'
    record = ask(calls(ToolCall("a", "logical_search", arguments)), FINAL).record
    assert record.trajectory[0].tool_input == {"query": "a", "top_k": 1e31}
    assert record.trajectory[0].status == "error"
    assert Record.from_json(json.loads(record.to_line())) == record


def test_lone_surrogates_in_a_reply_are_replaced(ask: Ask) -> None:
    assert ask(ModelReply("Answer: \ud800 Paris")).record.answer == "Answer: ? Paris"


def test_calls_without_ids_or_with_duplicate_ids_get_new_ids(ask: Ask) -> None:
    unnumbered = [call("logical_search", id, query="a") for id in ("", "x", "x")]
    session = ask(calls(*unnumbered), FINAL)
    assert [answered.id for answered in session.last[2].tool_calls] == ["call_1_1", "x", "call_1_3"]
    assert [message.tool_call_id for message in session.last[3:]] == ["call_1_1", "x", "call_1_3"]


# Guards


def test_an_identical_call_is_answered_with_its_earlier_ids(ask: Ask) -> None:
    first = calls(ToolCall("a", "logical_search", '{"query": "venice", "top_k": 2}'))
    repeated = calls(ToolCall("b", "logical_search", '{"top_k": 2, "query":  "venice"}'))
    _, step = ask(first, repeated, FINAL).steps
    assert step.tool_output == (
        "This call was made before, in step 1, and showed [venice.1], [goldoni.1]. It was not run "
        "again: change it, try another way, or answer from what you have."
    )
    assert (step.status, step.hit_ids, step.total_hits) == ("ok", ("venice.1", "goldoni.1"), 2)
    assert step.retrieved_tokens == 0


@pytest.mark.parametrize(
    ("query", "words"), [("nowhere", "and found nothing"), ("a OR NOT b", "and was refused")]
)
def test_a_repeated_call_reports_its_earlier_result(ask: Ask, query: str, words: str) -> None:
    _, step = ask(search(query), search(query), FINAL).steps
    assert f"in step 1, {words}. It was not run again" in step.tool_output


def test_a_repeated_read_has_its_own_notice(ask: Ask) -> None:
    _, step = ask(read("venice.1"), read("venice.1"), FINAL).steps
    assert step.tool_output == "[venice.1] Venice (shown before)"


def test_three_steps_with_nothing_new_get_a_nudge(ask: Ask) -> None:
    session = ask(
        search("venice"),
        read("venice.1"),  # its text is new
        *(search(word) for word in ("venice AND water", "none", "city", "nothing", "griselda")),
        FINAL,
    )
    nudged = [step.step for step in session.steps if step.tool_output.endswith(f"\n{NOTHING_NEW}")]
    assert nudged == [5]
    assert session.last[-3].content != session.last[-1].content


def test_the_last_results_say_how_many_calls_are_left(ask: Ask) -> None:
    script = [search(word) for word in ("venice", "opera", "goldoni", "griselda", "water")]
    steps = ask(*script, FINAL, max_loops=5).steps
    left = [step.tool_output.rpartition("\n")[2].removeprefix(CALLS_LEFT) for step in steps]
    assert [number for number in left if number[0].isdigit()] == ["3.", "2.", "1."]
    for step in steps:
        assert count_tokens(step.tool_output) == step.result_tokens
        assert [span.end for span in read_spans(step.tool_output)] == [
            span.end for span in step.passages
        ]


def test_without_guards_calls_are_run_again_without_a_notice(ask: Ask) -> None:
    steps = ask(*[search("venice")] * 5, FINAL, loop_guards=False).steps
    assert len({step.tool_output for step in steps[1:]}) == 1
    assert steps[1].tool_output != steps[0].tool_output, "what is visible is not shown again"


# Plans


def test_a_plan_alone_is_answered_and_costs_no_turn(index: Index) -> None:
    model = ScriptedModel([ModelReply("1. Find the librettist."), search("griselda"), FINAL])
    record = Agent(index, load_preset("logicalrag"), model).ask(QUESTION)
    assert (record.status, record.loops, len(record.trajectory)) == ("answered", 2, 1)
    system, _, plan, accepted = model.requests[1].messages
    assert prompt_text("plan") in system.content
    assert plan == Message("assistant", "1. Find the librettist.")
    assert accepted == Message("user", prompt_text("plan_accepted"))


def test_an_answer_in_place_of_a_plan_is_an_answer_and_so_is_a_second_plan(index: Index) -> None:
    agent = Agent(index, load_preset("logicalrag"), ScriptedModel([ModelReply("Answer: Paris")]))
    assert agent.ask(QUESTION).answer_short == "Paris"
    model = ScriptedModel([ModelReply("A plan."), ModelReply("It is Paris.")])
    record = Agent(index, load_preset("logicalrag"), model).ask(QUESTION)
    assert (record.status, record.answer_short) == ("answered", "It is Paris.")


def test_a_plan_is_accepted_only_if_the_preset_asks_for_one(ask: Ask) -> None:
    assert ask(ModelReply("Paris")).record.answer_short == "Paris"

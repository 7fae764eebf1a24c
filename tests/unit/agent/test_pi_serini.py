"""Whole runs of the preset pi_serini: one ranking read deeper, lines, and the steer."""

from __future__ import annotations

import pytest

from arag_search.agent.calls import STEERED
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ToolCall
from arag_search.agent.presets import changed_preset, load_preset
from arag_search.agent.prompts import prompt_text
from arag_search.agent.record import Record
from arag_search.agent.state import State
from arag_search.search.index import Index
from tests.support.asking import call, calls
from tests.support.long_documents import index_of_documents, long_document, report
from tests.support.scripted_model import ScriptedModel

FINAL = ModelReply(
    "Answer: Ohio\nExplanation: It says so [turn0search7].\nSources: [turn0search7] 1"
)
MODELS = 40


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of_documents(
        *(
            long_document(number, f"d{number}", f"Company {number}", report(f"Company{number}", 60))
            for number in range(MODELS)
        )
    )


def search(query: str) -> ToolCall:
    return call("search", reason="the company", query=query)


def read_on(search_id: str, **ranks: int) -> ToolCall:
    return call("read_search_results", reason="deeper", search_id=search_id, **ranks)


def read(docid: str, **lines: int) -> ToolCall:
    return call("read_document", reason="its lines", docid=docid, **lines)


def ask(index: Index, *script: ModelReply, **changes: object) -> tuple[Record, ScriptedModel]:
    model = ScriptedModel(script)
    preset = changed_preset(load_preset("pi_serini"), changes, "test")
    return Agent(index, preset, model).ask("Where is it?", "q1"), model


def documents(record: Record, step: int) -> list[str]:
    return [shown.doc_id for shown in record.trajectory[step].references]


def test_a_ranking_is_read_deeper_though_other_searches_came_between(index: Index) -> None:
    record, _ = ask(
        index,
        calls(search("report says")),
        calls(search("company3")),
        calls(read_on("s1")),
        calls(read_on("s1", offset=16, limit=25)),
        calls(read_on("s1", offset=1, limit=40)),
        FINAL,
    )
    first, _, second, third, all_of_it = (documents(record, step) for step in range(5))
    assert (len(first), len(second), len(third)) == (5, 10, 25)
    assert first + second + third == all_of_it
    assert len(set(all_of_it)) == MODELS
    outputs = [step.tool_output for step in record.trajectory]
    assert "search_id s1, ranks 1 to 5; more: read_search_results with offset 6." in outputs[0]
    assert "search_id s1, ranks 6 to 15; more:" in outputs[2]
    assert record.status == "answered"


def test_an_unknown_ranking_is_answered_with_the_known_ones(index: Index) -> None:
    record, _ = ask(
        index, calls(read_on("s1")), calls(search("report")), calls(read_on("s2")), FINAL
    )
    outputs = [step.tool_output for step in record.trajectory]
    assert outputs[0] == "Tool not run: there is no search_id s1. Search first."
    assert outputs[2] == "Tool not run: there is no search_id s2. Known: s1."


def test_a_document_is_read_by_as_many_lines_as_asked_for(index: Index) -> None:
    record, _ = ask(
        index,
        calls(search("company7")),
        calls(read("turn0search0", offset=10, limit=3)),
        calls(read("turn0search0", offset=70)),
        FINAL,
    )
    lines = record.trajectory[1].tool_output.splitlines()
    assert lines[1] == "Viewing lines [10-12] of 60 lines. More: offset 13."
    assert [line.partition(":")[0] for line in lines[2:]] == ["10", "11", "12"]
    assert "offset is 70" in record.trajectory[2].tool_output


def test_at_seventy_percent_of_the_turns_the_model_is_told_to_answer(index: Index) -> None:
    script = [calls(search(f"company{number}")) for number in range(8)]
    record, model = ask(index, *script, FINAL, max_loops=10)
    steer = prompt_text("steer")
    messages = [any(m.content == steer for m in request.messages) for request in model.requests]
    assert messages == [False] * 7 + [True] * 2
    outputs = [step.tool_output for step in record.trajectory]
    assert outputs[7].startswith(STEERED)
    assert not any(output.startswith(STEERED) for output in outputs[:7])
    assert record.status == "answered"


@pytest.mark.parametrize(("seconds", "steered"), [(200, False), (211, True)])
def test_at_seventy_percent_of_the_time_the_model_is_told_to_answer(
    index: Index, seconds: float, steered: bool
) -> None:
    model = ScriptedModel([FINAL])
    agent = Agent(index, load_preset("pi_serini"), model)
    state = agent.start("Where is it?")
    state.seconds = seconds
    resumed = State.from_json(state.to_json())
    assert agent.resume(resumed).status == "answered"
    assert (model.requests[0].messages[-1].content == prompt_text("steer")) is steered


def test_after_its_time_the_answer_is_forced(index: Index) -> None:
    model = ScriptedModel([FINAL])
    agent = Agent(index, load_preset("pi_serini"), model)
    state = agent.start("Where is it?")
    state.seconds = 301
    assert agent.resume(state).status == "forced"

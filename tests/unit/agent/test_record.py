"""The record of one question: written as a line and read again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.models.base import Message, ToolCall
from arag_search.agent.models.usage import RequestTokens, Usage
from arag_search.agent.record import Record, Step
from arag_search.agent.state import State
from arag_search.errors import RunError

STEP = Step(1, "logical_search", {"query": "a"}, "1 of 1", "Why.", "ok", ("a.1",), 1, 3, 9, 0.5)
RECORD = Record(
    question_id="q1",
    question="Where?",
    answer="Answer: Paris",
    answer_short="Paris",
    explanation="",
    cited_ids=("a.1",),
    wrong_ids=(),
    citation="cited",
    status="answered",
    failure=None,
    trajectory=(STEP, replace(STEP, step=2, total_hits=None, tool_input="{broken")),
    total_cost=None,
    loops=3,
    tool_usage_summary={"logical_search": 2},
    total_retrieved_tokens=6,
    chunks_read_count=0,
    chunks_read_ids=(),
    usage=Usage(100, 10, "counted"),
    seconds=1.5,
    fingerprints={"preset": "p", "index": "i", "model": "m", "code": "c"},
)


def test_a_record_has_the_fields_of_arag_and_our_own() -> None:
    fields = RECORD.to_json()
    arag = {
        "question_id", "question", "answer", "trajectory", "total_cost", "loops",
        "tool_usage_summary", "total_retrieved_tokens", "chunks_read_count", "chunks_read_ids",
    }  # fmt: skip
    ours = {
        "answer_short", "explanation", "cited_ids", "wrong_ids", "citation", "status", "failure",
        "usage", "seconds", "fingerprints", "invented_ids", "citations", "context", "route",
        "reused", "memory_state", "requests", "usage_warning",
        "answer_from_turn", "answer_form_read", "other_models", "reply_forms",
    }  # fmt: skip
    assert set(fields) == arag | ours
    assert fields["trajectory"][0] == {
        "step": 1, "tool_name": "logical_search", "tool_input": {"query": "a"},
        "tool_output": "1 of 1", "reasoning": "Why.", "status": "ok", "hit_ids": ["a.1"],
        "total_hits": 1, "retrieved_tokens": 3, "result_tokens": 9, "seconds": 0.5,
        "passages": [], "total_is_exact": True, "turn": None, "references": [],
        "from_text": False,
    }  # fmt: skip
    assert fields["usage"] == {
        "prompt_tokens": 100, "completion_tokens": 10, "source": "counted", "cached_tokens": 0,
        "reasoning_tokens": 0,
    }  # fmt: skip


def test_a_record_is_one_line_and_is_read_back_whole() -> None:
    record = replace(RECORD, answer="Two\nlines \u2028 and é", total_cost=0.25)
    line = record.to_line()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert Record.from_json(json.loads(line)) == record


def record_with(**changes: Any) -> dict[str, Any]:
    return {**RECORD.to_json(), **changes}


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (record_with(status="done", loops="many"), "loops, status"),
        (record_with(trajectory=[{"step": 1}]), "trajectory.0.hit_ids, trajectory.0.reasoning"),
        ({key: field for key, field in record_with().items() if key != "usage"}, "usage"),
        ([], "record"),
    ],
)
def test_a_value_that_is_no_record_is_rejected_with_its_wrong_fields(
    value: object, fields: str
) -> None:
    with pytest.raises(RunError) as caught:
        Record.from_json(value)
    assert str(caught.value).startswith(f"A record cannot be read: {fields}")
    assert str(caught.value).endswith(
        "\nAllowed: records as this version of arag-search writes them"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(JSON, st.text())
def test_any_call_and_result_are_read_back_unchanged(arguments: Any, text: str) -> None:
    step = replace(STEP, tool_input=arguments, tool_output=text, reasoning=text)
    record = replace(RECORD, trajectory=(step,), question=text)
    assert Record.from_json(json.loads(record.to_line())) == record


def test_a_state_is_plain_json_and_is_read_back_whole() -> None:
    state = State("q1", "Where?")
    state.add(Message("system", "Search."))
    state.add(Message("assistant", "", (ToolCall("c1", "chunk_read", "{}"),)))
    state.add(Message("tool", "text", (), "c1"), 1)
    state.steps.append(STEP)
    state.read_set.note("a.1", {2})
    state.read_set.ids.update(("a.1", "b.1"))
    state.read_set.calls["key"] = ("Made before.", "ok", ("a.1",), 1, True)
    state.spend(Usage(9, 5, "endpoint", 7, 3), 8)
    state.spend(Usage(9, 5, "endpoint", 7, 3), 8)
    assert state.usage == Usage(18, 10, "endpoint", 14, 6)
    state.spend(Usage(1, 2, "counted"), 1)
    assert state.usage == Usage(19, 12, "counted", 14, 6)
    assert state.requests == [RequestTokens(8, 9)] * 2
    state.begin("q2", "When?")
    assert (state.requests, state.most_reported) == ([], 9)
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state

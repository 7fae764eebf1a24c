"""The loop with tools of documents: several calls a turn, the context, citations, conversations."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from arag_search.agent import context
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.agent.record import Record, Step
from arag_search.agent.state import State
from arag_search.errors import ArgumentError
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.documents.open import OpenLines
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import changed_preset, load_preset
from tests.support.asking import call, calls
from tests.support.long_documents import index_of_documents, long_document, report
from tests.support.scripted_model import ScriptedModel

QUESTION = "How much did 3M spend on property?"
FINAL = ModelReply(
    "Answer: 1,577\nExplanation: It is the sum for property [turn0search0].\n"
    "Sources: [turn0search1] 0.2, [turn0search0] 0.95"
)
LONG = report("3M", 900, {20: "Purchases of property (1,577)"})
FORD = report("Ford", 900, {3: "Ford has property in Ohio."})


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of_documents(
        long_document(0, "3m", "3M annual report", LONG),
        long_document(1, "ford", "Ford annual report", FORD),
    )


def agentic(name: str = "agentic_rag", **changes: object) -> Preset:
    return changed_preset(load_preset(name), changes, "test")


def search(*queries: str, id: str = "s") -> ToolCall:
    return call("search", id, queries=list(queries))


def open_at(line: int, reference: str = "turn0search0", id: str = "o") -> ToolCall:
    return call("open", id, reference_id=reference, line_number=line + 1)


def summarize(*kept: str, summary: str = "Known so far.", id: str = "z") -> ToolCall:
    return call("summarize", id, summary=summary, candidate_reference_ids=list(kept))


def ask(
    index: Index, preset: Preset, *script: ModelReply | Exception
) -> tuple[Record, ScriptedModel]:
    model = ScriptedModel(script)
    record = Agent(index, preset, model).ask(QUESTION, "q1")
    for request in model.requests:
        check_request(request)
    return record, model


def check_request(request: ModelRequest) -> None:
    """Check that every call in the messages has one result, in the order of the calls, before
    anything else is said; ids are unique among the calls that wait."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        waiting = [made.id for made in message.tool_calls]
        assert len(set(waiting)) == len(waiting)
        for made in message.tool_calls:
            assert isinstance(json.loads(made.arguments), dict)
    assert not waiting


# Calls


def test_every_call_of_a_reply_is_run_in_its_order(index: Index) -> None:
    record, model = ask(
        index,
        agentic(),
        calls(search("property", id="a"), search("ohio", id="b"), text="Two things."),
        calls(open_at(18)),
        FINAL,
    )
    assert [(step.step, step.turn, step.tool_name) for step in record.trajectory] == [
        (1, 1, "search"),
        (2, 1, "search"),
        (3, 2, "open"),
    ]
    assert [step.reasoning for step in record.trajectory] == ["Two things.", "", ""]
    assert record.loops == 3
    assert record.tool_usage_summary == {"search": 2, "open": 1}
    assert model.requests[0].parallel_calls
    assert record.chunks_read_count > 0


def test_a_turn_has_at_most_as_many_calls_as_the_preset_allows(index: Index) -> None:
    many = [search("property", id=f"c{number}") for number in range(10)]
    record, model = ask(index, agentic(), calls(*many), FINAL)
    assert len(record.trajectory) == 8
    assert [message.content for message in model.requests[1].messages[-2:]] == [
        "At most 8 tool calls a turn: this call was not run."
    ] * 2
    record, model = ask(index, agentic(reproduces="LogicalRAG"), calls(*many[:2]), FINAL)
    assert len(record.trajectory) == 1
    assert model.requests[1].messages[-1].content == "One tool a step: this call was not run."
    assert not model.requests[0].parallel_calls


def test_after_fifteen_turns_the_answer_is_forced(index: Index) -> None:
    script = [calls(search(f"property {number}")) for number in range(15)]
    record, model = ask(index, agentic(), *script, FINAL)
    assert (record.status, record.loops, len(record.trajectory)) == ("forced", 15, 15)
    assert not model.requests[-1].may_call


# Answers


def test_an_answer_cites_documents_with_scores(index: Index) -> None:
    record, _ = ask(index, agentic(), calls(search("property")), FINAL)
    assert record.answer_short == "1,577"
    assert record.cited_ids == ("turn0search1", "turn0search0")
    assert [(cited.reference, cited.doc_id, cited.score) for cited in record.citations] == [
        ("turn0search0", "3m", 0.95),
        ("turn0search1", "ford", 0.2),
    ]
    assert record.citation == "cited"
    assert Record.from_json(orjson.loads(record.to_line())) == record


def test_a_reference_that_no_search_gave_is_a_wrong_citation(index: Index) -> None:
    answer = ModelReply("Answer: x\nExplanation: y [turn5search9].\nSources: [turn0search0] 90%")
    record, _ = ask(index, agentic(), calls(search("property")), answer)
    assert record.citation == "wrong"
    assert record.invented_ids == ("turn5search9",)
    assert [cited.score for cited in record.citations] == [0.9]


# Context

SMALL = 9_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let windows have 120 lines, and a context nothing in reserve."""
    monkeypatch.setattr(OpenLines, "most_lines", 120)
    monkeypatch.setattr(context, "REPLY_RESERVE", 0)


@pytest.fixture
def unwarned(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "WARNING_SHARE", 1)


def windows(count: int, reference: str = "turn0search0") -> list[ModelReply]:
    return [calls(open_at(120 * number, reference, f"w{number}")) for number in range(count)]


@pytest.mark.usefixtures("small")
def test_the_model_is_warned_once_at_nine_tenths(index: Index) -> None:
    record, model = ask(
        index,
        agentic(token_budget=SMALL),
        calls(search("property")),
        *windows(5),
        calls(summarize()),
        FINAL,
    )
    warned = [
        step for step in record.trajectory if "Note: the conversation has" in step.tool_output
    ]
    assert len(warned) == 1
    event = record.context[0]
    assert (event.kind, event.after_step) == ("warning", warned[0].step - 1)
    assert 8_100 <= event.tokens_before < 9_000
    first = next(
        number
        for number, request in enumerate(model.requests)
        if "Call summarize now" in request.messages[-1].content
    )
    assert warned[0].step == first
    before = model.requests[first - 1]
    assert tokens_of(before, model.requests[0]) < 8_100


def tokens_of(request: ModelRequest, first: ModelRequest) -> int:
    """Count the tokens of a request as the loop does."""
    state = State("", "")
    for message in request.messages:
        state.add(message)
    return state.context_tokens + sum(count_tokens(str(schema)) for schema in first.tools)


@pytest.mark.usefixtures("unwarned")
def test_summarize_is_demanded_at_the_threshold_and_leaves_what_is_kept(index: Index) -> None:
    record, model = ask(
        index,
        agentic(token_budget=SMALL),
        calls(search("property")),
        *windows(3),
        *windows(2, "turn0search1"),
        calls(summarize("turn0search1")),
        FINAL,
    )
    assert [event.kind for event in record.context] == ["forced"]
    forced = record.context[-1]
    assert forced.tokens_before >= 9_000 > forced.tokens_after
    assert (forced.kept, forced.removed) == (("turn0search1",), ("turn0search0",))
    demand = next(request for request in model.requests if request.tool_choice)
    assert demand.tool_choice == "summarize"
    assert [tool["function"]["name"] for tool in demand.tools] == ["summarize"]
    assert demand.messages[-1].role == "user"
    last = model.requests[-1]
    texts = "\n".join(message.content for message in last.messages if message.role == "tool")
    assert "3M report says" not in texts
    assert "Ford report says" in texts
    assert "Removed by summarize: open [turn0search0] lines 1-120." in texts
    assert "1 result removed: [turn0search0]." in texts
    assert "Kept: [turn0search1] Ford annual report (lines 1-120, 121-240" in texts
    assert tokens_of(last, model.requests[0]) < forced.tokens_before
    assert record.loops == len(record.trajectory)  # the demand is no turn
    assert record.citation == "cited"  # a removed reference can be cited


@pytest.mark.usefixtures("small")
def test_a_voluntary_summarize_counts_as_a_turn_and_allows_repeats(index: Index) -> None:
    record, model = ask(
        index,
        agentic("agentic_logical", token_budget=SMALL),
        calls(search("property")),
        calls(open_at(0)),
        calls(summarize()),
        calls(search("property")),
        calls(open_at(0)),
        FINAL,
    )
    assert [event.kind for event in record.context] == ["voluntary"]
    assert record.loops == 6
    assert record.trajectory[3].tool_output.count("(1,577)") == 1
    assert "Viewing lines [1-120]" in record.trajectory[4].tool_output
    assert "The others can be opened again" in model.requests[3].messages[-1].content


@pytest.mark.usefixtures("unwarned")
def test_a_demand_that_is_not_met_twice_keeps_what_was_opened_last(index: Index) -> None:
    record, _ = ask(
        index,
        agentic(token_budget=SMALL),
        calls(search("property")),
        *windows(3),
        *windows(2, "turn0search1"),
        calls(summarize("turn9search9")),
        calls(search("property")),
        FINAL,
    )
    steps = record.trajectory[-3:]
    assert [step.tool_name for step in steps] == ["summarize", "search", "summarize"]
    assert [step.status for step in steps] == ["error", "error", "ok"]
    assert record.context[-1].kind == "forced"
    assert "turn0search1" in record.context[-1].kept
    assert record.status == "answered"


@pytest.mark.usefixtures("unwarned")
def test_an_answer_to_the_demand_is_the_answer(index: Index) -> None:
    record, _ = ask(
        index, agentic(token_budget=SMALL), calls(search("property")), *windows(6), FINAL
    )
    assert (record.status, record.answer_short) == ("answered", "1,577")


@pytest.mark.usefixtures("unwarned")
def test_kept_windows_beyond_their_share_are_removed_from_the_oldest(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "KEPT_SHARE", 0.4)
    record, model = ask(
        index,
        agentic(token_budget=SMALL),
        calls(search("property")),
        *windows(6),
        calls(summarize("turn0search0")),
        FINAL,
    )
    texts = [m.content for m in model.requests[-1].messages if m.role == "tool"]
    removed = [text.startswith("Removed by summarize") for text in texts[1:-1]]
    assert removed == sorted(removed, reverse=True)
    assert any(removed)
    assert not all(removed)
    assert record.context[-1].removed == ("turn0search1", "turn0search0")


@pytest.mark.usefixtures("unwarned")
def test_a_context_that_stays_full_forces_the_answer(index: Index) -> None:
    record, model = ask(
        index,
        agentic(token_budget=2_000),
        calls(search("property"), text="A long thought. " * 900),
        calls(summarize()),
        FINAL,
    )
    assert [event.kind for event in record.context] == ["forced", "exhausted"]
    assert record.status == "forced"
    assert not model.requests[-1].may_call


# Resuming


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stop_after", range(1, 12))
def test_a_state_written_after_any_step_resumes_to_the_same_record(
    index: Index, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "WARNING_SHARE", 0.8)
    preset = agentic(token_budget=SMALL)
    script = [
        calls(search("property", id="a"), open_at(0, id="b"), open_at(120, id="c")),
        calls(open_at(0, "turn0search1", id="d"), open_at(120, "turn0search1", id="e")),
        calls(open_at(240, id="f"), open_at(360, id="g")),
        calls(summarize("turn0search1")),
        calls(search("ohio", id="h"), open_at(480, id="i")),
        FINAL,
    ]
    whole = Agent(index, preset, ScriptedModel(script)).ask(QUESTION, "q1")
    assert len(whole.trajectory) >= 9
    written: list[bytes] = []
    agent = Agent(index, preset, ScriptedModel(script))
    state = agent.start(QUESTION, "q1")

    def stop(step: Step) -> None:
        if step.step == stop_after:
            written.append(orjson.dumps(state.to_json(), option=orjson.OPT_NON_STR_KEYS))
            raise KeyboardInterrupt

    try:
        agent.resume(state, stop)
    except KeyboardInterrupt:
        replies = len(agent.model.requests)  # pyright: ignore[reportAttributeAccessIssue]
        again = Agent(index, preset, ScriptedModel(script[replies:]))
        resumed = again.resume(State.from_json(orjson.loads(written[0])))
        assert comparable(resumed) == comparable(whole)


def comparable(record: Record) -> dict[str, Any]:
    """Return a record without times."""
    values = record.to_json()
    del values["seconds"]
    for step in values["trajectory"]:
        del step["seconds"]
    return values


# Conversations


def test_a_follow_up_uses_what_was_found_and_has_a_record_of_its_own(index: Index) -> None:
    model = ScriptedModel([calls(search("property")), FINAL, calls(open_at(18)), FINAL])
    agent = Agent(index, agentic(), model)
    state = agent.start(QUESTION, "q1")
    first = agent.resume(state)
    agent.follow_up(state, "And who else?", "q2")
    second = agent.resume(state)
    assert (first.reused, second.reused) == ((), ("turn0search1", "turn0search0"))
    assert [step.tool_name for step in second.trajectory] == ["open"]
    assert [step.step for step in second.trajectory] == [2]
    assert (second.question_id, second.question, second.loops) == ("q2", "And who else?", 2)
    roles = [message.role for message in model.requests[2].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


# What stands with the question


def test_one_search_stands_with_the_question(index: Index) -> None:
    record, model = ask(index, load_preset("single_shot_search"), FINAL)
    assert model.requests[0].tools == ()
    assert "[turn0search0] 3M annual report" in model.requests[0].messages[1].content
    assert [step.tool_name for step in record.trajectory] == ["search"]
    assert record.citation == "cited"


def test_evidence_stands_with_the_question(index: Index) -> None:
    model = ScriptedModel([FINAL])
    agent = Agent(index, load_preset("oracle_evidence"), model)
    record = agent.ask(QUESTION, "q1", evidence=[("3M", "It was 1,577."), ("Ford", "It was 2.")])
    asked = model.requests[0].messages[1].content
    assert asked == (
        f"{QUESTION}\n\n[turn0search0] 3M\nIt was 1,577.\n[turn0search1] Ford\nIt was 2."
    )
    assert [cited.doc_id for cited in record.citations] == ["3M", "Ford"]
    with pytest.raises(ArgumentError, match="no evidence"):
        agent.ask(QUESTION)

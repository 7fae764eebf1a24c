"""The switcher: one search for simple questions, the loop for others."""

from __future__ import annotations

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply
from arag_search.agent.record import Record, Route
from arag_search.agent.switcher import route_by_rules
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.asking import call, calls
from tests.support.long_documents import index_of_documents, long_document
from tests.support.scripted_model import ScriptedModel

FINAL = ModelReply("Answer: Ohio\nExplanation: So it says.\nSources: [turn0search0] 1")
REFUSAL = ModelReply("Answer: not found in the corpus\nExplanation: Nothing.\nSources:")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Where does Ford build cars?", "simple"),
        ("What is the capital of France?", "simple"),
        ("When was Mary Shelley born?", "simple"),
        ("Who is older, Goldoni or Zeno?", "complex"),
        ("Who wrote it? When?", "complex"),
        ("Who wrote Griselda and where did he die?", "complex"),
        ("How did sales change between 2015 and 2018?", "complex"),
        ("What were sales in 2015-2018?", "complex"),
        ("Where was the poet who composed Evangeline born?", "complex"),
        ("Which book is by Mary Shelley and Lord Byron?", "complex"),
        ("word " * 41, "complex"),
        ("", "simple"),
    ],
)
def test_rules_route_by_what_stands_in_a_question(question: str, kind: str) -> None:
    assert route_by_rules(question).kind == kind


def ask(question: str, *script: ModelReply) -> tuple[Record, ScriptedModel]:
    index: Index = index_of_documents(
        long_document(0, "ford", "Ford", "Ford builds cars in Ohio."),
        long_document(1, "fiat", "Fiat", "Fiat builds cars in Turin."),
    )
    model = ScriptedModel(script)
    return Agent(index, load_preset("agentic_switched"), model).ask(question), model


def test_a_simple_question_is_answered_from_one_search() -> None:
    record, model = ask("Where does Ford build cars?", FINAL)
    assert record.route == Route("simple", "one short question")
    assert [step.tool_name for step in record.trajectory] == ["search"]
    assert (record.status, record.citation) == ("answered", "cited")
    assert model.requests[0].tools == ()
    assert "[turn0search0] Ford" in model.requests[0].messages[-1].content


def test_a_simple_question_that_one_search_does_not_answer_goes_on_in_the_loop() -> None:
    record, model = ask(
        "Where does Ford build cars?",
        REFUSAL,
        calls(call("open", reference_id="turn0search0")),
        FINAL,
    )
    assert record.route is not None
    assert record.route.kind == "escalated"
    assert [step.tool_name for step in record.trajectory] == ["search", "open"]
    assert len(model.requests[1].tools) == 4
    assert record.answer_short == "Ohio"
    uncited = ModelReply("Answer: Ohio\nExplanation: x\nSources: [turn7search9]")
    record, _ = ask("Where does Ford build cars?", uncited, FINAL)
    assert record.route is not None
    assert record.route.kind == "escalated"


def test_the_search_beside_a_question_is_no_result_that_summarize_may_remove() -> None:
    model = ScriptedModel([REFUSAL, calls(call("open", reference_id="turn0search0")), FINAL])
    index = index_of_documents(long_document(0, "ford", "Ford", "Ford builds cars in Ohio."))
    agent = Agent(index, load_preset("agentic_switched"), model)
    state = agent.start("Where does Ford build cars?")
    agent.resume(state)
    assert state.messages_of_steps[0] == -1
    assert state.messages[state.messages_of_steps[1]].content == state.steps[1].tool_output


def test_a_complex_question_goes_to_the_loop_at_once() -> None:
    record, model = ask(
        "Who builds more cars, Ford or Fiat?", calls(call("search", queries=["cars"])), FINAL
    )
    assert record.route == Route("complex", "a comparison")
    assert len(model.requests[0].tools) == 4

"""MemoryAgent: passages in order, a bounded memory, earlier passages that are recalled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.memory_agent import MemoryReader, TfIdf
from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.agent.record import Record, Step
from arag_search.agent.state import State
from arag_search.errors import ConfigError
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.asking import CHUNKS, FINAL, QUESTION, Ask
from tests.support.oracle.engine import MemoryEngine
from tests.support.scripted_model import ScriptedModel

NOTHING_NEW = ModelReply("<update></update>")
GOLDONI = "Goldoni revised the libretto [griselda.1]."
PARIS = f"{GOLDONI} He died in Paris [goldoni.1]."


def update(memory: str) -> ModelReply:
    return ModelReply(f"Noted.\n<update>\n{memory}\n</update>")


@pytest.fixture(scope="module")
def preset() -> Preset:
    return load_preset("memory_agent")


def shown(request: ModelRequest) -> str:
    """Return the message beside the system prompt, which is all that a request has."""
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.tools == ()
    return request.messages[1].content


def test_passages_are_read_in_order_and_the_answer_comes_from_the_memory(ask: Ask) -> None:
    session = ask(update(GOLDONI), update(PARIS), NOTHING_NEW, FINAL)
    record, texts = session.record, [shown(request) for request in session.requests]
    assert [chunk.id for chunk in CHUNKS] == list(record.chunks_read_ids)
    for chunk, number, text in zip(CHUNKS, (1, 2, 3), texts, strict=False):
        assert f"Question: {QUESTION}\n" in text
        assert chunk.content in text[text.index(f"Passage {number} of 3:\n[{chunk.id}]") :]
    memories = ["(nothing yet)", GOLDONI, PARIS, PARIS]
    assert all(f"Your memory:\n{m}\n" in text for m, text in zip(memories, texts, strict=True))
    assert not any(chunk.content in texts[3] for chunk in CHUNKS)
    assert (record.status, record.answer_short, record.citation) == ("answered", "Paris", "cited")
    assert record.memory_state is not None
    assert (record.memory_state.final_memory, record.memory_state.history_size) == (PARIS, 3)
    assert (record.loops, record.tool_usage_summary) == (3, {"chunk_read": 3})
    assert session.steps[1].reasoning == f"Noted.\n<update>\n{PARIS}\n</update>"
    assert record.total_retrieved_tokens == sum(s.retrieved_tokens for s in session.steps) > 0
    written = json.loads(record.to_line())
    assert written["memory_state"] == {"final_memory": PARIS, "history_size": 3}
    assert Record.from_json(written) == record


def test_reading_ends_at_the_stated_number(ask: Ask) -> None:
    session = ask(update(GOLDONI), FINAL, max_loops=1)
    assert session.record.chunks_read_ids == ("griselda.1",)
    assert session.record.wrong_ids == ("goldoni.1",)  # cited, but never read


@pytest.mark.parametrize(
    "reply",
    [
        NOTHING_NEW,
        ModelReply("Nothing of use."),
        ModelReply("<update>Half of"),
        ModelReply("<update>All.</update> And", cut="length"),
    ],
)
def test_a_reply_without_a_whole_update_keeps_the_memory(ask: Ask, reply: ModelReply) -> None:
    session = ask(update(GOLDONI), reply, NOTHING_NEW, FINAL)
    assert session.record.memory_state is not None
    assert session.record.memory_state.final_memory == GOLDONI


def test_the_last_update_counts_and_is_cut_at_the_bound(ask: Ask) -> None:
    long = update("first").text + update("word " * 900).text
    session = ask(ModelReply(long), NOTHING_NEW, NOTHING_NEW, FINAL, memory_tokens=100)
    assert session.record.memory_state is not None
    memory = session.record.memory_state.final_memory
    assert memory.startswith("word word")
    assert 90 <= count_tokens(memory) <= 100


def test_passages_read_before_are_shown_again_nearest_first(ask: Ask) -> None:
    session = ask(*[NOTHING_NEW] * 3, FINAL)
    recalled = [
        text[text.index("Passages read") : text.index("\nPassage ")]
        for text in map(shown, session.requests[:3])
    ]
    assert recalled[0].endswith("(nothing yet)\n")
    assert "[griselda.1]" in recalled[1]
    assert "[goldoni.1]" in recalled[2]  # Venice is in both
    assert "[griselda.1]" not in recalled[2].partition("[goldoni.1]")[0]


def test_rare_terms_weigh_more_and_the_question_counts() -> None:
    texts = TfIdf(["the the opera", "the doge", "the opera of the doge", "the poet"])
    assert sorted(texts.nearest(2, "", 3)) == [0, 1]
    assert texts.nearest(3, "doge", 1) == [1]
    assert texts.nearest(3, "opera opera", 1) == [0]
    assert texts.nearest(0, "doge", 3) == []
    assert TfIdf(["a b", "c d"]).nearest(1, "zebra", 3) == []
    assert TfIdf(["the lion", "doge lion", "the poet"]).nearest(2, "doge", 2) == [1, 0]


def test_braces_in_texts_are_texts(ask: Ask) -> None:
    session = ask(update("{passage} {0}"), NOTHING_NEW, NOTHING_NEW, FINAL)
    assert "Your memory:\n{passage} {0}\n" in shown(session.requests[1])


def test_a_question_is_resumed_between_two_passages(index: Index, preset: Preset) -> None:
    model = ScriptedModel([update(GOLDONI), update(PARIS), NOTHING_NEW, FINAL])
    agent = Agent(index, preset, model)
    state = agent.start(QUESTION, "q1")
    with pytest.raises(KeyboardStop):
        agent.resume(state, stop_after(1))
    stored = State.from_json(json.loads(json.dumps(state.to_json())))
    record = agent.resume(stored)
    assert record.memory_state is not None
    assert (record.memory_state.final_memory, record.memory_state.history_size) == (PARIS, 3)


class KeyboardStop(Exception):
    """An interruption between two steps."""


def stop_after(count: int) -> Callable[[Step], None]:
    def stop(step: Step) -> None:
        if step.step == count:
            raise KeyboardStop

    return stop


def test_the_estimate_bounds_the_requests(index: Index, preset: Preset) -> None:
    preset = preset.model_copy(update={"memory_tokens": 300})
    reader = MemoryReader(index, preset)
    full = "word " * 295
    model = ScriptedModel([update(full)] * 3 + [FINAL])
    record = Agent(index, preset, model).ask(QUESTION)
    estimate = reader.estimate()
    assert estimate.completion_tokens == 900
    assert 0.8 * estimate.prompt_tokens < record.usage.prompt_tokens <= estimate.prompt_tokens
    assert reader.estimate_text() == (
        f"memory_agent reads 3 passages for each question: 4 calls, with a full memory about "
        f"{estimate.prompt_tokens:,} tokens of requests and 900 of replies"
    )


def test_an_index_without_passages_is_answered_from_nothing(preset: Preset) -> None:
    model = ScriptedModel([FINAL])
    record = Agent(Index(MemoryEngine(()), "memory"), preset, model).ask(QUESTION)
    assert (record.status, record.chunks_read_count) == ("answered", 0)


def test_a_memory_beside_tools_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text("extends: memory_agent\ntools: [chunk_read]\n")
    with pytest.raises(ConfigError) as caught:
        load_preset(file)
    assert str(caught.value).splitlines()[1] == (
        '1. key "memory_tokens", 5000, beside tools. Allowed: tools: [], or memory_tokens: 0.'
    )
    file.write_text("extends: memory_agent\ntools: [chunk_read]\nmemory_tokens: 0\n")
    assert load_preset(file).tools == ("chunk_read",)

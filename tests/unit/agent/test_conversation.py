"""Conversations: their files, and the commands that hold, list and print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from arag_search.agent.conversation import Conversation, read_conversation
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply
from arag_search.errors import ArgumentError, ConfigError
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.asking import call, calls
from tests.support.long_documents import index_of_documents, long_document
from tests.support.scripted_model import ScriptedModel

FINAL = ModelReply("Answer: Ohio\nExplanation: So it says.\nSources: [turn0search0] 1")


@pytest.fixture
def index() -> Index:
    return index_of_documents(long_document(0, "ford", "Ford", "Ford builds cars in Ohio."))


def agent(index: Index, *script: ModelReply | Exception, preset: str = "agentic_rag") -> Agent:
    return Agent(index, load_preset(preset), ScriptedModel(script))


def test_a_conversation_is_continued_from_its_file(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cars.json"
    first = Conversation(agent(index, calls(call("search", queries=["cars"])), FINAL))
    record = first.ask("Where does Ford build cars?")
    first.save(path)
    second = Conversation(agent(index, FINAL), read_conversation(path))
    follow_up = second.ask("Where exactly?")
    second.save(path)
    assert (record.reused, follow_up.reused) == ((), ("turn0search0",))
    assert follow_up.trajectory == ()
    assert (record.loops, follow_up.loops) == (2, 1)
    saved = read_conversation(path)
    assert saved.all_records() == [record, follow_up]
    assert [kept.question_id for kept in saved.all_records()] == ["question-1", "question-2"]


def test_a_question_that_fails_leaves_the_conversation_as_it_was(index: Index) -> None:
    broken = ModelReply("", cut="length")
    conversation = Conversation(
        agent(index, calls(call("search", queries=["cars"])), FINAL, broken, broken, FINAL)
    )
    conversation.ask("Where does Ford build cars?")
    assert conversation.ask("And then?").status == "failed"
    last = conversation.ask("Where exactly?")
    assert (last.status, last.reused) == ("answered", ("turn0search0",))


def test_another_index_or_preset_cannot_continue_a_conversation(
    index: Index, tmp_path: Path
) -> None:
    path = tmp_path / "cars.json"
    conversation = Conversation(agent(index, FINAL))
    conversation.ask("Where?")
    conversation.save(path)
    other = index_of_documents(long_document(0, "fiat", "Fiat", "Fiat builds cars in Turin."))
    with pytest.raises(ConfigError, match=r"another index \(or filter\)"):
        Conversation(agent(other), read_conversation(path))
    with pytest.raises(ConfigError, match="another preset"):
        Conversation(agent(index, preset="agentic_logical"), read_conversation(path))


def test_a_file_that_is_no_conversation_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for content in (b"", b"{}", b"[1]", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="not a conversation"):
            read_conversation(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_conversation(tmp_path / "none.json")


def test_a_preset_without_documents_answers_one_question(index: Index) -> None:
    conversation = Conversation(agent(index, FINAL, preset="logical_read"))
    conversation.ask("Where?")
    with pytest.raises(ArgumentError, match="answers single questions"):
        conversation.ask("And then?")

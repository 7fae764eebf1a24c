"""Conversations as ChatGPT and Claude export them."""

import json
from pathlib import Path
from typing import Any

import pytest

from arag_search.errors import SourceError
from tests.support.converted import documents_of, entries_of, written


def node(name: str, parent: str | None, role: str, **content: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": content}
    return {name: {"id": name, "message": message if role else None, "parent": parent}}


BRANCHES = (
    node("root", None, "")
    | node("a", "root", "system", parts=["Be kind."])
    | node("b", "a", "user", content_type="text", parts=["How does it run?"])
    | node("c", "b", "assistant", parts=["An answer that was asked again."])
    | node("d", "b", "assistant", parts=["It runs\n\non oil.", {"asset_pointer": "file://x"}])
    | node("e", "d", "user", parts=[{"content_type": "audio_transcription", "text": "Loud?"}])
    | node("f", "e", "assistant", content_type="thoughts", thoughts=[{"content": "Hm."}])
    | node("g", "f", "tool", content_type="execution_output", text="80 dB")
)
CHAT = {"title": "Pumps", "create_time": 1699564800.25, "mapping": BRANCHES, "current_node": "g"}
TURNS = (
    "User\n\nHow does it run?\n\nAssistant\n\nIt runs\n\non oil.\n\n"
    "User\n\nLoud?\n\nTool\n\n80 dB\n"
)
PASTED = {"file_name": "a.txt", "extracted_content": "A long text."}
CLAUDE = {
    "uuid": "7f",
    "name": "Fans",
    "created_at": "2024-05-01T10:00:00.1Z",
    "chat_messages": [
        {"sender": "human", "text": "", "content": [], "attachments": [PASTED]},
        {
            "sender": "assistant",
            "text": "Old form",
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Read."}],
        },
        {"sender": "human", "text": "Thanks."},
    ],
}


def test_a_conversation_is_a_document_with_its_turns_as_sections(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", json.dumps([CHAT | {"id": "6e"}, CLAUDE]))
    first, second = documents_of(path)
    assert (first.suffix, first.title) == ("6e", "Pumps")
    assert first.text == f"Date: 2023-11-09T21:20:00+00:00\n\n{TURNS}"
    assert first.metadata == {"date": "2023-11-09T21:20:00+00:00"}
    assert [unit.name for unit in first.outline] == ["User", "Assistant", "User", "Tool"]
    assert (second.suffix, second.title) == ("7f", "Fans")
    assert second.text.endswith("Human\n\nA long text.\n\nAssistant\n\nRead.\n\nHuman\n\nThanks.\n")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"current_node": None}, TURNS),  # the last node
        ({"current_node": "c"}, "asked again.\n"),
        ({"mapping": BRANCHES | node("d", "g", "user", parts=["In a ring."])}, "80 dB\n"),
        ({"create_time": None}, TURNS),
        ({"mapping": {}}, "Date: 2023-11-09T21:20:00+00:00\n"),
        ({"title": None, "create_time": 1e30}, TURNS),
    ],
)
def test_odd_conversations_are_read(tmp_path: Path, changed: dict[str, Any], text: str) -> None:
    path = written(tmp_path / "Conversations-001.json", json.dumps([CHAT | changed]))
    (document,) = documents_of(path)
    assert document.suffix == "1"
    assert document.text.endswith(text)


def test_what_is_no_conversation_is_named_and_those_after_it_are_read(tmp_path: Path) -> None:
    odd: list[Any] = [CHAT, 7, {"mapping": []}, CLAUDE]
    first, *bad, last = entries_of(written(tmp_path / "conversations.json", json.dumps(odd)))
    assert all(isinstance(entry, SourceError) for entry in bad)
    assert not isinstance(first, SourceError)
    assert not isinstance(last, SourceError)


@pytest.mark.parametrize("text", ["[]", '{"mapping": {}}', '[{"a": 1}]', "[1", "words"])
def test_other_json_of_this_name_is_text(tmp_path: Path, text: str) -> None:
    (document,) = documents_of(written(tmp_path / "conversations.json", text))
    assert (document.suffix, document.text) == ("", text)

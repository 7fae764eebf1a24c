"""Exports of assistants: the conversations of a ``conversations.json`` of ChatGPT or Claude."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from arag_search.errors import SourceError
from index_jobs.sources.converters.outline import Part, outline_of
from index_jobs.sources.converters.registry import ConvertedDocument, in_lines, reading
from index_jobs.sources.converters.text import convert_if_text
from index_jobs.sources.lines.files import CorpusFile, Fields, array_records


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument | SourceError]:
    """Yield a document for each conversation; other JSON is text. See Converter."""
    with CorpusFile(path, where) as file:
        is_array = file.first_bytes(64).lstrip().startswith(b"[")
        chats = array_records(file, 0, lambda _: None) if is_array else iter(())
        match first := next(chats, None):
            case (_, {"mapping": _} | {"chat_messages": _}):
                for number, chat in chain([first], chats):
                    try:
                        with reading("a conversation", f"{where}, item {number}"):
                            yield _document(chat, number)
                    except SourceError as error:
                        yield error
            case _:
                yield from convert_if_text(path, where, fields)


def _document(chat: Any, number: int) -> ConvertedDocument:
    date = chat.get("create_time") or chat.get("created_at") or ""
    with suppress(ValueError, OverflowError):
        date = datetime.fromtimestamp(float(date), UTC).isoformat(timespec="seconds")
    lines = [f"Date: {date}", ""]
    parts: list[Part] = []
    for role, content in _turns(chat):
        if text := "\n\n".join(filter(str.strip, _texts(content))):
            parts.append(Part(len(lines), 0, "section", role, 1))
            lines += [role, "", *in_lines(text).split("\n"), ""]
    text, title = "\n".join(lines), chat.get("title") or chat.get("name") or ""
    suffix = str(chat.get("id") or chat.get("conversation_id") or chat.get("uuid") or number)
    return ConvertedDocument(suffix, title, text, {"date": date}, outline=outline_of(text, parts))


def _turns(chat: Any) -> Iterator[tuple[str, Any]]:
    """Yield the role and the content of each message: of ChatGPT those on the branch that it shows,
    found from its last node up."""
    for message in chat.get("chat_messages", ()):
        content = message.get("content") or message.get("text")
        yield message["sender"].capitalize(), [content, message.get("attachments")]
    nodes, branch = {**chat.get("mapping", {})}, list[Any]()
    name = chat.get("current_node") or next(reversed(nodes), "")
    while node := nodes.pop(name, None):  # no node is passed twice
        branch += [node["message"]] if node.get("message") else []
        name = node.get("parent")
    for message in reversed(branch):
        role = message["author"]["role"]
        if role != "system":
            yield role.capitalize(), message.get("content")


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a message that its reader sees, and the texts of attached files."""
    match content:
        case str(text) | {"text": str(text)} | {"extracted_content": str(text)}:
            yield text
        case [*parts] | {"parts": [*parts]}:
            for part in parts:
                yield from _texts(part)
        case _:
            pass

"""Questions to an agent whose model replies from a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from arag_search.agent.models.base import Message, ModelReply, ToolCall
from arag_search.agent.record import Record, Step
from arag_search.corpus import Chunk, ordinal_of
from tests.support.scripted_model import ScriptedModel

QUESTION = "Where did the librettist of Griselda die?"
FINAL = ModelReply("Answer: Paris\nExplanation: He died there.\nSources: goldoni.1")


def chunk(document: int, doc_id: str, title: str, *sentences: str) -> Chunk:
    ends = [sum(map(len, sentences[: at + 1])) for at in range(len(sentences))]
    ordinal = ordinal_of(0, document, 0)
    return Chunk(f"{doc_id}.1", doc_id, title, "".join(sentences), 1, 1, ordinal, tuple(ends), {})


CHUNKS = (
    chunk(0, "griselda", "Griselda", "An opera by Vivaldi. ", "Goldoni revised its libretto."),
    chunk(1, "goldoni", "Carlo Goldoni", "A playwright of Venice. ", "He died in Paris."),
    chunk(2, "venice", "Venice", "A city on the water."),
)


def call(name: str, call_id: str = "c", /, **arguments: object) -> ToolCall:
    return ToolCall(call_id, name, json.dumps(arguments))


def calls(*tool_calls: ToolCall, text: str = "", **more: Any) -> ModelReply:
    return ModelReply(text, tool_calls, **more)


def search(query: str, **arguments: object) -> ModelReply:
    return calls(call("logical_search", query=query, **arguments))


def read(*ids: str) -> ModelReply:
    return calls(call("chunk_read", chunk_ids=list(ids)))


class AskedQuestion:
    """A question that an agent answered: its record, and the requests that the model received."""

    def __init__(self, record: Record, model: ScriptedModel) -> None:
        self.record = record
        self.requests = model.requests

    @property
    def last(self) -> list[Message]:
        return list(self.requests[-1].messages)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.record.trajectory


Ask = Callable[..., AskedQuestion]

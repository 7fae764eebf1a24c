"""The steps of records as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from arag_search.agent.record import Record, Step
from arag_search.agent.wording import hits_text
from arag_search.evaluation.trajectories import arguments_of
from arag_search.query.fields import Schema
from arag_search.query.tree import TextLeaf
from arag_search.search.marking import marks
from arag_search.tools.reply_text import ReplyPart, parts_of
from arag_search.viewer.reading import Reading, reading_of
from arag_search.viewer.texts import Texts, utf16_places


class Steps:
    """Makes steps ready to be shown. ``schema`` is that of the index, open where it is not
    known; ``texts`` takes what is shown of passages."""

    def __init__(self, texts: Texts, schema: Schema) -> None:
        self._texts = texts
        self._schema = schema

    def of(self, record: Record) -> list[dict[str, Any]]:
        """The steps of a record, in order."""
        return [self._step(step) for step in record.trajectory]

    def _step(self, step: Step) -> dict[str, Any]:
        reading = reading_of(step, self._schema)
        parts = parts_of(step.tool_output, step.spans())
        leaves = reading.leaves if reading is not None else ()
        found: dict[str, Any] = {
            "tool": step.tool_name,
            "arguments": _arguments(step, reading),
            "query": None if reading is None else _reading(reading),
            "reasoning": step.reasoning,
            "status": step.status,
            "hits": hits_text(step),
            "retrieved": step.retrieved_tokens,
            "result": step.result_tokens,
            "seconds": step.seconds,
            "above": parts.above,
            "passages": [self._passage(one, leaves) for one in parts.passages],
        }
        if parts.joined() != step.tool_output:
            found["reply"] = self._texts.number(step.tool_output)
        return found

    def _passage(self, one: ReplyPart, leaves: tuple[TextLeaf, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": one.id,
            "title": self._texts.number(one.title),
            "header": one.header,
            "text": self._texts.number(one.text),
            "titleMarks": utf16_places(one.title, marks(one.title, leaves, "title")),
            "textMarks": utf16_places(one.text, marks(one.text, leaves, "content")),
            "about": one.about,
            "below": one.below,
        }
        if one.left_out is not None:
            found["before"] = one.left_out
        return {name: value for name, value in found.items() if value not in ("", [])}


def _arguments(step: Step, reading: Reading | None) -> list[list[str]]:
    """Names and values of what a tool was called with beside what is shown as the query; the text
    of what is no JSON object under an empty name."""
    if not isinstance(step.tool_input, Mapping):
        return [["", _text(step.tool_input)]]
    query = None if reading is None else reading.argument
    return [[name, _text(value)] for name, value in arguments_of(step).items() if name != query]


def _text(value: object) -> str:
    """As JSON; a string as it is where it cannot be taken for something else."""
    if isinstance(value, str) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "typed": reading.typed,
        "pieces": [list(one) for one in reading.pieces],
        "problems": [[one.column, one.piece, one.message] for one in reading.problems],
        "mended": reading.mended,
    }

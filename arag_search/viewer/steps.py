"""The steps of records as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from arag_search.agent.record import ContextEvent, Record, Step
from arag_search.agent.wording import hits_text
from arag_search.evaluation.trajectories import arguments_of
from arag_search.query.fields import Schema
from arag_search.query.tree import TextLeaf
from arag_search.search.marking import marks
from arag_search.tools.reply_text import ReplyPart, parts_of
from arag_search.viewer.reading import Reading, reading_of
from arag_search.viewer.texts import Texts, utf16_places


class Steps:
    """A converter of steps for the page. ``schema`` is that of the index, or an open one if
    unknown; ``texts`` stores the shown texts of passages."""

    def __init__(self, texts: Texts, schema: Schema) -> None:
        self._texts = texts
        self._schema = schema

    def of(self, record: Record) -> list[dict[str, Any]]:
        """Convert the steps of a record, in order."""
        steps: list[dict[str, Any]] = []
        for step in record.trajectory:
            later = [event for event in record.context if event.after_step >= step.step]
            removed = {reference for event in later for reference in event.removed}
            shown = self._step(step, removed)
            events = [event_text(event) for event in later if event.after_step == step.step]
            steps.append({**shown, "events": events} if events else shown)
        return steps

    def _step(self, step: Step, removed: Collection[str]) -> dict[str, Any]:
        reading = reading_of(step, self._schema)
        parts = parts_of(step.tool_output, step.passages)
        leaves = reading.leaves if reading is not None else ()
        shown: dict[str, Any] = {
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
            "passages": [self._passage(part, leaves, removed) for part in parts.passages],
        }
        if parts.joined() != step.tool_output:
            shown["reply"] = self._texts.number(step.tool_output)
        return shown

    def _passage(
        self, part: ReplyPart, leaves: tuple[TextLeaf, ...], removed: Collection[str]
    ) -> dict[str, Any]:
        content: dict[str, Any] = {
            "id": part.reference or part.id,
            "title": self._texts.number(part.title),
            "header": part.header,
            "text": self._texts.number(part.text),
            "titleMarks": utf16_places(part.title, marks(part.title, leaves, "title")),
            "textMarks": utf16_places(part.text, marks(part.text, leaves, "content")),
            "about": part.about,
            "below": part.below,
        }
        if part.left_out is not None:
            content["before"] = part.left_out
        if part.reference in removed:
            content["removed"] = True
        return {name: value for name, value in content.items() if value not in ("", [])}


def event_text(event: ContextEvent) -> str:
    """Return in words what was done because the conversation was long."""
    freed = event.tokens_before - event.tokens_after
    words = {
        "warning": f"The model was warned: {event.tokens_before:,} tokens.",
        "voluntary": f"The model freed {freed:,} of {event.tokens_before:,} tokens.",
        "forced": f"The model had to free {freed:,} of {event.tokens_before:,} tokens.",
        "exhausted": f"What was kept left no room: {event.tokens_before:,} tokens.",
    }
    return words[event.kind]


def _arguments(step: Step, reading: Reading | None) -> list[list[str]]:
    """Return names and values of the arguments of a call without the query; arguments that are not
    a JSON object are one text with an empty name."""
    if not isinstance(step.tool_input, Mapping):
        return [["", _text(step.tool_input)]]
    query = None if reading is None else reading.argument
    return [[name, _text(value)] for name, value in arguments_of(step).items() if name != query]


def _text(value: object) -> str:
    """Format a value as JSON, and a string without quotes if it is not ambiguous."""
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
        "pieces": [list(piece) for piece in reading.pieces],
        "problems": [
            [problem.column, problem.piece, problem.message] for problem in reading.problems
        ],
        "mended": reading.mended,
    }

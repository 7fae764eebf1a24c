"""Run a tool call as the model wrote it, or say what was wrong with the call."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson

from arag_search.agent.models.base import ToolCall
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.tools.registry import READ_TOOLS, TOOLS
from arag_search.tools.replies.parts import CALLS_LEFT, NUDGE
from arag_search.tools.tool import Tool, ToolResult, error_result, no_such_tool

STALE_STEPS = 3
"""The number of successive steps without anything new after which a line says so."""
FEW_CALLS = 3
"""When at most this many calls are left, each result says how many."""
NOTHING_NEW = (
    f"{NUDGE}{STALE_STEPS} steps showed nothing new. Try other names or wordings, or "
    "answer from what you have."
)
NO_ARGUMENTS = "{}"
UNKNOWN_TOOL = "unknown_tool"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SHOWN_CHARACTERS = 80
_MAX_LEVELS = 50


class CallRunner:
    """A runner of calls of some tools. With ``guarded``, an identical call is answered with its
    earlier ids, and a note says when several steps have shown nothing new. When few of
    ``max_calls`` are left, results say how many."""

    def __init__(
        self, tools: Mapping[str, Tool], *, guarded: bool, max_calls: int | None = None
    ) -> None:
        self.tools = tools
        self.guarded = guarded
        self.max_calls = max_calls
        self.schemas = tuple(tool.openai_schema() for tool in tools.values())

    def run(self, state: State, call: ToolCall) -> tuple[Any, ToolResult]:
        """Run a call and note in the state what it showed. Return the arguments to record, which
        are their text if they are no JSON, and the result. Raises errors that no model can
        correct."""
        state.read_set.step = len(state.steps) + 1
        try:
            arguments = parsed_arguments(call.arguments)
        except ValueError as error:
            arguments, result = call.arguments, error_result(str(error))
        else:
            result = self._result(state, call.name, arguments)
        return arguments, self._record_shown(state, call.name, result)

    def _result(self, state: State, name: str, arguments: object) -> ToolResult:
        tool = self.tools.get(name)
        if tool is None:
            return no_such_tool(name, self.tools)
        if not self.guarded or TOOLS[name].knows_repeats:
            return tool.run(arguments, state.read_set, tells_standing=False)
        key = json.dumps([name, arguments], sort_keys=True)
        previous = state.calls.get(key)
        if previous is not None:
            return _repeat_notice(state.steps[previous - 1])
        state.calls[key] = len(state.steps) + 1
        return tool.run(arguments, state.read_set, tells_standing=False)

    def _record_shown(self, state: State, name: str, result: ToolResult) -> ToolResult:
        """Add what was shown to the state, and any notes that are due to the result."""
        is_read = name in READ_TOOLS and result.retrieved_tokens > 0
        shown = {*result.ids, *(span.id for span in result.passages)}
        is_new = is_read or not state.shown_ids.issuperset(shown)
        state.shown_ids.update(shown)
        state.stale_steps = 0 if is_new else state.stale_steps + 1
        lines = [result.text]
        if self.guarded and state.stale_steps >= STALE_STEPS:
            state.stale_steps = 0
            lines.append(NOTHING_NEW)
        left = 0 if self.max_calls is None else self.max_calls - state.loops
        if 0 < left <= FEW_CALLS:
            lines.append(f"{CALLS_LEFT}{left}.")
        if len(lines) == 1:
            return result
        text = "\n".join(lines)
        return replace(result, text=text)


def parsed_arguments(text: str) -> object:
    """Return the parsed JSON of a call's arguments; blank text becomes an empty object.

    Raises ValueError, with a message for the model, for anything that is not JSON.
    """
    if not text.strip():
        return {}
    try:
        arguments: object = orjson.loads(text)
        if not _is_too_deep(arguments):
            return arguments
        problem = "nested too deeply"
    except orjson.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos + 1}"
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    raise ValueError(
        f"Tool not run: the arguments are not valid JSON ({problem}): {shown}\n"
        "Allowed: one JSON object with the arguments of the tool."
    ) from None


def history_calls(calls: Sequence[ToolCall], step: int) -> tuple[ToolCall, ...]:
    """Return the calls in the form that later requests contain, with unique ids. Some servers
    refuse a history whose arguments are not JSON, so such arguments become an empty object, and
    Bedrock one with other names than tools have; the result quotes them."""
    kept: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        is_taken = any(call.id == other.id for other in kept)
        call_id = call.id if call.id and not is_taken else f"call_{step}_{number}"
        try:
            is_object = isinstance(parsed_arguments(call.arguments), dict)
        except ValueError:
            is_object = False
        written = call.arguments if is_object and call.arguments.strip() else NO_ARGUMENTS
        name = call.name if _NAME.fullmatch(call.name) else UNKNOWN_TOOL
        kept.append(ToolCall(call_id, name, written))
    return tuple(kept)


def _repeat_notice(step: Step) -> ToolResult:
    if step.status == "error":
        had = "and was refused"
    elif step.hit_ids:
        had = f"and showed {', '.join(f'[{id}]' for id in step.hit_ids)}"
    elif step.status == "empty":
        had = "and found nothing"
    else:
        had = "and was answered"
    text = (
        f"This call was made before, in step {step.step}, {had}. It was not run again: change it, "
        "try another way, or answer from what you have."
    )
    return ToolResult(text, step.status, step.hit_ids, step.total_hits, step.total_is_exact)


def _is_too_deep(arguments: object) -> bool:
    """Return whether JSON is nested more deeply than any arguments need, and more than some writers
    can write."""
    level = [arguments]
    for _ in range(_MAX_LEVELS):
        level = [item for value in level for item in _items(value)]
    return bool(level)


def _items(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()

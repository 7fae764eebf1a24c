"""The tools of a preset over one index, as one conversation uses them. The agent, the MCP server,
the command line and an agent loop of your own have one each.

    tools = Toolbox(index, "logical_read")
    result = tools.call("logical_search", '{"query": "vivaldi AND librett*"}')
    print(result.text)
"""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from arag_search.errors import ConfigError, NotServedError, VectorsNotFoundError
from arag_search.query.filters import Data
from arag_search.search.index import Index
from arag_search.search.state import IndexState
from arag_search.tools.arguments import parsed_arguments
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.registry import READ_TOOLS, TOOLS, meant_tool
from arag_search.tools.replies.parts import NUDGE
from arag_search.tools.tool import ReadSet, Tool, ToolResult, error_result, no_such_tool, tool_class

STALE_STEPS = 3
"""The number of successive steps without anything new after which a line says so, if none is a
search for a name alone."""
NOTHING_NEW = (
    f"{NUDGE}{STALE_STEPS} steps showed nothing new. Try other names or wordings, or "
    "answer from what you have."
)
PAGE_ARGUMENTS = ("offset", "after")
"""The arguments of tools that ask for a further page of a result."""


Ran = tuple[ToolResult, str, str | None, ReadSet]
"""The result of a call, the name of its tool, the call as repeats are known by it, and what has
been shown so far. The third is None if the call was not run."""


class Toolbox:
    """The tools of a preset over an index, in one conversation: it knows what was shown.

    ``preset`` is a Preset, the name of one of this release (default: "logical_read") or the path of
    a file. ``within`` is a filter, as in ``Index.within``, that all tools obey. A second toolbox of
    the same index, preset and filter costs next to nothing: make one for each conversation.
    Threads may share it. If the index follows updates, each call is answered from one state of it.

    Raises ConfigError for a preset that does not exist, is wrong or has no tools, and QueryError
    for the filter. Raises NotServedError if the index cannot serve a tool, and what opening vectors
    raises.
    """

    def __init__(
        self,
        index: Index,
        preset: Preset | str | Path = DEFAULT_PRESET,
        *,
        within: str | Data | None = None,
    ) -> None:
        self.index = index if within is None else index.within(within)
        self.preset = preset if isinstance(preset, Preset) else load_preset(preset)
        self.shown = ReadSet()
        self._changing = threading.Lock()
        _ = self.tools  # what cannot be served is an error here

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by the names that models call, over the newest state of the index."""
        return self.index.at_one_state(self._over)

    @property
    def schemas(self) -> list[Any]:
        """The tools as ``client.chat.completions.create(tools=...)`` takes them."""
        return [tool.openai_schema(name) for name, tool in self.tools.items()]

    @property
    def responses_schemas(self) -> list[Any]:
        """The tools as ``client.responses.create(tools=...)`` takes them."""
        return [
            {"type": "function", **schema["function"], "strict": False} for schema in self.schemas
        ]

    @property
    def anthropic_schemas(self) -> list[Any]:
        """The tools as Anthropic's ``client.messages.create(tools=...)`` takes them."""
        return [
            {"name": name, "description": tool.description, "input_schema": tool.parameters}
            for name, tool in self.tools.items()
        ]

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Return the result of a call that a model wrote. It has ``text`` for the model, of
        ``tokens`` o200k tokens, and its ``passages`` with their places in the text.

        ``arguments`` are a JSON text, as endpoints deliver them, or a mapping. A mistake of the
        model, such as an unknown tool, broken JSON, or a wrong argument or query, is a result too.
        Its status is "error", and its text says what is allowed. Raises only what a model cannot
        correct, such as IndexClosedError and EngineError.
        """
        shown = self._begin()
        return self._end(*self._run(name, arguments, shown))

    async def acall(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Do what ``call`` does, in another thread. A call that is cancelled has shown nothing."""
        shown = self._begin()
        return self._end(*await asyncio.to_thread(self._run, name, arguments, shown))

    def fork(self) -> Self:
        """Return a toolbox for a conversation that goes on from here beside this one."""
        with self._changing:
            return self.in_conversation(copy.deepcopy(self.shown))

    def in_conversation(self, shown: ReadSet) -> Self:
        """Return the toolbox of another conversation, which has been shown this."""
        other = copy.copy(self)
        other.shown, other._changing = shown, threading.Lock()
        return other

    def _over(self, index: Index) -> Mapping[str, Tool]:
        """Return the tools over one state of the index, which are made once."""
        return index.state.once(made_of_state, served_tools, self.preset)

    def _begin(self) -> ReadSet:
        """Count a call, and return what was shown before it."""
        with self._changing:
            self.shown.step += 1
            return self.shown.copy()

    def _run(self, name: str, arguments: str | Mapping[str, Any], before: ReadSet) -> Ran:
        """Run a call, given what was shown before it."""
        try:
            given = parsed_arguments(arguments)
        except ValueError as error:
            return error_result(str(error)), name, None, before

        def of_state(index: Index) -> Ran:
            tools, shown = self._over(index), before.copy()
            meant = meant_tool(name, tools)
            if meant not in tools:
                return no_such_tool(meant, tools), meant, None, shown
            tool, key = tools[meant], None
            if self._guards and not TOOLS[tool.name].knows_repeats:
                key = json.dumps([meant, given], sort_keys=True, default=repr)
                if earlier := self.shown.calls.get(key):
                    return ToolResult(*earlier), tool.name, None, shown
            return self._result(tool, given, shown), tool.name, key, shown

        result, continues = self._page_of(name, given)
        return self.index.at_one_state(of_state, result, continues=continues)

    def _result(self, tool: Tool, given: object, shown: ReadSet) -> ToolResult:
        return tool.run(given, shown)

    @property
    def _guards(self) -> bool:
        # A client that holds the conversation itself may have dropped what it was shown.
        return self.preset.loop_guards and self.shown.is_kept

    def _page_of(self, name: str, arguments: object) -> tuple[Hashable | None, bool]:
        """Return what identifies the result of which a call asks for a page, None for reads, and
        whether it is a further page."""
        if not isinstance(arguments, Mapping) or meant_tool(name, TOOLS) in READ_TOOLS:
            return None, False
        given = dict(cast(Mapping[str, object], arguments))
        pages = [given.pop(argument, None) for argument in PAGE_ARGUMENTS]
        same = json.dumps(given, sort_keys=True, default=repr)
        return (self.shown.key, name, same), any(pages)

    def _end(self, result: ToolResult, name: str, key: str | None, shown: ReadSet) -> ToolResult:
        """Note what a call has shown, and add to its result that several showed nothing new."""
        with self._changing:
            now = self.shown
            is_new = now.add(shown)
            if key is not None:
                now.calls[key] = (
                    _repeat_notice(shown.step, result),
                    result.status,
                    result.ids,
                    result.total,
                    result.total_is_exact,
                )
            ids = {*result.ids, *(span.id for span in result.passages)}
            is_read = name in READ_TOOLS and result.retrieved_tokens > 0
            is_new |= is_read or not now.ids.issuperset(ids)
            now.stale_steps = 0 if is_new or result.is_of_names else now.stale_steps + 1
            now.ids |= ids
            if not self._guards or now.stale_steps < STALE_STEPS:
                return result
            now.stale_steps = 0
        return replace(result, text=f"{result.text}\n{NOTHING_NEW}")


def tools_of(preset: Preset, index: Index) -> dict[str, Tool]:
    """Return the tools by name, in the order of the preset.

    Raises NotServedError, naming all tools that the index was built without or has no vectors
    for, and the errors of opening the vectors.
    """
    without = index.manifest.without
    missing = {name: part for name in preset.tools if (part := TOOLS[name].part) in without}
    if missing:
        parts = ",".join(dict.fromkeys(filter(None, missing.values())))
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            do=f"Build it again with {parts}, or use another preset.",
        )
    _check_vectors(preset, index)
    return {name: tool_class(name)(index, preset) for name in preset.tools}


def offered_names(preset: Preset) -> dict[str, str]:
    """Return the names that clients call, by the names of the tools, in the order of the preset."""
    return {key: TOOLS[key].offered_name for key in preset.tools if not TOOLS[key].of_loop}


def served_tools(preset: Preset, index: Index) -> dict[str, Tool]:
    """Return the tools for clients that hold the conversation themselves, by the names that these
    call. Raises ConfigError for a preset without such tools, and what ``tools_of`` raises."""
    names = offered_names(preset)
    if not names:
        raise ConfigError(
            f"Preset {preset.name} has no tools to serve.",
            allowed="a preset with tools",
            do="See them with: arag-search presets",
        )
    if len({*names.values()}) < len(names):
        raise ConfigError(
            f"Preset {preset.name} has two tools that clients would see under one name.",
            allowed="the tools of connectors, or search, and not both",
            do="Serve them by two servers.",
        )
    tools = tools_of(preset, index)
    return {name: tools[key] for key, name in names.items()}


def made_of_state(
    state: IndexState, make: Callable[[Preset, Index], dict[str, Tool]], preset: Preset
) -> dict[str, Tool]:
    """Return the tools that a function makes over a state of an index."""
    return make(preset, Index.of_state(state))


def _check_vectors(preset: Preset, index: Index) -> None:
    needed = preset.needed_vectors
    if not needed:
        return
    try:
        units = index.open_vectors().vectors.units
    except (NotServedError, VectorsNotFoundError) as error:
        error.what = f"Preset {preset.name} needs vectors ({', '.join(needed)}). {error.what}"
        raise
    missing = [f"{name} ({unit} vectors)" for name, unit in needed.items() if unit not in units]
    if missing:
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            allowed=f"vectors by {', '.join(units)}",
            do="Make the others with arag-search embed, or use another preset.",
        )


def _repeat_notice(step: int, result: ToolResult) -> str:
    if result.status == "error":
        had = "and was refused"
    elif result.ids:
        had = f"and showed {', '.join(f'[{id}]' for id in result.ids)}"
    elif result.status == "empty":
        had = "and found nothing"
    else:
        had = "and was answered"
    return (
        f"This call was made before, in step {step}, {had}. It was not run again: change it, try "
        "another way, or answer from what you have."
    )

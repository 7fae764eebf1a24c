"""The tools of an agent, and calls in the form in which later requests contain them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from arag_search.agent.models.base import ToolCall
from arag_search.search.index import Index
from arag_search.tools.arguments import parsed_arguments
from arag_search.tools.tool import ReadSet, Tool, ToolResult
from arag_search.tools.toolbox import Toolbox, made_of_state, tools_of

NO_ARGUMENTS = "{}"
UNKNOWN_TOOL = "unknown_tool"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class AgentTools(Toolbox):
    """All tools of a preset, including the tools that change the conversation. A reply does not say
    how the index stands beside its files."""

    def _over(self, index: Index) -> Mapping[str, Tool]:
        return index.state.once(made_of_state, tools_of, self.preset)

    def _result(self, tool: Tool, given: object, shown: ReadSet) -> ToolResult:
        return tool.run(given, shown, tells_standing=False)


def history_calls(calls: Sequence[ToolCall], step: int) -> tuple[ToolCall, ...]:
    """Return the calls in the form that later requests contain, with unique ids. Some servers
    refuse a history whose arguments are not JSON, so such arguments become an empty object. Bedrock
    refuses malformed names of tools, so another name stands for these; the result quotes them."""
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

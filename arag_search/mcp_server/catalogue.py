"""The tools that clients see, over one index or several. With several, each tool takes the name of
an index as the argument ``index``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import mcp.types as types

from arag_search.tools.registry import meant_tool
from arag_search.tools.tool import (
    Tool,
    ToolResult,
    missing_argument,
    no_such_tool,
    not_run,
    wrong_argument,
)

INDEX = "index"
"""The argument that names an index if there are several."""
_READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
FOREIGN = {"untrustedContentHint": True}
"""The ``_meta`` of tools and of their results, for clients and not for models. It says that the
text comes from documents, whoever wrote them. The protocol itself has no word for it (its open
world is what a tool reaches, not who wrote what it returns); this is WebMCP's."""


def chosen_index(
    name: str, arguments: Mapping[str, object], tools: Collection[str], indexes: Sequence[str]
) -> tuple[str, Mapping[str, object]] | ToolResult:
    """Return the index that a call of a tool is for, and the other arguments; or the result that
    describes a wrong tool or index."""
    if len(indexes) == 1:
        return indexes[0], arguments
    if meant_tool(name, tools) not in tools:
        return no_such_tool(name, tools)
    schema = {"enum": list(indexes)}
    if INDEX not in arguments:
        return not_run([missing_argument(INDEX, schema)])
    chosen = arguments[INDEX]
    if not isinstance(chosen, str) or chosen not in indexes:
        return not_run([wrong_argument(INDEX, chosen, schema)])
    return chosen, {key: value for key, value in arguments.items() if key != INDEX}


def offered_tools(served: Mapping[str, Mapping[str, Tool]], about: str) -> list[types.Tool]:
    """Return the tools that clients see, of indexes by name, which all have the same. ``about`` is
    what the owners say of the indexes."""
    names = next(iter(served.values()))
    return [
        _offered(name, {of: tools[name] for of, tools in served.items()}, about) for name in names
    ]


def _offered(name: str, tools: Mapping[str, Tool], about: str) -> types.Tool:
    properties: dict[str, Any] = {}
    required: list[str] = []
    if len(tools) > 1:
        what = "The index to search or read."
        properties[INDEX] = {"type": "string", "enum": list(tools), "description": what}
        required.append(INDEX)
    for tool in tools.values():
        properties |= tool.parameters["properties"]
        required += [name for name in tool.parameters["required"] if name not in required]
    description = merged_description({of: tool.description for of, tool in tools.items()})
    return types.Tool(
        name=name,
        description=f"{about}\n{description}" if about else description,
        # Without additionalProperties: clients that validate would refuse what the tools take with
        # a note.
        input_schema={"type": "object", "properties": properties, "required": required},
        output_schema=next(iter(tools.values())).output_schema,
        annotations=_READ_ONLY,
        _meta=FOREIGN,
    )


def merged_description(descriptions: Mapping[str, str]) -> str:
    """Merge the descriptions of a tool over several indexes. Lines that all share stand once. Other
    lines follow the name of their index: first lines above the shared lines, the rest below."""
    lines = {of: text.splitlines() for of, text in descriptions.items()}
    first = next(iter(lines.values()))
    shared = [line for line in first if all(line in others for others in lines.values())]

    def own(part: slice) -> list[str]:
        return [
            f"{of}: {line}" for of in lines for line in lines[of][part] if line not in ("", *shared)
        ]

    return "\n".join([*own(slice(1)), *shared, *own(slice(1, None))])

"""The tools that clients see, over one index or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arag_search.mcp_server.served import ServedIndex
from arag_search.tools.base import (
    Tool,
    ToolResult,
    error_result,
    missing_argument,
    no_such_tool,
    not_run,
    wrong_argument,
)
from arag_search.tools.registry import meant_tool

INDEX = "index"
"""The argument that names an index if there are several."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as clients see it; ``parameters`` is the JSON schema of its arguments,
    ``output_schema`` that of its structured content, if it has any."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool of one index, and its arguments."""

    served: ServedIndex
    tool: Tool
    arguments: Mapping[str, object]


class Catalogue:
    """The tools of the served indexes, all of the same preset.

    With several indexes, each tool takes the name of an index as the argument ``index``.
    """

    def __init__(self, served: Sequence[ServedIndex]) -> None:
        self.served = {index.name: index for index in served}
        self._first = served[0]
        names = dict.fromkeys(name for index in served for name in index.tools)
        self._of = {
            name: {index.name: index for index in served if name in index.tools} for name in names
        }
        self.offered = tuple(self._offered(name) for name in names)

    @property
    def has_several(self) -> bool:
        """Whether a call must name its index."""
        return len(self.served) > 1

    @property
    def about(self) -> str:
        """The owners' descriptions of the indexes."""
        return merged_about({name: served.about for name, served in self.served.items()})

    def call(self, name: str, arguments: Mapping[str, object]) -> Call | ToolResult:
        """Return the call to run, or the result that describes a wrong tool or index."""
        name = meant_tool(name, self._of)
        if name not in self._of:
            return no_such_tool(name, [tool.name for tool in self.offered])
        if not self.has_several:
            return Call(self._first, self._first.tools[name], arguments)
        holders = self._of[name]
        schema = {"enum": list(holders)}
        if INDEX not in arguments:
            return error_result(not_run([missing_argument(INDEX, schema)]))
        chosen = arguments[INDEX]
        if not isinstance(chosen, str) or chosen not in holders:
            return error_result(not_run([wrong_argument(INDEX, chosen, schema)]))
        served = holders[chosen]
        others = {key: value for key, value in arguments.items() if key != INDEX}
        return Call(served, served.tools[name], others)

    def _offered(self, name: str) -> OfferedTool:
        tools = {of: index.tools[name] for of, index in self._of[name].items()}
        first = next(iter(tools.values()))
        if not self.has_several:
            description = self._after_about(first.description)
            parameters = _schema(first.parameters["properties"], first.parameters["required"])
            return OfferedTool(name, description, parameters, first.output_schema)
        properties: dict[str, Any] = {
            INDEX: {
                "type": "string",
                "enum": list(tools),
                "description": "The index to search or read.",
            }
        }
        required = [INDEX]
        for tool in tools.values():
            properties = {**properties, **tool.parameters["properties"]}
            required += [
                argument for argument in tool.parameters["required"] if argument not in required
            ]
        descriptions = {of: tool.description for of, tool in tools.items()}
        description = self._after_about(merged_description(descriptions))
        return OfferedTool(name, description, _schema(properties, required))

    def _after_about(self, description: str) -> str:
        return f"{self.about}\n{description}" if self.about else description


def merged_about(about: Mapping[str, str]) -> str:
    """Return the owners' descriptions of indexes by name, one per line; with several indexes, with
    their names."""
    return "\n".join(
        f"{name}: {text}" if len(about) > 1 else text for name, text in about.items() if text
    )


def merged_description(descriptions: Mapping[str, str]) -> str:
    """Merge the descriptions of a tool over several indexes: first the lines that all share, then
    those of each index after its name."""
    lines = {of: text.splitlines() for of, text in descriptions.items()}
    first = next(iter(lines.values()))
    shared = [line for line in first if all(line in others for others in lines.values())]
    own = [
        f"{of}: {line}" for of, its in lines.items() for line in its if line not in shared and line
    ]
    return "\n".join([*shared, *own])


def _schema(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """Return a schema without ``additionalProperties``: clients that validate would refuse what
    the tools take with a note."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}

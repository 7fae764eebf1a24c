"""The tools that clients see, over one index or several, and over the parts of them that filters
admit."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp.types as types

from arag_search.mcp_server.served import ServedIndex
from arag_search.query.problems import QueryError
from arag_search.search.index import KEPT_PARTS
from arag_search.tools.preset import Preset
from arag_search.tools.registry import meant_tool
from arag_search.tools.tool import (
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
"""What the ``_meta`` of tools and of their results says to a client, and to no model: the text is
that of documents, whoever wrote them. The protocol itself has no word for it (its open world is
what a tool reaches, not who wrote what it returns); this is WebMCP's."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool of one index by name, and its arguments."""

    served: ServedIndex
    name: str
    arguments: Mapping[str, object]


class Catalogue:
    """The tools of the served indexes, all of the same preset.

    With several indexes, each tool takes the name of an index as the argument ``index``.
    ``part(filter)`` has the tools over the part that a filter admits.
    """

    def __init__(self, served: Sequence[ServedIndex], preset: Preset) -> None:
        self._preset = preset
        self.served = {index.name: index for index in served}
        self._first = served[0]
        names = dict.fromkeys(name for index in served for name in index.tools)
        self._of = {
            name: {index.name: index for index in served if name in index.tools} for name in names
        }
        self.offered = [self._offered(name) for name in names]
        self.part = functools.lru_cache(KEPT_PARTS)(self._part)

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
            return Call(self._first, name, arguments)
        holders = self._of[name]
        schema = {"enum": list(holders)}
        if INDEX not in arguments:
            return not_run([missing_argument(INDEX, schema)])
        chosen = arguments[INDEX]
        if not isinstance(chosen, str) or chosen not in holders:
            return not_run([wrong_argument(INDEX, chosen, schema)])
        served = holders[chosen]
        others = {key: value for key, value in arguments.items() if key != INDEX}
        return Call(served, name, others)

    def check(self, filter: str) -> None:
        """Raise QueryError for a filter that one of the indexes cannot use."""
        for served in self.served.values():
            try:
                served.index.within(filter)
            except QueryError as error:
                error.where = f"the filter, for the index {served.name}"
                raise

    def _part(self, filter: str) -> Catalogue:
        """Return the tools over the part that a filter admits. The values of fields are read here,
        so this may take a moment."""
        return Catalogue(
            [served.within(filter, self._preset) for served in self.served.values()], self._preset
        )

    def _offered(self, name: str) -> types.Tool:
        tools = {of: index.tools[name] for of, index in self._of[name].items()}
        properties: dict[str, Any] = {}
        required: list[str] = []
        if self.has_several:
            what = "The index to search or read."
            properties[INDEX] = {"type": "string", "enum": list(tools), "description": what}
            required.append(INDEX)
        for tool in tools.values():
            properties |= tool.parameters["properties"]
            required += [name for name in tool.parameters["required"] if name not in required]
        description = merged_description({of: tool.description for of, tool in tools.items()})
        return types.Tool(
            name=name,
            description=f"{self.about}\n{description}" if self.about else description,
            # Without additionalProperties: clients that validate would refuse what the tools take
            # with a note.
            input_schema={"type": "object", "properties": properties, "required": required},
            output_schema=next(iter(tools.values())).output_schema,
            annotations=_READ_ONLY,
            _meta=FOREIGN,
        )


def merged_about(about: Mapping[str, str]) -> str:
    """Return the owners' descriptions of indexes by name, one per line; with several indexes, with
    their names."""
    return "\n".join(
        f"{name}: {text}" if len(about) > 1 else text for name, text in about.items() if text
    )


def merged_description(descriptions: Mapping[str, str]) -> str:
    """Merge the descriptions of a tool over several indexes: the lines that all share, and those of
    each index after its name, above if they come first, else below."""
    lines = {of: text.splitlines() for of, text in descriptions.items()}
    first = next(iter(lines.values()))
    shared = [line for line in first if all(line in others for others in lines.values())]

    def own(part: slice) -> list[str]:
        return [
            f"{of}: {line}" for of in lines for line in lines[of][part] if line not in ("", *shared)
        ]

    return "\n".join([*own(slice(1)), *shared, *own(slice(1, None))])

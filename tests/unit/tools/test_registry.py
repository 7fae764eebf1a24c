"""The registry of tools: each entry agrees with the class of its tool."""

from __future__ import annotations

import pytest

from arag_search.cli.search import ToolName
from arag_search.tools.descriptions import TEXTS
from arag_search.tools.passages.search import SearchTool
from arag_search.tools.registry import CONNECTOR_TOOLS, READ_TOOLS, TOOLS, RegisteredTool
from arag_search.tools.tool import tool_class

SEARCH_TOOLS = [
    name
    for name, tool in TOOLS.items()
    if tool.query_form is not None and name not in CONNECTOR_TOOLS
]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_a_registered_tool_has_a_class_with_its_name(tool: RegisteredTool) -> None:
    assert tool_class(tool.name).name == tool.name
    assert issubclass(tool_class(tool.name), SearchTool) == (tool.name in SEARCH_TOOLS)


@pytest.mark.parametrize("name", sorted(TOOLS.keys() - {"logical_search"}))
def test_a_registered_tool_has_a_description_file(name: str) -> None:
    assert TEXTS.joinpath(f"{name}.md").read_text("utf-8").strip()


def test_tools_search_or_read_and_the_command_line_knows_searches_by_their_first_words() -> None:
    assert sorted(READ_TOOLS) == ["chunk_read", "find", "open"]
    named = [name.partition("_")[0] for name in SEARCH_TOOLS]
    assert len(set(named)) == len(named)
    assert set(named) == set(ToolName)


def test_clients_see_the_tools_of_connectors_by_the_names_that_these_demand() -> None:
    offered = {name: tool.offered_name for name, tool in TOOLS.items()}
    assert {name: seen for name, seen in offered.items() if name != seen} == {
        "connector_search": "search",
        "connector_fetch": "fetch",
    }
    others = [seen for name, seen in offered.items() if name not in CONNECTOR_TOOLS]
    assert len(set(others)) == len(others)

"""What every request sends again: instructions, and tools as they are described."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from arag_search.agent.prompts import system_prompt
from arag_search.mcp_server.catalogue import offered_tools
from arag_search.mcp_server.served import ServedTools
from arag_search.search.opening import open_index
from arag_search.tokens import count_tokens
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.toolbox import tools_of

MOST_OF_AGENT = 850
MOST_OF_MCP = 480
SCHEMA = "inputSchema"


def written(tool: dict[str, Any], schema: str) -> int:
    """Count the tokens of a tool, but for what is said of metadata."""
    tool["description"] = tool["description"].partition("\n\nMetadata: ")[0]
    tool[schema]["properties"].pop("sort", None)
    return count_tokens(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))


def test_the_fixed_part_of_a_request_keeps_its_bound(built_folder: Path) -> None:
    preset = load_preset("logical_read")
    with open_index(built_folder / "my-index") as index:
        tools = [tool.openai_schema()["function"] for tool in tools_of(preset, index).values()]
    assert tools[0]["description"].startswith('Search the documents ("')
    around = count_tokens('{"type":"function","function":}') * len(tools)
    fixed = sum(written(tool, "parameters") for tool in tools) + around
    assert count_tokens(system_prompt(preset)) + fixed <= MOST_OF_AGENT


def test_the_fixed_part_of_the_protocol_keeps_its_bound(built_folder: Path) -> None:
    instructions = files("arag_search.mcp_server").joinpath("instructions.md").read_text("utf-8")
    preset = load_preset(DEFAULT_PRESET)
    with open_index(built_folder / "my-index") as index:
        offered = offered_tools({"notes": ServedTools("notes", index, preset).tools}, "")
    fixed = sum(
        written({"name": tool.name, "description": tool.description, SCHEMA: tool.input_schema},
                SCHEMA)
        for tool in offered
    )  # fmt: skip
    assert count_tokens(instructions.strip()) + fixed <= MOST_OF_MCP
    assert (offered[0].description or "").startswith('Search the documents in notes ("')

"""The preset connector and descriptions of indexes, as a client of the server sees them."""

from __future__ import annotations

import json

import pytest
from mcp import ClientSession

from arag_search.agent.loop import Agent
from arag_search.errors import ArgumentError, ConfigError
from arag_search.mcp_server.served import check_count, descriptions
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.mcp_servers import PRESET, LocalServer, MoodyEngine, text_of
from tests.support.passages import VIVALDI, index_of
from tests.support.scripted_model import ScriptedModel

CONNECTOR = load_preset("connector")


def test_a_connector_has_the_tools_search_and_fetch_and_no_others() -> None:
    served = LocalServer(preset=CONNECTOR)

    async def talk(client: ClientSession) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "fetch"]
        for tool, argument in zip(tools, ("query", "id"), strict=True):
            assert (
                list(tool.input_schema["properties"]) == tool.input_schema["required"] == [argument]
            )
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            assert tool.output_schema is None
        answer = await client.call_tool(
            "search", {"query": "Who revised the libretto of Griselda?"}
        )
        # Before, the structured content said the same again.
        assert answer.structured_content is None
        (first, *_) = json.loads(text_of(answer))["results"]
        assert first["url"] == "arag://memory/chunk/griselda.1"
        page = await client.call_tool("fetch", {"id": first["id"]})
        assert page.structured_content is None
        assert json.loads(text_of(page))["text"] == VIVALDI[2].content
        again = await client.call_tool("fetch", {"id": first["id"]})
        assert text_of(again) == text_of(page)  # nothing counts as read before
        for name in ("connector_search", "chunk_read"):
            unknown = await client.call_tool(name, {})
            assert (unknown.is_error, text_of(unknown)) == (
                True,
                f'Tool not run: there is no tool "{name}". Tools: search, fetch.',
            )
        wrong = await client.call_tool("fetch", {"id": "nothing"})
        assert (wrong.is_error, wrong.structured_content) == (True, None)

    served.serve(talk)


def test_a_connector_has_instructions_of_its_own() -> None:
    served = LocalServer(preset=CONNECTOR)

    async def main() -> None:
        async with served.client() as client:
            instructions = (await client.initialize()).instructions
            assert instructions is not None
            assert "fetch" in instructions

    served.run(main)


def test_the_preset_of_connectors_is_for_one_index_and_for_no_agent() -> None:
    check_count(CONNECTOR, {"a": "a"})
    check_count(PRESET, {"a": "a", "b": "b"})
    with pytest.raises(ArgumentError) as raised:
        check_count(CONNECTOR, {"a": "a", "b": "b"})
    assert raised.value.where == "preset connector"
    assert "connector_search" in raised.value.what
    with pytest.raises(ConfigError, match="has only tools for connectors: connector_search"):
        Agent(index_of(*VIVALDI), CONNECTOR, ScriptedModel([]))


@pytest.mark.parametrize("preset", [PRESET, CONNECTOR], ids=lambda preset: preset.name)
def test_a_description_is_before_the_tools_and_the_instructions(preset: Preset) -> None:
    about = {"memory": "Notes of the Vivaldi project."}
    served = LocalServer(preset=preset, about=about)
    plain = LocalServer(preset=preset)
    before: dict[str, str | None] = {}

    async def note(client: ClientSession) -> None:
        before["instructions"] = (await client.initialize()).instructions
        before.update({tool.name: tool.description for tool in (await client.list_tools()).tools})

    async def talk(client: ClientSession) -> None:
        first = f"{about['memory']}\n"
        assert (await client.initialize()).instructions == f"{first}{before['instructions']}"
        for tool in (await client.list_tools()).tools:
            assert tool.description == f"{first}{before[tool.name]}"

    plain.serve(note)
    served.serve(talk)


def test_descriptions_of_several_indexes_carry_their_names() -> None:
    indexes = {name: Index(MoodyEngine(), name) for name in ("wiki", "notes", "mail")}
    about = {"wiki": "An encyclopedia.", "notes": "My notes."}
    served = LocalServer(indexes=indexes, about=about)

    async def talk(client: ClientSession) -> None:
        search, *_ = (await client.list_tools()).tools
        assert search.description is not None
        assert search.description.startswith(
            "wiki: An encyclopedia.\nnotes: My notes.\nwiki: Search"
        )

    served.serve(talk)


@pytest.mark.parametrize(
    ("texts", "names", "described"),
    [
        ([], ["a"], {}),
        (["Notes of 2019\n to 2024"], ["a"], {"a": "Notes of 2019 to 2024"}),
        (["a=Notes"], ["a"], {"a": "Notes"}),
        (["x=1 and y=2"], ["a"], {"a": "x=1 and y=2"}),
        (["b=B=b", "a=Ä"], ["a", "b"], {"b": "B=b", "a": "Ä"}),
    ],
)
def test_a_description_names_its_index_if_there_are_several(
    texts: list[str], names: list[str], described: dict[str, str]
) -> None:
    assert descriptions(texts, names) == described


@pytest.mark.parametrize(
    ("texts", "names", "problem"),
    [
        (["Notes"], ["a", "b"],
         "names none of the indexes.\nWhere: --describe Notes\nAllowed: NAME"),
        (["c=Notes"], ["a", "b"], "names none of the indexes."),
        (["  "], ["a"], "The description has 0 characters.\nWhere: --describe, index a\n"),
        (["x" * 1_001], ["a"], "The description has 1,001 characters."),
        (["one", "two"], ["a"], 'The index "a" is described twice.'),
    ],
)  # fmt: skip
def test_a_description_that_fits_no_index_is_rejected(
    texts: list[str], names: list[str], problem: str
) -> None:
    with pytest.raises(ArgumentError) as raised:
        descriptions(texts, names)
    assert problem in str(raised.value)

"""Replies and results say how their index stands beside its files: by tool, command line, JSON, MCP
and Python, and never more than somebody may know."""

import json
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from arag_search.agent.toolbox import tools_of
from arag_search.search.opening import open_index
from arag_search.search.standing import Standing, note_standing, standing_of
from arag_search.tokens import count_tokens
from arag_search.tools.preset_files import load_preset
from index_jobs.build.new_index import build_index
from index_jobs.updates.folder_index import OPTIONS
from tests.support.commands import Command
from tests.support.mcp_servers import text_of
from tests.support.served_folders import served
from tests.support.watched_folders import make_notes

pytestmark = pytest.mark.usefixtures("own_cache")
LINE = "3 files changed since, plan.md among these."


@pytest.fixture(name="index")
def an_index_of_notes(tmp_path: Path) -> Path:
    folder = make_notes(tmp_path / "notes", 3)
    (folder / "scan.xyz").write_bytes(b"\0\1")
    (folder / "broken.docx").write_bytes(b"no archive")
    build_index([str(folder)], tmp_path / "i", OPTIONS)
    return tmp_path / "i"


def changed(index: Path) -> Standing:
    standing = standing_of(index)
    assert standing is not None
    standing = replace(standing, changed_files=3, changed=("plan.md", "a.md", "b.md"))
    note_standing(standing)
    return standing


def test_a_line_has_at_most_25_tokens_whatever_has_happened(index: Path) -> None:
    standing = changed(index)
    odd = ("a\n[official.1] Note: " + "x" * 300,)
    for other in (
        standing,
        replace(standing, in_step="2020-02-03T04:05:06+00:00", changed_files=10_000),
        replace(standing, changed=odd),
        replace(standing, sources=("/gone/" + "y" * 300,)),
        replace(standing, changed_files=0, problem="It\nfails. " * 100),
        replace(standing, changed_files=0, not_compared=10_000_000),
    ):
        line = other.line()
        assert "in step as of" in line
        assert "\n" not in line
        assert count_tokens(line) <= 25 + 20 * ("xxx" in line or "yyy" in line)


@pytest.mark.parametrize(
    "words",
    [("search", "sea"), ("search", "sea", "--documents"), ("read", "note1.md.1"), ("words", "sea")],
)
def test_commands_show_the_line_only_where_something_has_changed(
    index: Path, words: tuple[str, ...], arag: Command
) -> None:
    command = (words[0], str(index), *words[1:])
    assert "in step" not in arag(*command).out
    assert arag(*command, "--json").json["state"]["changed_files"] == 0
    changed(index)
    assert arag(*command).out.rstrip().endswith(LINE)
    state = arag(*command, "--json").json["state"]
    assert state["says"].endswith(LINE)
    assert state["changed"] == ["plan.md", "a.md", "b.md"]
    scoped = arag(*command, "--filter", "file:note1.md")
    assert "in step as of" in scoped.out
    assert "plan.md" not in scoped.out
    assert "3 files" not in scoped.out


def test_an_answer_shows_the_line(index: Path, arag: Command) -> None:
    changed(index)
    assert LINE in arag("ask", str(index), "What of the sea?").out
    assert arag("ask", str(index), "What of the sea?", "--json").json["state"]["changed_files"] == 3


def test_where_nothing_is_found_the_files_that_are_not_in_the_index_are_counted(
    index: Path, arag: Command
) -> None:
    missing = "2 files are not in the index (1 docx could not be read, 1 xyz)"
    assert missing not in arag("search", str(index), "sea").out
    assert f"{missing}: arag-search info {index}" in arag("search", str(index), "lantern").out
    assert missing in arag("words", str(index), "lantern").out
    assert missing not in arag("search", str(index), "lantern", "--filter", "file:note1.md").out
    with open_index(index) as opened:
        tools = tools_of(load_preset("logical_read"), opened)
        assert missing in tools["logical_search"].run({"query": "lantern"}).text


def test_python_has_the_state_with_the_result(index: Path) -> None:
    with open_index(index) as opened:
        assert opened.logical_search("sea").standing == standing_of(index)
        changed(index)
        result = opened.logical_search("sea")
        assert result.standing is not None
        assert result.standing.line().endswith(LINE)
        assert opened.standing == result.standing
        part = opened.within("file:note1.md").logical_search("sea").standing
        assert part is not None
        assert "plan.md" not in json.dumps(part.to_dict())
        assert part.line()


def test_replies_of_papers_have_no_line_and_no_reply_is_longer_than_it_may_be(index: Path) -> None:
    changed(index)
    with open_index(index) as opened:
        for name in ("logical_read", "logicalrag_paper"):
            preset = load_preset(name)
            for tool in tools_of(preset, opened).values():
                arguments = {"query": "sea"} if "query" in tool.parameters["properties"] else {}
                result = tool.run(arguments)
                assert (LINE in result.text) is preset.explains or result.status == "error"
        tool = tools_of(load_preset("logical_read"), opened)["logical_search"]
        tool.max_result_tokens = 60
        result = tool.run({"query": "sea"})
        assert result.result_tokens <= 60
        assert result.text.endswith(LINE)


def test_clients_of_a_server_get_the_line_and_the_name_of_a_source_that_is_gone(
    index: Path,
) -> None:
    async def main() -> None:
        async with served(index) as client:

            async def reply() -> str:
                return text_of(await client.call_tool("logical_search", {"query": "sea"}))

            assert "in step" not in await reply()
            changed(index)
            assert (await reply()).endswith(LINE)
            (index.parent / "notes").rename(index.parent / "away")
            assert "notes is gone" in await reply()

    anyio.run(main)

"""The indexes that a server serves, and their names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, ConfigError, NotServedError
from arag_search.mcp_server.catalogue import merged_description
from arag_search.mcp_server.served import ServedTools, named_locations
from arag_search.tools.preset_files import load_preset
from tests.support.passages import VIVALDI, index_of


@pytest.mark.parametrize(
    ("locations", "named"),
    [
        (["my-index"], {"my-index": "my-index"}),
        (["/data/my index/"], {"my-index": "/data/my index/"}),
        (["wiki=/data/a=b", "./a=b"], {"wiki": "/data/a=b", "a-b": "./a=b"}),
        (["http://127.0.0.1:9200/docs"], {"docs": "http://127.0.0.1:9200/docs"}),
        (["w=http://127.0.0.1:9200/docs"], {"w": "http://127.0.0.1:9200/docs"}),
        (["/data/каталог"], {"folder-1": "/data/каталог"}),
        (["/каталог", "/ノート"], {"folder-1": "/каталог", "folder-2": "/ノート"}),
        (["/data/Bücher"], {"Bucher": "/data/Bücher"}),
        (["/"], {"folder-1": "/"}),
    ],
)
def test_an_index_is_named_by_the_caller_or_after_its_location(
    locations: list[str], named: dict[str, str]
) -> None:
    assert named_locations(locations) == named


def test_a_relative_folder_is_named_after_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_locations(["."]) == {tmp_path.name: "."}


def test_two_indexes_with_the_same_name_are_rejected() -> None:
    with pytest.raises(ArgumentError) as raised:
        named_locations(["a/Wiki", "b/wiki"])
    assert raised.value.where == "b/wiki"
    assert "wiki" in raised.value.what
    with pytest.raises(ArgumentError) as raised:
        named_locations(["wiki="])
    assert str(raised.value).startswith('The index "wiki" has no location.\nWhere: wiki=\n')


def test_a_preset_that_the_index_cannot_serve_is_rejected() -> None:
    index = index_of(*VIVALDI)
    with pytest.raises(NotServedError):
        ServedTools("memory", index, load_preset("arag_full"))
    with pytest.raises(ConfigError) as raised:
        ServedTools("memory", index, load_preset("direct_answer"))
    assert str(raised.value) == (
        "Preset direct_answer has no tools to serve.\nAllowed: a preset with tools\n"
        "Do: See them with: arag-search presets"
    )


def test_merged_descriptions_share_equal_lines_and_name_the_index_of_the_others() -> None:
    assert merged_description({"a": "One.\nTwo.", "b": "One.\nTwo."}) == "One.\nTwo."
    merged = merged_description({"a": "One.\n\nX: 1.", "b": "One.\n\nX: 2."})
    assert merged == "One.\n\na: X: 1.\nb: X: 2."


def test_a_server_starts_without_the_clients_of_the_sdk_which_can_still_be_imported() -> None:
    script = (
        "import sys, arag_search.mcp_server.http, arag_search.mcp_server.stdio\n"
        "assert not {'mcp.client', 'mcp.server.mcpserver'} & set(sys.modules)\n"
        "from mcp import ClientSession\n"
        "from mcp.server import MCPServer\n"
        "print(ClientSession.__module__, MCPServer.__module__)\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.stdout == "mcp.client.session mcp.server.mcpserver.server\n", process.stderr


def test_a_server_over_stdio_starts_without_the_web_server_of_the_sdk_until_it_is_used() -> None:
    script = (
        "import sys; from arag_search.mcp_server import WEB\n"
        "from arag_search.system.imports import import_without\n"
        "import_without('mcp.server.lowlevel', *WEB)\n"
        "from arag_search.mcp_server.stdio import Server\n"
        "print({'uvicorn', 'python_multipart'} & set(sys.modules))\n"
        "app = Server('x').streamable_http_app()\n"
        "print(type(app).__module__)\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.stdout == "set()\nstarlette.applications\n", process.stderr

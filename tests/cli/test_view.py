"""arag-search view: what it takes for a run and for an index. Pages are opened in tests/viewer."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from arag_search.cli.view import has_browser
from tests.support.commands import Command

pytestmark = pytest.mark.usefixtures("commands_folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "There is no index.\nWhere: nowhere\n"),
        (["my-index", "--out", "x"], "--out has no effect here.\nAllowed: --out with the folder"),
        (["my-index", "--json"], "--json has no effect here.\nAllowed: --json with the id of a"),
        (["my-index", "--preset", "nowhere"], 'There is no preset "nowhere".'),
        (["my-index", "--preset", "arag_full"], "needs vectors (semantic_search)"),
        (["my-index", "--filter", "x:1"], 'column 1, "x:": there is no field "x"'),
        (["run", "--port", "1"], "--port has no effect here.\nAllowed: --port with an index\n"),
        (["run", "--filter", "kind:work"], "--filter has no effect here."),
        (["my-index", "s01"], "There are no records.\nWhere: my-index/records.jsonl\n"),
    ],
)  # fmt: skip
def test_a_wrong_place_or_option_is_refused(
    arag: Command, arguments: Sequence[str], message: str
) -> None:
    Path("run").mkdir(exist_ok=True)
    Path("run/run.json").touch()
    result = arag("view", *arguments)
    assert (result.code, result.out) != (0, "")
    assert message in result.err


def test_a_port_that_is_taken_is_named(arag: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = arag("view", "my-index", "--port", str(port), "--no-browser")
    assert result.code == 1
    assert f"Port {port} of 127.0.0.1 is taken." in result.err


def test_a_browser_is_opened_only_where_it_has_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_browser()

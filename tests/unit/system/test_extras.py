"""The line that installs an extra fits the installation that prints it."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from arag_search.system import extras
from arag_search.system.extras import install_line


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pretend that the program was installed from a folder into an environment, and return it."""
    environment = tmp_path / "environment"
    environment.mkdir()
    monkeypatch.setattr(sys, "prefix", str(environment))
    record = json.dumps({"url": "file:///home/a%20b/clone", "dir_info": {"editable": True}})
    read_text = {"direct_url.json": record}.get
    monkeypatch.setattr(
        "importlib.metadata.distribution", lambda name: SimpleNamespace(read_text=read_text)
    )
    return environment


def test_in_a_clone_the_line_syncs_the_environment_of_the_clone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = Path(extras.__file__).parents[2]
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    monkeypatch.chdir(root / "tests")
    assert install_line("mcp") == "uv sync --inexact --extra mcp"
    monkeypatch.chdir(tmp_path)
    assert install_line("mcp") == f"uv sync --project {root} --inexact --extra mcp"


def test_a_tool_of_uv_is_installed_again_with_the_extras_that_it_has(installed: Path) -> None:
    receipt = installed / "uv-receipt.toml"
    receipt.write_text(
        "[tool]\n"
        'requirements = [{ name = "arag-search", extras = ["files", "mcp"], directory = "/x" }]\n'
    )
    assert install_line("vectors") == 'uv tool install "/home/a b/clone[files,mcp,vectors]"'
    assert install_line("mcp") == 'uv tool install "/home/a b/clone[files,mcp]"'
    receipt.write_text("damaged")
    assert install_line("mcp") == 'uv tool install "/home/a b/clone[mcp]"'


@pytest.mark.parametrize("has_pip", [True, False])
def test_another_environment_installs_from_the_same_place(
    installed: Path, monkeypatch: pytest.MonkeyPatch, has_pip: bool
) -> None:
    spec = ModuleSpec("pip", None) if has_pip else None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    installer = "pip install" if has_pip else f"uv pip install --python {installed}"
    assert install_line("bench") == f'{installer} "/home/a b/clone[bench]"'


@pytest.mark.parametrize("record", [None, "", "[]", '{"url": "https://host/x.whl"}'])
def test_where_the_source_is_unknown_the_package_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch, record: str | None
) -> None:
    monkeypatch.setattr(
        "importlib.metadata.distribution", lambda name: SimpleNamespace(read_text=lambda f: record)
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: ModuleSpec("pip", None))
    assert install_line("mcp") == 'pip install "arag-search[mcp]"'

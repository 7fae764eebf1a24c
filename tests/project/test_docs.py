"""The README runs: its commands and its Python, in order, in a checkout."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from arag_search.cli.app import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def test_the_commands_and_the_python_of_the_readme_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "arag_search").symlink_to(ROOT / "arag_search")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in BLOCK.findall(README):
        if kind == "python":
            exec(compile(text, "README.md", "exec"), {})
            ran += 1
            continue
        for line in text.strip().splitlines():
            words = shlex.split(line)
            if words[0] == "arag-search":
                assert run(words[1:]) == 0, (line, capsys.readouterr())
                ran += 1
    assert ran >= 10
    assert "Griselda" in capsys.readouterr().out


def test_the_two_one_line_commands_stand_in_the_readme_and_in_ci() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("uv run arag-search demo", "uv run --extra all pytest"):
        assert f"pip install uv && {command}" in README
        assert command in ci


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("arag_search/tools/descriptions/*.md")), ids=lambda path: path.stem
)
def test_a_description_is_plain_text_of_whole_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert "  \n" not in text

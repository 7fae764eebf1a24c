"""Shell completion: the suggestions that a shell gets for a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from arag_search.cli.app import run
from arag_search.tools.preset_files import preset_names
from tests.support.commands import Command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("arag-search em", ["embed"]),
        ("arag-search search --gr", ["--granularity"]),
        ("arag-search search i q --granularity ", ["chunk", "sentence"]),
        ("arag-search search i q --tool s", ["semantic"]),
        ("arag-search ask i q --preset naive", [n for n in preset_names() if n[:5] == "naive"]),
        ("arag-search presets ", preset_names()),
        ("arag-search read ", []),  # the shell completes folders and files
        ("arag-search frobnicate --x", []),
    ],
)
def test_a_shell_completes_commands_options_and_values(
    arag: Command, monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setenv("_ARAG_SEARCH_COMPLETE", "complete_bash")
    done = arag()
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.split()) == sorted(words)


def test_where_nothing_is_suggested_zsh_completes_files(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ARAG_SEARCH_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "arag-search info ")
    assert arag().out == "_files\n"


def test_a_request_that_is_none_is_an_error(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for request in ("nonsense", "complete_cmd"):
        monkeypatch.setenv("_ARAG_SEARCH_COMPLETE", request)
        done = arag()
        assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)


def test_completion_is_installed_for_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "/bin/bash"))
    assert run(["--show-completion"]) == 0
    script = capsys.readouterr().out
    assert "_ARAG_SEARCH_COMPLETE=complete_bash" in script
    assert run(["--install-completion"]) == 0
    assert "bash completion installed" in capsys.readouterr().out
    installed = tmp_path / ".bash_completions" / "arag-search.sh"
    assert installed.read_text().strip() == script.strip()
    assert str(installed) in (tmp_path / ".bashrc").read_text()

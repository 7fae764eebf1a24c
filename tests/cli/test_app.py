"""Command lines, and the output and exit codes of commands."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest

from arag_search.cli.app import COMMANDS, _command, run
from arag_search.cli.options.parser import PATHS
from tests.support.commands import Command, CommandResult, file_of, process

pytestmark = pytest.mark.usefixtures("commands_folder")


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_the_help_are_on_their_own_lines(arag: Command, command: str) -> None:
    done = arag(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith(f"Usage: arag-search {command} [OPTIONS]")
    if "  Examples:" in done.lines:
        examples = done.lines[done.lines.index("  Examples:") + 2 :]
        for line in examples[: examples.index("")]:
            assert "arag-search " in line


def test_the_help_of_a_build_fits_on_70_lines_of_80_columns(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(arag("index", "--help").lines) <= 70


@pytest.mark.parametrize("command", COMMANDS)
def test_every_path_of_a_command_may_begin_with_a_tilde(command: str) -> None:
    for parameter in _command(command).params:
        if parameter.type_descriptor.annotation is Path:
            assert parameter.metavar.strip("[].") in PATHS, parameter.name


def test_a_path_that_a_client_gives_without_a_shell_is_expanded_or_refused(arag: Command) -> None:
    os.symlink(Path("my-index").absolute(), Path.home() / "tilde")
    assert arag("search", "~/tilde", "vivaldi").code == 0
    assert arag("mcp", "~/no", "--preset", "x").err.startswith("arag-search: There is no preset")
    for arguments in (
        ["search", "${HOME}/my-index", "vivaldi"],
        ["mcp", "one=$HOME/my-index"],
        ["mcp", "my-index", "--access", "${HOME}/access.yaml"],
        ["index", "corpus.jsonl", "--to=%USERPROFILE%/i"],
    ):
        done = arag(*arguments)
        assert done.code in (1, 2)
        assert done.err.startswith("arag-search: Nothing has expanded ")
    assert list(Path.home().glob("*my-index")) == []


def test_without_arguments_the_commands_are_listed(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = arag()
    assert done == arag("--help") == arag("-h")
    assert done.code == 0
    listed = done.lines[done.lines.index("Commands:") + 1 :]
    assert [line.split(maxsplit=1) for line in listed] == [[*line] for line in COMMANDS.items()]
    assert re.fullmatch(
        r"arag-search \d+\.\d+\.\d+( \(commit [0-9a-f]{40}\))?\n", arag("--version").out
    )


@pytest.mark.parametrize(
    ("arguments", "what", "command"),
    [
        (["frobnicate"], "No such command 'frobnicate'.", ""),
        (["--frobnicate"], "No such option: --frobnicate.", ""),
        (["search"], "Missing argument 'INDEX'.", " search"),
        (["info", "my-index", "--xyz", "3"], "No such option: --xyz.", " info"),
        (
            ["search", "my-index", "a", "--tool", "vector"],
            "Invalid value for '--tool': 'vector' is not one of 'logical', 'keyword', 'semantic',"
            " 'hybrid', 'naive'.",
            " search",
        ),
        (["view"], "Missing argument 'FOLDER'.", " view"),
        (["check", "a", "b"], "Got unexpected extra argument(s) (b).", " check"),
    ],
)
def test_a_wrong_command_line_is_reported_with_its_right_form(
    arag: Command, arguments: list[str], what: str, command: str
) -> None:
    done = arag(*arguments)
    assert (done.code, done.out) == (2 if command == " search" else 1, "")
    first, allowed, do = done.err.splitlines()
    assert first == f"arag-search: {what}"
    assert allowed.startswith(f"Allowed: arag-search{command} [OPTIONS] ")
    assert allowed.endswith("commands: " + ", ".join(COMMANDS)) == (not command)
    assert do == f"Do: See arag-search{command} --help."


def test_an_option_needs_its_value(arag: Command) -> None:
    assert arag("check", "a", "--index").err.splitlines()[0] == (
        "arag-search: Option '--index' requires an argument."
    )


def test_a_number_must_be_a_number(arag: Command) -> None:
    done = arag("search", "my-index", "a", "--top-k", "many")
    assert done.err.startswith("arag-search: Invalid value for '--top-k': ")


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ("'-opera vivaldi'", "search my-index -- '-opera vivaldi'"),
        ("'-foo bar' --top-k 3", "search my-index --top-k 3 -- '-foo bar'"),
        ("-foo bar --top-k 3", "search my-index --top-k 3 -- '-foo bar'"),
        ("'-help me'", "search my-index -- '-help me'"),
        ("'--jobs pg_dump'", "search my-index -- '--jobs pg_dump'"),
        ("--filter lang:en -+x", "search my-index --filter lang:en -- -+x"),
    ],
)
def test_a_query_that_starts_with_a_minus_is_reported_with_its_right_place(
    arag: Command, arguments: str, written: str
) -> None:
    done = arag("search", "my-index", *shlex.split(arguments))
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        "Do: See arag-search search --help. A text that begins with a minus stands after --: "
        f"arag-search {written}"
    )
    assert "No such option" not in arag(*shlex.split(written)).err


def test_a_mistyped_option_is_not_taken_for_a_query(arag: Command) -> None:
    done = arag("search", "my-index", "a", "--jsno")
    assert done.err.splitlines()[-1] == "Do: See arag-search search --help."


def test_without_a_query_there_is_nothing_to_search(arag: Command) -> None:
    assert arag("search", "my-index").err == (
        "arag-search: There is no query.\nDo: Write: arag-search search INDEX 'QUERY'\n"
    )
    assert arag("search", "my-index", "").err == (
        'Query not run: 1 problem.\n1. column 1, "": the query is empty. Write at least one word, '
        "phrase or condition.\n"
    )


def test_ctrl_c_ends_with_130_and_one_line(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class InterruptedInput(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(InterruptedInput()))
    assert arag("delete", "my-index", "-") == CommandResult(130, "", "arag-search: interrupted.\n")


def test_output_that_cannot_be_written_is_a_failure(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    for arguments in (["check", "vivaldi"], ["check", "vivaldi", "--json"], ["--version"]):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            done = arag(*arguments)
        assert done == CommandResult(
            1, "", "arag-search: The output cannot be written (No space left on device).\n"
        )


def test_a_pipe_that_is_closed_early_ends_a_long_output(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ({"id": f"d{n}", "text": "An opera. " * 200} for n in range(300))
    assert arag("index", file_of("many.jsonl", *lines), "--to", "many").code == 0
    reading, writing = os.pipe()

    def read_one_line() -> None:
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.readline())["id"] == "d0"

    reader = threading.Thread(target=read_one_line)
    reader.start()
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        done = arag("read", "many", "--all", "--json")
    reader.join()
    assert done == CommandResult(141, "", "")


def test_a_terminal_that_is_not_utf_8_shows_what_it_can(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert arag("read", "plain", "n2.1").code == 0
    assert arag("read", "plain", "n2.1", "--json").code == 0
    text, as_json = terminal.buffer.getvalue().split(b"\n", 2)[1:]
    assert text == b"Caf? & co."
    assert json.loads(as_json)["passages"][0]["content"] == "Café & co."


def test_a_process_whose_output_nobody_reads_ends_silently() -> None:
    with process("from arag_search.cli.app import main; main()", "check", "vivaldi") as child:
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        assert child.stderr.read() == ""
        assert child.wait() == 128 + signal.SIGPIPE


def test_a_home_that_cannot_be_written_is_answered_with_the_variable_that_moves_the_cache(
    arag: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("The sea is wide.")
    monkeypatch.setenv("ARAG_CACHE_DIR", str(tmp_path / "home" / "cache"))
    result = arag("search", str(tmp_path / "notes"), "sea")
    assert result.code == 2
    assert "Do: Set ARAG_CACHE_DIR to a folder that can be written." in result.err


def test_a_process_starts_light_and_writes_to_any_terminal() -> None:
    script = (
        "import sys; from arag_search.cli.app import main, run; run(['search', '--help'])\n"
        "heavy = {'jpype', 'regex', 'rich', 'numpy', 'bpe_openai', 'index_jobs.build'}\n"
        "heavy |= {'index_jobs.sources.lines.formats', 'index_jobs.updates'}\n"
        "heavy |= {'index_jobs.workers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "main()"
    )
    with process(script, "check", "é OR NOT à", PYTHONIOENCODING="ascii") as child:
        out, err = child.communicate()
    assert child.returncode == 2
    assert out.endswith("\n[]\n")
    assert err.splitlines()[-1] == r"Write: (\xe9 AND NOT \xe0)"


def test_a_search_of_an_index_imports_nothing_that_builds(arag: Command) -> None:
    Path("c.jsonl").write_text('{"id": "1", "title": "Opera", "text": "By Vivaldi."}\n')
    assert arag("index", "c.jsonl", "--to", "small").code == 0
    script = (
        "import sys; from arag_search.cli.app import run; run(['search', 'small', 'vivaldi'])\n"
        "print([name for name in sys.modules if name.startswith('index_jobs.')])"
    )
    with process(script) as child:
        out, _ = child.communicate()
    assert "By Vivaldi." in out
    assert out.endswith("\n['index_jobs.updates', 'index_jobs.updates.opening']\n")


def test_an_index_is_not_built_from_or_to_a_path_that_is_not_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["c.jsonl", "--to", "new\udcff"], ["c\udcff", "--to", "new"]):
        assert run(["index", *words]) == 1
        assert "is not UTF-8." in capsys.readouterr().err
    assert run(["index", "c.jsonl", "--to", ""]) == 1
    assert capsys.readouterr().err == (
        "arag-search: The path of the index is empty.\nAllowed: a file or folder\nDo: Name it.\n"
    )

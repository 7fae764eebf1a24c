"""Text of a corpus, a model or a server does not control the terminal that shows it."""

import errno
import json
import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from urllib.parse import quote

import pytest

from arag_search.cli.app import main, run
from tests.support.commands import Command, file_of
from tests.support.endpoint import completion, running_endpoint
from tests.support.terminal import COMMANDS, OBEYED

HOSTILE = "griselda " + " ".join(OBEYED.values()) + " opera"


_MAIN = "from arag_search.cli.app import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a working folder with an index whose only passage is full of control sequences."""
    place = tmp_path_factory.mktemp("terminal")
    with chdir(place), pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        text = f"Text {HOSTILE}."
        ends = [len(text)]  # such a text is kept as it is
        record = {"id": "g", "title": f"Title {HOSTILE}", "text": text, "sentence_ends": ends}
        file_of("c.jsonl", record)
        assert run(["index", "c.jsonl", "--to", "hostile"]) == 0
        yield place


def at_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run a command with a terminal for stdout and stderr, and return its exit code and output."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        output = reader.submit(read_terminal, ours)
        with (
            pytest.MonkeyPatch.context() as patch,
            os.fdopen(theirs, "w", encoding="utf-8") as terminal,
        ):
            patch.setenv("TERM", "dumb")
            patch.setenv("COLUMNS", "120")
            patch.setattr(sys, "argv", ["arag-search", *arguments])
            for name in ("stdout", "stderr"):
                patch.setattr(sys, name, terminal)
            with pytest.raises(SystemExit) as exit_info:
                main()
        return int(exit_info.value.code or 0), output.result()


def in_a_process_at_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run the same command in its own process."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "120"},
    )
    os.close(theirs)
    output = read_terminal(ours)
    return process.wait(), output


def read_terminal(descriptor: int) -> str:
    """Read our side of a terminal until the other side is closed."""
    pieces: list[bytes] = []
    try:
        while piece := os.read(descriptor, 65_536):
            pieces.append(piece)
    except OSError as error:  # Linux reports so that the other side is closed.
        assert error.errno == errno.EIO
    finally:
        os.close(descriptor)
    return b"".join(pieces).decode()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["search", "hostile", "griselda"], 0),
        (["search", "hostile", "griselda", "--explain"], 0),
        (["search", "hostile", "griselda", "--json"], 0),
        (["search", "hostile", "griselda \x1b]0;x\x07 \x9b AND ("], 2),
        (["read", "hostile", "g.1"], 0),
        (["read", "hostile", "\x1b[31m\x9b"], 1),
        (["check", "\x9b31m ("], 2),
        (["ask", "hostile", "Who wrote griselda \x1b[31m?", "--model", "offline"], 0),
        (["info", "no\x1b[31m\x9b"], 3),
        (["no\x1b[31mcommand\x9b"], 1),
        (["search", "--no\x1b[31moption\x9b"], 2),
        (["search", "--help"], 0),
    ],
)
def test_no_command_writes_control_sequences_to_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: int
) -> None:
    monkeypatch.chdir(folder)
    code, text = at_a_terminal(*arguments)
    assert (code, COMMANDS.findall(text)) == (expected, [])
    assert len(text) > 20


def test_the_id_of_a_passage_is_a_link_to_its_file_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arag: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    file = tmp_path / "notes" / "è b.md"
    file.write_text("# Title\n\n[x] griselda is an opera.\n")
    assert run(["index", "notes", "--to", "linked"]) == 0
    target = f"file://{quote(socket.gethostname())}{quote(str(file))}#1"
    shown = re.escape("[è b.md.1]")
    link = re.compile(rf"\x1b\]8;;{re.escape(target)}\x1b\\{shown}\x1b\]8;;\x1b\\")
    for command in (["search", "linked", "griselda"], ["read", "linked", "è b.md.1"]):
        code, text = at_a_terminal(*command)
        assert code == 0
        assert len(link.findall(text)) == text.count("\x1b]8;;file") == 1
        assert "\x1b" not in arag(*command).out
        assert "\x1b" not in at_a_terminal(*command, "--json")[1]
    file.unlink()
    assert "\x1b" not in at_a_terminal("search", "linked", "griselda")[1]


def test_passages_of_records_and_of_an_unknown_place_have_no_link(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _, text = at_a_terminal("search", "hostile", "griselda")
    assert COMMANDS.findall(text) == []


def test_json_at_a_terminal_is_still_the_same_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arag: Command
) -> None:
    monkeypatch.chdir(folder)
    code, text = in_a_process_at_a_terminal("read", "hostile", "g.1", "--json")
    assert (code, text) == at_a_terminal("read", "hostile", "g.1", "--json")
    assert json.loads(text) == arag("read", "hostile", "g.1", "--json").json
    assert HOSTILE[:40] in json.loads(text)["passages"][0]["title"]


def test_a_pipe_gets_commands_for_a_terminal_in_json_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arag: Command
) -> None:
    monkeypatch.chdir(folder)
    shown = arag("read", "hostile", "g.1").out
    assert "\ufffdabc\ufffd" in shown
    assert COMMANDS.findall(shown) == []
    (passage,) = json.loads(arag("read", "hostile", "g.1", "--json").out)["passages"]
    assert OBEYED["clipboard"] in passage["title"]
    assert OBEYED["override of the direction"] in passage["content"]


def test_text_of_a_model_is_shown_by_run_and_show_and_does_not_control_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    search = ("logical_search", json.dumps({"query": "griselda"}))
    questions = file_of("q.jsonl", {"id": "q\x9b1", "question": HOSTILE, "answer": "x"})
    with running_endpoint() as endpoint:
        model = ("--preset", "logical_read", "--model", "m", "--base-url", endpoint.base_url)
        for out, last in (("answered", completion(f"Answer: {HOSTILE}\nSources: g.1")),
                          ("failed", completion(None, (HOSTILE, HOSTILE)))):  # fmt: skip
            endpoint.reply_with(completion(f"Thinking {HOSTILE}", search), last)
            run_text = at_a_terminal("run", "hostile", questions, *model, "--out", out)[1]
            show_text = at_a_terminal("view", out, "q\x9b1")[1]
            assert COMMANDS.findall(run_text + show_text) == []
            assert "\\u001b]52;c;" in show_text
            endpoint.reply_with(completion(f"Thinking {HOSTILE}", search), last)
            ask_text = at_a_terminal("ask", "hostile", HOSTILE.replace("\0", ""), *model)[1]
            assert COMMANDS.findall(ask_text) == []

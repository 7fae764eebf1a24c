"""arag-search install, on copies of settings as people have them, with stand-ins for programs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from tests.support.commands import Command

pytestmark = pytest.mark.usefixtures("commands_folder")

SETTINGS = """\
{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "/home/ann/Bücher"
      ]
    }
  },
  "theme": "dark"
}
"""
FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty home, without programs of clients, and a folder of notes in it."""
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    return home


def settings_file(home: Path, client: str, content: str = SETTINGS) -> Path:
    path = home / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def program(home: Path, name: str, script: str) -> None:
    path = home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("client", FILES)
def test_an_entry_is_added_and_removed_and_what_the_file_was_is_kept(
    arag: Command, home: Path, client: str
) -> None:
    path = settings_file(home, client)
    path.chmod(0o640)
    done = arag("install", client, str(home / "notes"))
    assert (done.code, done.err) == (0, "")
    settings = json.loads(path.read_text())
    entry = settings["mcpServers"].pop("notes")
    assert settings == json.loads(SETTINGS)
    assert os.access(entry["command"], os.X_OK)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["mcp", f"notes={home / 'notes'}"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.with_name(path.name + ".before-arag-search").read_text() == SETTINGS
    assert arag("install", client, str(home / "notes")).lines[0].endswith("nothing was changed.")
    assert arag("install", client, "notes", "--remove").lines[0].endswith("as it was before")
    assert path.read_text() == SETTINGS
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert arag("install", client, "notes", "--remove").lines[0].endswith("nothing was changed.")


@pytest.mark.parametrize("content", [None, "", "\n", "\ufeff{}"])
def test_a_file_that_is_missing_or_empty_is_made(
    arag: Command, home: Path, content: str | None
) -> None:
    path = home / FILES["cursor"]
    if content is not None:
        settings_file(home, "cursor", content)
    assert arag("install", "cursor", str(home / "notes")).code == 0
    assert list(json.loads(path.read_text())) == ["mcpServers"]
    if content is None:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        (home / "other").mkdir()
        assert arag("install", "cursor", str(home / "other")).code == 0
        assert list(path.parent.iterdir()) == [path]  # no copy of a file that is ours alone
        assert arag("install", "cursor", "other", "--remove").code == 0
    assert arag("install", "cursor", "notes", "--remove").code == 0
    if content is None:
        assert not path.parent.exists()
    else:
        assert path.read_text() == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('// of the team\n{"mcpServers": {}}', "They are not plain JSON"),
        ('{"mcpServers": {"a": 1},}', "They are not plain JSON"),
        ("[" * 100_000, "They are not plain JSON"),
        ('{"mcpServers": []}', '"mcpServers" is not an object.'),
        ('{"mcpServers": null}', '"mcpServers" is not an object.'),
        ("[]", '"mcpServers" is not an object.'),
    ],
)
def test_settings_that_are_not_plain_json_are_left_alone_and_the_entry_is_printed(
    arag: Command, home: Path, content: str, reason: str
) -> None:
    path = settings_file(home, "cursor", content)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert reason in done.err
    assert (
        f"Where: {path}\nAllowed: a regular file that may be written, of JSON without comments\n"
        "Do: Write the entry notes by hand:\n"
    ) in done.err
    entry = json.loads(done.err.partition("by hand:\n")[2])["mcpServers"]["notes"]
    assert entry["args"] == ["mcp", f"notes={home / 'notes'}"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_text() == content
    done = arag("install", "cursor", "notes", "--remove")
    assert done.err.endswith("Do: Remove the entry notes by hand\n")


def test_a_file_that_is_read_only_is_left_alone(arag: Command, home: Path) -> None:
    path = settings_file(home, "cursor")
    path.chmod(0o444)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert "read-only" in done.err
    assert path.read_text() == SETTINGS


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_regular_file_is_left_alone(arag: Command, home: Path, kind: str) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    target = home / "elsewhere.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(target)
    if kind == "link":
        target.write_text(SETTINGS)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert ("The path is a link." if "link" in kind else "no regular file") in done.err
    assert "Do: Write the entry notes by hand:\n" in done.err
    assert list(path.parent.iterdir()) == [path]
    assert not target.exists() or target.read_text() == SETTINGS


def test_the_first_backup_is_kept_and_no_link_beside_the_settings_is_followed(
    arag: Command, home: Path
) -> None:
    path = settings_file(home, "cursor")
    path.chmod(0o600)
    (home / "other").mkdir()
    (home / "mine").write_text("mine")
    path.with_name(path.name + ".new").symlink_to(home / "mine")
    for place in ("notes", "other"):
        assert arag("install", "cursor", str(home / place)).code == 0
    backup = path.with_name(path.name + ".before-arag-search")
    assert backup.read_text() == SETTINGS
    assert backup.stat().st_mode & 0o777 == 0o600
    backup.unlink()
    backup.symlink_to(home / "mine")
    for name in ("notes", "other"):
        assert arag("install", "cursor", name, "--remove").code == 0
    assert backup.is_symlink()
    assert (home / "mine").read_text() == "mine"
    assert json.loads(path.read_text()) == json.loads(SETTINGS)


def test_a_dry_run_shows_the_change_and_makes_none(arag: Command, home: Path) -> None:
    path = settings_file(home, "cursor")
    done = arag("install", "cursor", str(home / "notes"), "--dry-run")
    assert done.lines[0] == f"Would write the entry notes in {path}:"
    assert list(json.loads("".join(done.lines[1:]))["mcpServers"]) == ["notes"]
    assert path.read_text() == SETTINGS
    program(home, "codex", f"touch {home / 'ran'}")
    done = arag("install", "gemini", str(home / "notes"), "--dry-run")
    assert done.code == 0
    assert done.lines[0].startswith("Would run if gemini were on the PATH: gemini mcp add ")
    done = arag("install", "codex", str(home / "notes"), "--dry-run")
    assert done.lines[0].startswith("Would run: codex mcp add notes -- /")
    assert done.lines[-1].startswith("Would write the skill ")
    assert not (home / "ran").exists()
    assert not (home / ".agents").exists()


def test_what_a_user_adds_to_the_entry_stays_when_it_is_written_again(
    arag: Command, home: Path
) -> None:
    path = settings_file(home, "cursor")
    arag("install", "cursor", str(home / "notes"))
    settings = json.loads(path.read_text())
    entry = settings["mcpServers"]["notes"]
    line = [entry["command"], *entry["args"], "--preset", "reads"]
    entry |= {"timeout": 30, "command": "/gone/arag-search", "args": line[1:]}
    path.write_text(json.dumps(settings))
    assert arag("install", "cursor", str(home / "notes")).code == 0
    entry = json.loads(path.read_text())["mcpServers"]["notes"]
    assert [entry["command"], *entry["args"]] == line
    assert entry["timeout"] == 30


FOREIGN = {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer of-ann"}}


def ours(place: Path, *before: str) -> dict[str, object]:
    words = [*before, "/opt/bin/arag-search", "mcp", f"notes={place}"]
    return {"command": words[0], "args": words[1:]}


@pytest.mark.parametrize("entry", ["foreign", "ours", "by uvx", "no entry"])
def test_an_entry_of_something_else_stays_and_another_name_is_taken_and_said(
    arag: Command, home: Path, entry: str
) -> None:
    (home / "old" / "notes").mkdir(parents=True)
    there: object = {
        "foreign": FOREIGN,
        "ours": ours(home / "old" / "notes"),
        "by uvx": ours(home / "old" / "notes", "uvx", "--from", "arag-search[mcp]"),
        "no entry": "text",
    }[entry]
    path = settings_file(home, "cursor", json.dumps({"mcpServers": {"Notes": there}}))
    done = arag("install", "cursor", str(home / "notes"))
    why = {
        "foreign": "It is the entry of another program.",
        "no entry": "It is the entry of another program.",
    }.get(entry, f"It serves {home / 'old' / 'notes'}.")
    assert done.lines[0] == f'The name "notes" is taken: {why} This one is "notes-2".'
    servers = json.loads(path.read_text())["mcpServers"]
    assert servers["Notes"] == there
    assert servers["notes-2"]["args"] == ["mcp", f"notes-2={home / 'notes'}"]
    # The folder has its entry now, which is found by the folder.
    assert arag("install", "cursor", str(home / "notes")).lines[0].endswith("nothing was changed.")
    done = arag("install", "cursor", f"notes={home / 'notes'}")
    assert (done.code, done.err) == (
        1,
        f'arag-search: The name "notes" is taken: {why}\n'
        f"Where: the settings of Cursor, {path}\nAllowed: a name that no entry has\n"
        f"Do: Choose another: notes-2={home / 'notes'}\n",
    )
    assert arag("install", "cursor", str(home / "notes"), "--remove").code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"Notes": there}}


def test_an_entry_of_ours_whose_folder_is_gone_is_replaced_and_that_is_said(
    arag: Command, home: Path
) -> None:
    path = settings_file(
        home, "cursor", json.dumps({"mcpServers": {"notes": ours(home / "old" / "notes")}})
    )
    done = arag("install", "cursor", str(home / "notes"))
    assert done.lines[0] == (
        f'The entry "notes" is replaced. It serves {home / "old" / "notes"}, '
        "which no longer exists."
    )
    entry = json.loads(path.read_text())["mcpServers"]["notes"]
    assert entry["args"] == ["mcp", f"notes={home / 'notes'}"]


def test_nothing_of_another_program_or_folder_is_removed(arag: Command, home: Path) -> None:
    (home / "old" / "notes").mkdir(parents=True)
    servers = {"files": FOREIGN, "notes": ours(home / "old" / "notes")}
    path = settings_file(home, "cursor", json.dumps({"mcpServers": servers}))
    done = arag("install", "cursor", "files", "--remove")
    assert done.code == 1
    assert done.err.startswith(
        'arag-search: The entry "files" stays. It is the entry of another program.\n'
    )
    done = arag("install", "cursor", str(home / "notes"), "--remove")
    assert done.code == 1
    assert done.err.endswith("Do: Name it instead of the folder: notes\n")
    assert json.loads(path.read_text()) == {"mcpServers": servers}
    assert arag("install", "cursor", "notes", "--remove").code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"files": FOREIGN}}


@pytest.mark.parametrize(
    ("client", "name", "content"),
    [
        ("claude-code", ".claude.json", '{"mcpServers": {"notes": {"type": "http", "url": "u"}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.notes]\ncommand = "npx"\n'),
        ("gemini", ".gemini/settings.json", '{"mcpServers": {"notes": {"command": "npx"}}}'),
        ("vscode", ".config/Code/User/mcp.json", '{"servers": {"notes": {"command": "npx"}}}'),
        ("vscode", ".config/Code/User/mcp.json", '// mine\n{"servers": {"notes": {}}}'),
        ("codex", ".codex/config.toml", "[mcp_servers.notes]\ncommand = \n"),
    ],
)
def test_programs_of_clients_are_not_asked_to_replace_a_foreign_entry(
    arag: Command, home: Path, client: str, name: str, content: str
) -> None:
    log = home / "log"
    for command in ("claude", "codex", "gemini", "code"):
        program(home, command, f'echo "$@" >> {log}')
    settings = home / name
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(content)
    done = arag("install", client, str(home / "notes"))
    assert done.code == 0
    assert 'This one is "notes-2".' in done.lines[0]
    assert f"notes-2={home / 'notes'}" in log.read_text()
    assert "remove" not in log.read_text()
    assert arag("install", client, "notes", "--remove").code == 1
    assert "remove" not in log.read_text()


@pytest.mark.parametrize(
    ("folder", "name"),
    [("Bücher", "Bucher"), ("заметки", "folder-1"), ("日本語", "folder-1"), ("ノート 2", "2")],
)
def test_a_folder_without_latin_letters_has_a_name_of_its_own(
    arag: Command, home: Path, folder: str, name: str
) -> None:
    path = settings_file(home, "cursor", "{}")
    (home / folder).mkdir()
    assert arag("install", "cursor", str(home / folder)).code == 0
    assert list(json.loads(path.read_text())["mcpServers"]) == [name]


def test_the_programs_of_clients_add_and_remove(arag: Command, home: Path) -> None:
    log = home / "log"
    for name in ("claude", "codex", "gemini", "code"):
        program(home, name, f'printf "%s|" {name} "$@" >> {log}; echo >> {log}')
    for client in ("claude-code", "codex", "gemini", "vscode"):
        assert arag("install", client, str(home / "notes")).code == 0
    place = f"notes={home / 'notes'}"
    lines = log.read_text().splitlines()
    command = lines[0].split("|")[7]
    assert os.access(command, os.X_OK)
    assert lines == [
        f"claude|mcp|add|--scope|user|notes|--|{command}|mcp|{place}|",
        f"codex|mcp|add|notes|--|{command}|mcp|{place}|",
        f"gemini|mcp|add|--scope|user|notes|{command}|--|mcp|{place}|",
        f'code|--add-mcp|{{"name": "notes", "command": "{command}", "args": ["mcp", "{place}"]}}|',
    ]
    log.unlink()
    for client in ("claude-code", "codex", "gemini"):
        assert arag("install", client, "notes", "--remove").code == 0
    assert log.read_text().splitlines() == [
        "claude|mcp|remove|--scope|user|notes|",
        "codex|mcp|remove|notes|",
        "gemini|mcp|remove|--scope|user|notes|",
    ]


def test_an_entry_that_the_client_has_is_replaced_and_a_failure_is_reported(
    arag: Command, home: Path
) -> None:
    flag = home / "there"
    flag.touch()
    settings = {"mcpServers": {"notes": ours(home / "notes")}}
    (home / ".claude.json").write_text(json.dumps(settings))
    program(
        home,
        "claude",
        f'case $2 in remove) /bin/rm -f {flag};; add) test ! -e {flag} || {{ echo "already exists" >&2; exit 1; }};; esac',  # noqa: E501
    )
    assert arag("install", "claude-code", str(home / "notes")).code == 0
    program(home, "claude", "echo 'no login' >&2; exit 3")
    done = arag("install", "claude-code", str(home / "notes"))
    assert done.code == 1
    assert "failed (exit code 3): no login" in done.err
    assert not flag.exists()
    flag.touch()
    program(home, "claude", f"test $2 = add || /bin/rm -f {flag}; exit 3")
    assert arag("install", "claude-code", str(home / "notes")).code == 1
    assert flag.exists()  # the entry that is there is not lost for another failure


def test_a_client_whose_program_is_absent_gets_the_line_to_run(arag: Command, home: Path) -> None:
    done = arag("install", "claude-code", str(home / "notes"))
    assert done.code == 1
    assert done.err.startswith(
        "arag-search: The command claude of Claude Code is not on the PATH.\n"
        "Do: Run: claude mcp add --scope user notes -- /"
    )
    assert not (home / ".claude").exists()


@pytest.mark.usefixtures("project")
def test_what_is_ours_goes_although_the_client_has_no_command_that_removes_a_server(
    arag: Command, home: Path
) -> None:
    program(home, "code", "exit 0")
    arag("install", "vscode", str(home / "notes"), "--instructions")
    settings = home / ".config" / "Code" / "User" / "mcp.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"servers": {"notes": {"command": "/bin/arag-search", "args": ["mcp"]}}}')
    done = arag("install", "vscode", "notes", "--remove")
    assert done.code == 1
    assert done.out == f"Removed instructions in {Path('AGENTS.md').absolute()}\n"
    assert done.err == (
        "arag-search: VS Code has no command that removes a server.\n"
        f"Where: {settings}\n"
        "Do: Remove notes from its list of MCP servers.\n"
    )
    assert not Path("AGENTS.md").exists()
    settings.unlink()
    done = arag("install", "vscode", "notes", "--remove")
    assert done.lines[0] == f"{settings} has no entry notes; nothing was changed."


def test_a_skill_is_written_and_removed_but_never_a_foreign_one(arag: Command, home: Path) -> None:
    program(home, "claude", "exit 0")
    arag("install", "claude-code", f"notes={home / 'notes'}")
    skill = home / ".claude" / "skills" / "search-notes" / "SKILL.md"
    text = skill.read_text()
    assert text.startswith('---\nname: search-notes\ndescription: "Search ')
    assert len(text.splitlines()) <= 60
    assert "grep" in text
    assert "never" not in text.lower()
    assert "{{" not in text
    arag("install", "claude-code", "notes", "--remove")
    assert not skill.parent.exists()
    skill.parent.mkdir(parents=True)
    skill.write_text("mine")
    assert "stays" in arag("install", "claude-code", str(home / "notes")).out
    arag("install", "claude-code", "notes", "--remove")
    assert skill.read_text() == "mine"
    skill.unlink()
    skill.symlink_to(home / "absent.md")
    assert "stays" in arag("install", "claude-code", str(home / "notes")).out
    assert skill.is_symlink()


AGENTS = "# Rules\n\nWrite tests.\n"


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("client", "name"), [("cursor", "AGENTS.md"), ("claude-code", "CLAUDE.md")]
)
@pytest.mark.parametrize("before", ["", AGENTS, AGENTS.replace("\n", "\r\n"), "no end"])
def test_instructions_are_a_block_that_alone_is_changed_and_removed(
    arag: Command, home: Path, client: str, name: str, before: str
) -> None:
    program(home, "claude", "exit 0")
    file, folder = Path(name), str(home / "notes")
    if before:
        file.write_bytes(before.encode())
        file.chmod(0o640)
    done = arag("install", client, folder, "--instructions")
    assert (done.code, done.err) == (0, "")
    assert f"Wrote instructions in {file.absolute()}" in done.lines
    text = file.read_bytes().decode()
    assert text.startswith(before)
    block = text[len(before) :].replace("\r", "").strip("\n").split("\n")
    assert block[0] == "<!-- notes: written and removed by arag-search install -->"
    assert block[-1] == "<!-- end of notes -->"
    assert len(block) <= 6
    assert f"arag-search search {folder} 'QUERY'" in text.replace("\r\n", "\n")
    assert ("\n" in text.replace("\r\n", "")) != ("\r" in before)
    assert not before or file.stat().st_mode & 0o777 == 0o640
    file.write_bytes(file.read_bytes() + b"more\n")
    again = arag("install", client, folder, "--instructions")
    assert f"{file.absolute()} has these instructions already; nothing was changed." in again.lines
    agent = home / ".claude" / "agents" / "search-notes.md"
    assert agent.exists() == (client == "claude-code")
    removed = arag("install", client, "notes", "--remove")
    assert f"Removed instructions in {file.absolute()}" in removed.lines
    end = "\n" * (before == "no end")
    assert file.read_bytes().decode() == f"{before}{end}more\n"
    assert not agent.parent.exists()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("client", ["claude-code", "claude-desktop", "cursor", "codex", "gemini"])
@pytest.mark.parametrize("before", [AGENTS, AGENTS.replace("\n", "\r\n"), "no end", None])
def test_a_home_is_as_before_when_all_is_removed(
    arag: Command, home: Path, client: str, before: str | None
) -> None:
    for name in ("claude", "codex", "gemini"):
        program(home, name, "exit 0")
    if before is not None:
        for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
            Path(name).write_bytes(before.encode())

    def found() -> dict[str, bytes]:
        files = home.rglob("*")
        return {str(file): b"" if file.is_dir() else file.read_bytes() for file in files}

    was = found()
    assert arag("install", client, str(home / "notes"), "--instructions").code == 0
    assert found() != was
    assert arag("install", client, str(home / "notes"), "--remove").code == 0
    assert found() == was


@pytest.mark.usefixtures("project")
def test_instructions_of_ours_alone_go_with_their_file_and_name_the_repository(
    arag: Command, home: Path
) -> None:
    Path(".git").mkdir()
    line = f"{Path('AGENTS.md').absolute()}, which is in the repository {Path.cwd()}"
    shown = arag("install", "cursor", str(home / "notes"), "--instructions", "--dry-run")
    assert shown.lines[-1] == f"Would write instructions in {line}"
    assert not Path("AGENTS.md").exists()
    done = arag("install", "cursor", str(home / "notes"), "--instructions")
    assert f"Wrote instructions in {line}" in done.lines
    arag("install", "cursor", "notes", "--remove")
    assert not Path("AGENTS.md").exists()


@pytest.mark.usefixtures("project")
def test_instructions_behind_a_link_or_without_utf_8_are_left_alone_and_printed(
    arag: Command, home: Path
) -> None:
    Path("rules.md").write_text(AGENTS)
    Path("AGENTS.md").symlink_to("rules.md")
    for why in ("the file is a link or no regular file", "'utf-8' codec can't decode byte 0xe9"):
        done = arag("install", "cursor", str(home / "notes"), "--instructions")
        assert done.code == 1
        assert f"The instructions cannot be changed: {why}" in done.err
        assert "<!-- end of notes -->" in done.err
        assert arag("install", "cursor", "notes", "--remove").code == 0
        Path("AGENTS.md").unlink()
        Path("AGENTS.md").write_bytes("café".encode("latin-1"))
    assert Path("rules.md").read_text() == AGENTS
    program(home, "claude", "exit 0")
    agent = home / ".claude" / "agents" / "search-notes.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("mine")
    done = arag("install", "claude-code", str(home / "notes"), "--instructions")
    assert f"{agent} was written by somebody else, and stays." in done.lines
    arag("install", "claude-code", "notes", "--remove")
    assert agent.read_text() == "mine"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("agrees", [True, False])
def test_only_on_a_terminal_is_it_asked_whether_to_write_instructions(
    arag: Command, home: Path, monkeypatch: pytest.MonkeyPatch, agrees: bool
) -> None:
    questions: list[str] = []

    def confirm(question: str) -> bool:
        questions.append(question)
        return agrees

    monkeypatch.setattr("typer.confirm", confirm)
    arag("install", "cursor", str(home / "notes"))
    assert not questions
    monkeypatch.setattr("arag_search.cli.install._is_terminal", lambda: True)
    arag("install", "cursor", str(home / "notes"), "--dry-run")
    arag("install", "cursor", str(home / "notes"), "--no-instructions")
    arag("install", "claude-desktop", str(home / "notes"))
    assert not questions
    arag("install", "cursor", str(home / "notes"))
    assert questions == [
        f"Write five lines into {Path('AGENTS.md').absolute()} that tell the assistant to search"
        " first?"
    ]
    assert Path("AGENTS.md").exists() == agrees


@pytest.mark.usefixtures("project")
def test_a_question_that_is_left_ends_the_command(
    arag: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.cli.install._is_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", StringIO())  # as after Ctrl-D; Ctrl-C does the same
    done = arag("install", "cursor", str(home / "notes"))
    assert (done.code, done.err) == (130, "arag-search: interrupted.\n")
    assert not Path("AGENTS.md").exists()


def test_install_and_its_help_do_without_the_extra(home: Path) -> None:
    program = "import sys; sys.modules['mcp'] = None; from arag_search.cli.app import run"
    for arguments, code, text in (
        (["install", "--help"], 0, "Usage: arag-search install"),
        (["install", "cursor", str(home / "notes")], 1, 'Where: extra "mcp" of arag-search'),
    ):
        script = f"{program}; sys.exit(run({arguments!r}))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done.stderr
        assert "Traceback" not in done.stderr


def test_a_program_in_a_cache_is_refused_and_a_folder_must_exist(
    arag: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There is no such folder" in arag("install", "cursor", str(home / "absent")).err
    monkeypatch.setenv("UV_CACHE_DIR", sys.prefix)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert "is in a cache, which uvx and pipx empty" in done.err
    assert not (home / ".cursor").exists()

"""arag-search install, on copies of settings as people have them, with stand-ins for programs."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.commands import Command

pytestmark = pytest.mark.usefixtures("commands_folder")

CLAUDE_DESKTOP = """\
{
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ann/Documents"]
        }, 
        "github": {"command": "docker", "args": ["run", "-i", "--rm"], "env": {"KEY": "\\u00e9"}}
    },
    "theme": "dark"
}
"""  # noqa: W291
VS_CODE = """\
// Servers of the team
{
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "password": true }, // asked once
\t],
\t/* kept: "servers": {"no": 1} */
\t"servers": {
\t\t// the browser
\t\t"playwright": {
\t\t\t"type": "stdio", "command": "npx", // pinned
\t\t\t"args": ["@playwright/mcp@0.0.41", "--url=http://localhost:8080/a//b"],
\t\t}, // last
\t\t// "old": {"command": "old"},
\t},
}
"""
GEMINI = '{"security":{"auth":{"selectedType":"oauth-personal"}},"ui":{"theme":"GitHub"}}'
CODEX = '''\
# My settings
model = "gpt-5.2-codex"   # the default
notify = [
  "sh", "-c",
  # [mcp_servers.docs]
]
prompt = """
[mcp_servers.in-a-text]
"""

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]

[mcp_servers.context7.env]
KEY = "x"  # secret

# Projects
[projects."/home/ann/src"]
trust_level = "trusted"
'''
FILES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", CLAUDE_DESKTOP),
    "cursor": (".cursor/mcp.json", "mcpServers", CLAUDE_DESKTOP),
    "vscode": (".config/Code/User/mcp.json", "servers", VS_CODE),
    "gemini": (".gemini/settings.json", "mcpServers", GEMINI),
    "codex": (".codex/config.toml", "mcp_servers", CODEX),
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


def settings_file(home: Path, client: str, content: str | None = None) -> Path:
    path = home / FILES[client][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((FILES[client][2] if content is None else content).encode())
    return path


def program(home: Path, name: str, script: str) -> None:
    path = home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def is_in_order(parts: list[str], text: str) -> bool:
    """Return whether the lines occur in a text in this order."""
    lines = iter(text.splitlines())
    return all(part in lines for part in parts)


def of_vs_code(text: str) -> str:
    """Return the settings of VS Code above as JSON, by plain replacement."""
    for comment in ("// Servers of the team", "// asked once", "// the browser", "// pinned"):
        text = text.replace(comment, "")
    text = text.replace("// last", "").replace('// "old": {"command": "old"},', "")
    text = text.replace('/* kept: "servers": {"no": 1} */', "")
    for closing in ("]", "}"):
        text = "".join(text.split()).replace(f",{closing}", closing)
    return text


@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize("kind", ["plain", "crlf", "bom"])
def test_only_the_entry_is_added_and_removed(
    arag: Command, home: Path, client: str, kind: str
) -> None:
    content = FILES[client][2]
    content = content.replace("\n", "\r\n") if kind == "crlf" else content
    content = "\ufeff" + content if kind == "bom" else content
    path = settings_file(home, client, content)
    path.chmod(0o640)
    done = arag("install", client, str(home / "notes"))
    assert (done.code, done.err) == (0, "")
    new = path.read_bytes().decode()
    text = new.removeprefix("\ufeff")
    data = tomllib.loads(text) if client == "codex" else json.loads(
        of_vs_code(text) if client == "vscode" else text
    )  # fmt: skip
    entry = data[FILES[client][1]]["notes"]
    assert os.access(entry["command"], os.X_OK)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["mcp", f"notes={home / 'notes'}"]
    assert new.startswith("\ufeff") == (kind == "bom")
    assert ("\r\n" in new, "\n" in new.replace("\r\n", "")) == (kind == "crlf", kind != "crlf") or (
        client == "gemini"
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.with_name(path.name + ".before-arag-search").read_bytes().decode() == content
    for line in content.splitlines():
        assert line.rstrip(" }") in new
    assert arag("install", client, str(home / "notes")).lines[0].endswith("nothing was changed.")
    assert path.read_bytes().decode() == new
    assert arag("install", client, "notes", "--remove").code == 0
    removed = path.read_bytes().decode()
    if client == "gemini":  # where the section was new
        assert json.loads(removed.removeprefix("\ufeff")) == {
            **json.loads(GEMINI),
            "mcpServers": {},
        }
    else:
        assert removed == content


def test_a_trailing_comma_and_the_comment_of_a_line_stay_where_they_were(
    arag: Command, home: Path
) -> None:
    path = settings_file(home, "vscode")
    arag("install", "vscode", str(home / "notes"))
    lines = path.read_text().splitlines()
    at = lines.index("\t\t}, // last")
    assert lines[at + 1] == '\t\t"notes": {'
    assert lines[at + 2] == '\t\t\t"type": "stdio",'
    assert is_in_order(VS_CODE.splitlines(), path.read_text())


@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_file_that_is_missing_or_empty_is_made(
    arag: Command, home: Path, client: str, content: str | None
) -> None:
    path = home / FILES[client][0]
    if content is not None:
        settings_file(home, client, content)
    assert arag("install", client, str(home / "notes")).code == 0
    text = path.read_text()
    data = tomllib.loads(text) if client == "codex" else json.loads(text)
    assert list(data) == [FILES[client][1]]
    if content is None:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert arag("install", client, "notes", "--remove").code == 0
    text = path.read_text()
    left = tomllib.loads(text) if client == "codex" else json.loads(text)
    assert left in ({}, {FILES[client][1]: {}})


@pytest.mark.parametrize(
    ("client", "content", "reason"),
    [
        ("cursor", '{"mcpServers": {"a": }}', "Line 1 is not JSON at }"),
        ("cursor", '{"mcpServers": {\n"a": 1', "Line 2 is not JSON at its end"),
        ("cursor", '{"a": 1}\n{"b": 2}', "Line 2 is not JSON"),
        ("cursor", '{"mcpServers": []}', "is not an object"),
        ("cursor", "[]", "is not an object"),
        ("cursor", '{"a": 1, "a": 2}', 'The key "a" is there twice'),
        ("cursor", "{" * 3, "is not JSON"),
        ("cursor", "[" * 100_000, "nested too deeply"),
        ("vscode", "// nothing yet\n", "ends too early"),
        ("codex", "a = \n", "Invalid value"),
        ("codex", 'mcp_servers = { docs = { command = "x" } }\n', "mcp_servers"),
    ],
)
def test_settings_that_are_not_understood_are_left_alone_and_the_entry_is_printed(
    arag: Command, home: Path, client: str, content: str, reason: str
) -> None:
    path = settings_file(home, client, content)
    done = arag("install", client, str(home / "notes"))
    assert done.code == 1
    assert reason in done.err
    assert str(path) in done.err
    assert f"notes={home / 'notes'}" in done.err
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_text() == content


def test_a_file_that_is_read_only_is_left_alone(arag: Command, home: Path) -> None:
    path = settings_file(home, "cursor")
    path.chmod(0o444)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert "read-only" in done.err
    assert path.read_text() == CLAUDE_DESKTOP


def test_a_link_to_settings_elsewhere_stays_a_link(arag: Command, home: Path) -> None:
    target = home / "dotfiles" / "mcp.json"
    target.parent.mkdir()
    target.write_text(CLAUDE_DESKTOP)
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(target)
    assert arag("install", "cursor", str(home / "notes")).code == 0
    assert link.is_symlink()
    assert "notes" in json.loads(target.read_text())["mcpServers"]


def test_a_dry_run_shows_the_change_and_makes_none(arag: Command, home: Path) -> None:
    path = settings_file(home, "codex")
    done = arag("install", "codex", str(home / "notes"), "--dry-run")
    assert done.lines[0] == f"Would change {path}:"
    assert "+[mcp_servers.notes]" in done.lines
    assert "secret" not in done.out
    assert done.lines[-1].startswith("Would write the skill ")
    assert path.read_text() == CODEX
    assert not (home / ".agents").exists()


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_what_a_user_adds_to_the_entry_stays_when_it_is_written_again(
    arag: Command, home: Path, client: str
) -> None:
    path = settings_file(home, client)
    arag("install", client, str(home / "notes"))
    text = path.read_text()
    if client == "codex":
        table = '\nstartup_timeout_sec = 30\n\n[mcp_servers.notes.env]\nLANG = "C"\n'
        text = text.removesuffix("\n") + table
    else:
        text = text.replace('"args": [\n                "mcp"', '"timeout": 30, "args": [\n"mcp"')
    path.write_text(text)
    (home / "other").mkdir()
    assert arag("install", client, f"notes={home / 'other'}").code == 0
    new = path.read_text()
    data = tomllib.loads(new) if client == "codex" else json.loads(new)
    entry = data[FILES[client][1]]["notes"]
    assert entry["args"] == ["mcp", f"notes={home / 'other'}"]
    assert entry.get("startup_timeout_sec", entry.get("timeout")) == 30
    assert client != "codex" or entry["env"] == {"LANG": "C"}
    arag("install", client, "notes", "--remove")
    assert path.read_text() == FILES[client][2]


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


def test_claude_code_without_its_program_gets_the_line_to_run(arag: Command, home: Path) -> None:
    done = arag("install", "claude-code", str(home / "notes"))
    assert done.code == 1
    assert "Run: claude mcp add --scope user notes -- /" in done.err
    assert not (home / ".claude").exists()


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
    skill.parent.mkdir()
    skill.write_text("mine")
    assert "stays" in arag("install", "claude-code", str(home / "notes")).out
    arag("install", "claude-code", "notes", "--remove")
    assert skill.read_text() == "mine"


def test_a_program_in_a_cache_is_refused_and_a_folder_must_exist(
    arag: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There is no such folder" in arag("install", "cursor", str(home / "absent")).err
    monkeypatch.setenv("UV_CACHE_DIR", sys.prefix)
    done = arag("install", "cursor", str(home / "notes"))
    assert done.code == 1
    assert "is in a cache, which uvx and pipx empty" in done.err
    assert not (home / ".cursor").exists()

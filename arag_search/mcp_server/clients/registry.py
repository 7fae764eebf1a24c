"""The clients: their own commands, or their files of settings, and where they keep skills."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]

_ADD = ("mcp", "add", "--scope", "user")
_REMOVE = ("mcp", "remove", "--scope", "user")


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a client: ``add`` makes the one that adds a server, from its name and the
    line that starts it, ``remove`` the one that removes it, if the client has one."""

    add: Callable[[str, Sequence[str]], list[str]]
    remove: Callable[[str], list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A client that is asked by its commands or, for a path, by its file of settings in JSON, which
    holds servers by name in "mcpServers"."""

    title: str
    by: Commands | Path
    skills: Path | None = None


def client(name: ClientName) -> Client:
    """Return a client, with its paths for the user who runs the program."""
    match name:
        case "claude-code":
            commands = Commands(
                lambda server, line: ["claude", *_ADD, server, "--", *line],
                lambda server: ["claude", *_REMOVE, server],
            )
            skills = _folder("CLAUDE_CONFIG_DIR", ".claude") / "skills"
            return Client("Claude Code", commands, skills)
        case "claude-desktop":
            folder = _folder("XDG_CONFIG_HOME", ".config")
            if sys.platform == "darwin":
                folder = Path.home() / "Library" / "Application Support"
            return Client("Claude Desktop", folder / "Claude" / "claude_desktop_config.json")
        case "cursor":
            return Client("Cursor", Path.home() / ".cursor" / "mcp.json")
        case "vscode":
            return Client("VS Code", Commands(_add_to_code))
        case "codex":
            commands = Commands(
                lambda server, line: ["codex", "mcp", "add", server, "--", *line],
                lambda server: ["codex", "mcp", "remove", server],
            )
            return Client("Codex", commands, Path.home() / ".agents" / "skills")
        case "gemini":
            commands = Commands(
                lambda server, line: ["gemini", *_ADD, server, line[0], "--", *line[1:]],
                lambda server: ["gemini", *_REMOVE, server],
            )
            return Client("Gemini CLI", commands)


def _add_to_code(server: str, line: Sequence[str]) -> list[str]:
    entry = {"name": server, "command": line[0], "args": list(line[1:])}
    return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)

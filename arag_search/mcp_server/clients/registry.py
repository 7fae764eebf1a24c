"""The clients: their own commands, their files of settings, and where they keep skills."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from arag_search.mcp_server.clients import json_settings, toml_settings

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]

AddLine = Callable[[str, Sequence[str]], list[str]]
"""Makes the client's command that adds a server, from its name and its command with arguments."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A file of settings that holds servers by name in one ``section``. ``type`` is what the client
    wants to read of the transport, if anything."""

    path: Path
    section: str
    language: ModuleType = json_settings
    type: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """A client. ``add`` and ``remove`` are commands of its own, whose program may be absent;
    ``settings`` are None for a file that the client itself rewrites all the time."""

    title: str
    settings: Settings | None
    add: AddLine | None = None
    remove: Callable[[str], list[str]] | None = None
    skills: Path | None = None


def client(name: ClientName) -> Client:
    """Return a client, with its paths for the user who runs the program."""
    match name:
        case "claude-code":
            folder = _folder("CLAUDE_CONFIG_DIR", ".claude")
            return Client(
                "Claude Code",
                None,
                lambda server, line: [
                    *("claude", "mcp", "add", "--scope", "user", server, "--", *line)
                ],
                lambda server: ["claude", "mcp", "remove", "--scope", "user", server],
                folder / "skills",
            )
        case "claude-desktop":
            path = _settings_folder() / "Claude" / "claude_desktop_config.json"
            return Client("Claude Desktop", Settings(path, "mcpServers"))
        case "cursor":
            return Client("Cursor", Settings(Path.home() / ".cursor" / "mcp.json", "mcpServers"))
        case "vscode":
            path = _settings_folder() / "Code" / "User" / "mcp.json"
            return Client("VS Code", Settings(path, "servers", type="stdio"), _add_to_code)
        case "codex":
            path = _folder("CODEX_HOME", ".codex") / "config.toml"
            return Client(
                "Codex",
                Settings(path, "mcp_servers", toml_settings),
                lambda server, line: ["codex", "mcp", "add", server, "--", *line],
                lambda server: ["codex", "mcp", "remove", server],
                Path.home() / ".agents" / "skills",
            )
        case "gemini":
            path = Path.home() / ".gemini" / "settings.json"
            return Client(
                "Gemini CLI",
                Settings(path, "mcpServers"),
                lambda server, line: [
                    *("gemini", "mcp", "add", "--scope", "user", server, line[0], "--", *line[1:])
                ],
                lambda server: ["gemini", "mcp", "remove", "--scope", "user", server],
            )


def _add_to_code(server: str, line: Sequence[str]) -> list[str]:
    entry = {"name": server, "command": line[0], "args": list(line[1:])}
    return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)


def _settings_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return _folder("XDG_CONFIG_HOME", ".config")

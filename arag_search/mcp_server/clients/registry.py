"""The clients: their own commands, or their files of settings, and where they keep skills."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]

_ADD = ("mcp", "add", "--scope", "user")
_REMOVE = ("mcp", "remove", "--scope", "user")


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a client. ``add`` makes the command that adds a server, from its name and the
    line that starts it. ``remove`` makes the command that removes it, if there is one."""

    add: Callable[[str, Sequence[str]], list[str]]
    remove: Callable[[str], list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A client with its ``settings``, which hold servers by name in ``section``: TOML if the file
    is so called, else JSON. It is asked by its ``commands``; without any, the file is written. In a
    project it reads a file called ``instructions``; ``agents`` is its folder of sub-agents."""

    title: str
    settings: Path
    commands: Commands | None = None
    skills: Path | None = None
    section: str = "mcpServers"
    instructions: str = ""
    agents: Path | None = None

    def entries(self) -> Mapping[str, object]:
        """Return the servers by name. If the settings cannot be parsed (they may have comments),
        each of their words may be the name of a server, and has None."""
        try:
            text = self.settings.read_text("utf-8-sig") if self.settings.is_file() else ""
        except (OSError, UnicodeDecodeError):
            return {}
        loads = tomllib.loads if self.settings.suffix == ".toml" else json.loads
        try:
            content: Any = loads(text) if text.strip() else {}
            return dict(content[self.section].items())
        except (ValueError, RecursionError):
            return dict.fromkeys(re.findall(r"[\w-]+", text))
        except (AttributeError, KeyError, TypeError):
            return {}


def client(name: ClientName) -> Client:
    """Return a client, with its paths for the user who runs the program."""
    match name:
        case "claude-code":
            commands = Commands(
                lambda server, line: ["claude", *_ADD, server, "--", *line],
                lambda server: ["claude", *_REMOVE, server],
            )
            folder = _folder("CLAUDE_CONFIG_DIR", ".claude")
            settings = _folder("CLAUDE_CONFIG_DIR", "") / ".claude.json"
            return Client(
                "Claude Code",
                settings,
                commands,
                folder / "skills",
                instructions="CLAUDE.md",
                agents=folder / "agents",
            )
        case "claude-desktop":
            folder = _folder("XDG_CONFIG_HOME", ".config")
            if sys.platform == "darwin":
                folder = Path.home() / "Library" / "Application Support"
            return Client("Claude Desktop", folder / "Claude" / "claude_desktop_config.json")
        case "cursor":
            settings = Path.home() / ".cursor" / "mcp.json"
            return Client("Cursor", settings, instructions="AGENTS.md")
        case "vscode":
            folder = _folder("XDG_CONFIG_HOME", ".config")
            if sys.platform == "darwin":
                folder = Path.home() / "Library" / "Application Support"
            settings = folder / "Code" / "User" / "mcp.json"
            commands = Commands(_add_to_code)
            return Client(
                "VS Code", settings, commands, section="servers", instructions="AGENTS.md"
            )
        case "codex":
            commands = Commands(
                lambda server, line: ["codex", "mcp", "add", server, "--", *line],
                lambda server: ["codex", "mcp", "remove", server],
            )
            settings = _folder("CODEX_HOME", ".codex") / "config.toml"
            skills = Path.home() / ".agents" / "skills"
            return Client("Codex", settings, commands, skills, "mcp_servers", "AGENTS.md")
        case "gemini":
            commands = Commands(
                lambda server, line: ["gemini", *_ADD, server, line[0], "--", *line[1:]],
                lambda server: ["gemini", *_REMOVE, server],
            )
            settings = Path.home() / ".gemini" / "settings.json"
            return Client("Gemini CLI", settings, commands, instructions="GEMINI.md")


def _add_to_code(server: str, line: Sequence[str]) -> list[str]:
    entry = {"name": server, "command": line[0], "args": list(line[1:])}
    return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)

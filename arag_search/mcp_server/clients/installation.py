"""Entries of clients that start the server, and the skills beside them: install and remove."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import ArgumentError
from arag_search.mcp_server.clients.registry import Client, Settings
from arag_search.mcp_server.served import named_locations
from arag_search.system.durable import replacing
from arag_search.system.extras import check_extra, install_line

_SKILL = Path(__file__).with_name("skill.md")
_MARK = "<!-- Written by arag-search install"
_BACKUP = ".before-arag-search"
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Installation:
    """An entry of a client: the name of the server, and the command with arguments that starts
    it."""

    client: Client
    name: str
    location: str
    line: tuple[str, ...]

    def install(self, *, dry_run: bool) -> Iterator[str]:
        """Write the entry and the skill, and yield what was done; with ``dry_run``, what would be.
        Raises ArgumentError, with the entry in it, where it has to be written by hand."""
        client = self.client
        if client.add is not None and _has_program(line := client.add(self.name, self.line)):
            yield self._run(line, dry_run)
        elif client.settings is not None:
            yield from self._change(client.settings, self._entry(client.settings), dry_run)
        else:
            raise self._by_hand(f"{client.title} is not on the PATH.", "", "")
        if client.skills is not None:
            yield from self._write_skill(client.skills, dry_run)

    def remove(self, *, dry_run: bool) -> Iterator[str]:
        """Remove the entry and the skill, and yield what was done. Raises ArgumentError."""
        client = self.client
        if client.remove is not None and _has_program(line := client.remove(self.name)):
            yield self._run(line, dry_run)
        elif client.settings is not None:
            yield from self._change(client.settings, None, dry_run)
        else:
            raise ArgumentError(
                f"{client.title} is not on the PATH.",
                do=f"Remove the server {self.name} where it is.",
            )
        skill = self._skill(client.skills) if client.skills is not None else None
        if skill is not None and _is_ours(skill):
            if not dry_run:
                skill.unlink()
                with suppress(OSError):  # other files are in it
                    skill.parent.rmdir()
            yield f"{'Would remove' if dry_run else 'Removed'} the skill {skill}"

    def _entry(self, settings: Settings) -> dict[str, object]:
        entry: dict[str, object] = {"command": self.line[0], "args": list(self.line[1:])}
        return {"type": settings.type, **entry} if settings.type else entry

    def _run(self, line: list[str], dry_run: bool) -> str:
        """Run the client's command. An entry that it refuses to replace is removed first."""
        if dry_run:
            return f"Would run: {shlex.join(line)}"
        done = _output(line)
        remove = self.client.remove
        if done.returncode and remove is not None and "already exists" in done.stderr + done.stdout:
            _output(remove(self.name))
            done = _output(line)
        if done.returncode:
            raise ArgumentError(
                f"The command of {self.client.title} failed (exit code {done.returncode}): "
                f"{' '.join((done.stderr or done.stdout).split())[:500]}",
                where=shlex.join(line),
                do="Run it in a terminal, to see what the client says.",
            )
        return f"Ran: {shlex.join(line)}"

    def _change(
        self, settings: Settings, entry: Mapping[str, object] | None, dry_run: bool
    ) -> Iterator[str]:
        """Change the file of settings at the key of this server; None removes the entry."""
        path = settings.path.resolve()  # a link stays a link
        try:
            old = path.read_bytes().decode() if path.exists() else ""
            new = _changed(old, settings, self.name, entry)
            if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
                raise ValueError("The file is read-only.")
        except (ValueError, OSError) as error:
            raise self._by_hand(
                "The settings cannot be changed.", str(path), str(error), settings
            ) from error
        if new == old:
            yield f"{path} is as it should be; nothing was changed."
            return
        if dry_run:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
            yield "\n".join([f"Would change {path}:", *list(lines)[2:]])
            return
        try:
            before = _write(path, new)
        except OSError as error:
            raise self._by_hand(
                "The settings cannot be written.", str(path), str(error), settings
            ) from error
        yield f"{'Removed' if entry is None else 'Wrote'} the entry {self.name} in {path}{before}"

    def _by_hand(
        self, what: str, where: str, why: str, settings: Settings | None = None
    ) -> ArgumentError:
        if settings is None:
            add = self.client.add
            do = f"Run: {shlex.join(add(self.name, self.line))}" if add is not None else ""
        else:
            line = self.line or ("arag-search", "mcp", "...")
            entry = replace(self, line=line)._entry(settings)
            written = _changed("", settings, self.name, entry).rstrip()
            what_to_do = "write" if self.line else "remove"
            do = f"Mend the file, or {what_to_do} the entry by hand:\n{written}"
        return ArgumentError(f"{what} {why}".rstrip(), where=where, do=do)

    def _skill(self, folder: Path) -> Path:
        return folder / f"search-{self.name.lower()}" / "SKILL.md"

    def _write_skill(self, folder: Path, dry_run: bool) -> Iterator[str]:
        import jinja2

        path = self._skill(folder)
        if path.exists() and not _is_ours(path):
            yield f"{path} was written by somebody else, and stays."
            return
        if not dry_run:
            description = (
                f"Search {self.location} (MCP server {self.name}) with logical queries. Use it for "
                "questions that these documents answer, whatever their wording, and to count "
                "or rank passages. For an exact string in a file at hand, use grep."
            )
            text = jinja2.Template(_SKILL.read_text("utf-8"), keep_trailing_newline=True).render(
                name=self.name.lower(), location=self.location, description=json.dumps(description)
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                temporary.write_text(text, "utf-8")
        yield f"{'Would write' if dry_run else 'Wrote'} the skill {path}"


def installation(client: Client, location: str) -> Installation:
    """Return the entry for an index, a folder of files or an address, or ``NAME=`` one of them. The
    name is that of the folder.

    Raises ArgumentError for a folder that is absent, and where the program may vanish, and
    MissingExtraError.
    """
    check_extra("mcp", "mcp")
    [(name, place)] = named_locations([location]).items()
    if not is_address(place):
        folder = Path(place).expanduser()
        if not folder.is_dir():
            raise ArgumentError(
                "There is no such folder.",
                where=place,
                allowed="an index, a folder of files, or the address of an index",
            )
        place = str(folder.resolve())
    name = name.replace(".", "-")
    return Installation(client, name, place, (_program(), "mcp", f"{name}={place}"))


def removal(client: Client, location: str) -> Installation:
    """Return the entry that is removed: the name of a server, or what was installed."""
    [name] = named_locations([location])
    return Installation(client, name.replace(".", "-"), location, ())


def _program() -> str:
    """Return the absolute path of arag-search. Raises ArgumentError if it will not last."""
    program = Path(sysconfig.get_path("scripts"), "arag-search")
    caches = [os.environ.get(name, "") for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME")]
    caches += [str(Path.home() / name) for name in (".cache", ".local/share/pipx/.cache")]
    is_cached = any(name and program.is_relative_to(name) for name in caches)
    if is_cached or not os.access(program, os.X_OK):
        raise ArgumentError(
            f"The client needs a command that stays, and {program} "
            f"{'is in a cache, which uvx and pipx empty' if is_cached else 'does not exist'}.",
            allowed="an arag-search that is installed, for example as a tool of uv",
            do="Install it with: uv tool install 'SOURCE[mcp,files]', where SOURCE is what uvx got"
            if is_cached
            else f"Install it: {install_line('mcp')}",
        )
    return str(program)


def _has_program(line: list[str]) -> bool:
    return shutil.which(line[0]) is not None


def _output(line: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def _changed(text: str, settings: Settings, name: str, entry: Mapping[str, object] | None) -> str:
    """Return the text of settings with the entry, or without it for None, after comparing what
    both say. Raises ValueError if anything else would change."""
    language, section = settings.language, settings.section
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    data = cast(Any, language.parse(text) if text.strip() else {})
    if not isinstance(data, dict) or not isinstance(data.get(section, {}), dict):  # pyright: ignore[reportUnknownMemberType]
        raise ValueError(f'"{section}" is not an object.')
    expected: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
    servers: dict[str, Any] = dict(expected.get(section, {}))
    if entry is None:
        if name not in servers:
            return mark + text
        del servers[name]
        new: str = language.without_entry(text, section, name)
    else:
        old = servers.get(name)
        servers[name] = {**(cast(Any, old) if isinstance(old, dict) else {}), **entry}
        if old == servers[name]:
            return mark + text
        new = language.with_entry(text, section, name, servers[name])
    now = language.parse(new)
    expected[section] = servers
    if not servers and section not in now:  # TOML has no table without tables
        del expected[section]
    if now != expected:
        raise ValueError(f'The place of "{name}" is not clear.')
    return mark + new


def _write(path: Path, text: str) -> str:
    """Replace a file, with its mode, and return where its former content is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.with_name(path.name + _BACKUP)
    exists = path.exists()
    if exists:
        shutil.copy2(path, before)
    with replacing(path) as temporary:
        temporary.touch(0o600)
        if exists:
            shutil.copymode(path, temporary)
        temporary.write_bytes(text.encode())
    return f" (as it was: {before})" if exists else ""


def _is_ours(skill: Path) -> bool:
    return skill.is_file() and _MARK in skill.read_text("utf-8", errors="replace")

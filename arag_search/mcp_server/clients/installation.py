"""Entries of clients that start the server, and the skills beside them: install and remove."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import ArgumentError
from arag_search.mcp_server.clients.registry import Client, Commands
from arag_search.mcp_server.served import named_locations
from arag_search.system.durable import replacing, write_atomically
from arag_search.system.extras import check_extra, install_line

_SECTION = "mcpServers"
_SKILL = Path(__file__).with_name("skill.md")
_MARK = "<!-- Written by arag-search install"
_BACKUP = ".before-arag-search"


@dataclass(frozen=True, slots=True)
class Installation:
    """An entry of a client: the name of the server, and the command with arguments that starts it
    (none for an entry that is removed)."""

    client: Client
    name: str
    location: str
    line: tuple[str, ...] = ()

    def install(self, *, dry_run: bool) -> Iterator[str]:
        """Write the entry and the skill, and yield what was done; with ``dry_run``, what would be.
        Raises ArgumentError, which says what to do by hand, where the client cannot be asked."""
        by = self.client.by
        if isinstance(by, Commands):
            yield self._run(by.add(self.name, self.line), by, dry_run)
        else:
            yield self._change(by, {"command": self.line[0], "args": [*self.line[1:]]}, dry_run)
        if self.client.skills is not None:
            yield self._write_skill(self.client.skills, dry_run)

    def remove(self, *, dry_run: bool) -> Iterator[str]:
        """Remove the entry and the skill, and yield what was done. Raises ArgumentError."""
        by = self.client.by
        if not isinstance(by, Commands):
            yield self._change(by, None, dry_run)
        elif by.remove is not None:
            yield self._run(by.remove(self.name), by, dry_run)
        else:
            raise ArgumentError(
                f"{self.client.title} has no command that removes a server.",
                do=f"Remove {self.name} from its list of MCP servers.",
            )
        skill = self._skill(self.client.skills) if self.client.skills is not None else None
        if skill is not None and _is_ours(skill):
            if not dry_run:
                skill.unlink()
                with suppress(OSError):  # other files are in it
                    skill.parent.rmdir()
            yield f"{'Would remove' if dry_run else 'Removed'} the skill {skill}"

    def _run(self, line: list[str], commands: Commands, dry_run: bool) -> str:
        is_there = shutil.which(line[0]) is not None
        if dry_run:
            condition = "" if is_there else f" if {line[0]} were on the PATH"
            return f"Would run{condition}: {shlex.join(line)}"
        if not is_there:
            raise ArgumentError(
                f"{self.client.title} is asked by its command {line[0]}, which is not on the PATH.",
                do=f"Run: {shlex.join(line)}",
            )
        done = _output(line)
        # An entry that the client refuses to replace is removed first.
        if done.returncode and commands.remove and "already exists" in done.stderr + done.stdout:
            _output(commands.remove(self.name))
            done = _output(line)
        if done.returncode:
            raise ArgumentError(
                f"The command of {self.client.title} failed (exit code {done.returncode}): "
                f"{' '.join((done.stderr or done.stdout).split())[:500]}",
                where=shlex.join(line),
                do="Run it in a terminal, to see what the client says.",
            )
        return f"Ran: {shlex.join(line)}"

    def _change(self, path: Path, entry: dict[str, Any] | None, dry_run: bool) -> str:
        """Write the entry into a file of settings; None removes it."""
        try:
            mode = path.lstat().st_mode if os.path.lexists(path) else None
            if mode is not None and not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "no regular file"
                raise OSError(f"The path is {kind}.")
            old = "" if mode is None else path.read_text("utf-8-sig")
            settings: Any = json.loads(old) if old.strip() else {}
            servers: Any = settings.setdefault(_SECTION, {})
            before: Any = servers.pop(self.name, None)
            if mode is not None and not mode & stat.S_IWUSR:
                raise OSError("The file is read-only.")
        except (ValueError, RecursionError) as error:  # also comments
            raise self._by_hand(path, entry, f"They are not plain JSON ({error}).") from error
        except (AttributeError, TypeError) as error:
            raise self._by_hand(path, entry, f'"{_SECTION}" is not an object.') from error
        except OSError as error:
            raise self._by_hand(path, entry, str(error)) from error
        if entry is not None:  # what the user has added to it stays, and is not shown
            servers[self.name] = {**(before if isinstance(before, dict) else {}), **entry}
        if servers.get(self.name) == before:
            return f"{path} is as it should be; nothing was changed."
        if dry_run:
            would = "remove" if entry is None else "write"
            return f"Would {would} the entry {self.name} in {path}{_shown(self.name, entry)}"
        try:
            saved = _write(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise self._by_hand(path, entry, str(error)) from error
        return f"{'Removed' if entry is None else 'Wrote'} the entry {self.name} in {path}{saved}"

    def _by_hand(self, path: Path, entry: dict[str, Any] | None, why: str) -> ArgumentError:
        what = "Remove" if entry is None else "Write"
        return ArgumentError(
            f"The settings cannot be changed. {why}",
            where=str(path),
            allowed="a regular file that may be written, of JSON without comments",
            do=f"{what} the entry {self.name} by hand{_shown(self.name, entry)}",
        )

    def _skill(self, folder: Path) -> Path:
        return folder / f"search-{self.name.lower()}" / "SKILL.md"

    def _write_skill(self, folder: Path, dry_run: bool) -> str:
        import jinja2

        path = self._skill(folder)
        if path.exists() and not _is_ours(path):
            return f"{path} was written by somebody else, and stays."
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
            write_atomically(path, text.encode())
        return f"{'Would write' if dry_run else 'Wrote'} the skill {path}"


def installation(client: Client, location: str) -> Installation:
    """Return the entry for an index, a folder of files or an address, or ``NAME=`` one of them. The
    name is that of the folder.

    Raises ArgumentError for a folder that is absent, and where the program may vanish, and
    MissingExtraError.
    """
    check_extra("mcp", "mcp")
    [(name, place)] = named_locations([location]).items()
    if not is_address(place):
        folder = Path(place)
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
    return Installation(client, name.replace(".", "-"), location)


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


def _output(line: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def _shown(name: str, entry: dict[str, Any] | None) -> str:
    """Return an entry as a file of settings has it, to print behind a sentence."""
    return "" if entry is None else f":\n{json.dumps({_SECTION: {name: entry}}, indent=2)}"


def _write(path: Path, text: str) -> str:
    """Replace a file, with its mode, and return where its content before the first change is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.with_name(path.name + _BACKUP)
    exists = path.exists()
    if exists and not os.path.lexists(before):
        _create(before, path.read_bytes(), path)
    with replacing(path, shared=True) as temporary:
        _create(temporary, text.encode(), path if exists else None)
    return f" (as it was before the first change: {before})" if exists else ""


def _create(path: Path, data: bytes, like: Path | None) -> None:
    """Create a file, private or with the mode of another one; nothing that is there is opened."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        if like is not None:
            shutil.copymode(like, path)
    except BaseException:
        path.unlink()
        raise


def _is_ours(skill: Path) -> bool:
    return skill.is_file() and _MARK in skill.read_text("utf-8", errors="replace")

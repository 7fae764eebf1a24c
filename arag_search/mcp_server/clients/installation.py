"""Entries of clients that start the server, and the skills beside them: install and remove."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import ArgumentError
from arag_search.mcp_server.clients.instructions import Instructions
from arag_search.mcp_server.clients.owned import remove_empty, remove_owned, write_owned
from arag_search.mcp_server.clients.registry import Client, Commands
from arag_search.mcp_server.served import named_locations
from arag_search.system.durable import replacing
from arag_search.system.extras import check_extra, install_line

_PROGRAM = "arag-search"
_SKILL = Path(__file__).with_name("skill.md")
_BACKUP = ".before-arag-search"


@dataclass(frozen=True, slots=True)
class Installation:
    """An entry of a client: the name of the server, and the command with arguments that starts it
    (none for an entry that is removed). ``reasons`` says which entries decided its name."""

    client: Client
    name: str
    location: str
    line: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def install(self, *, dry_run: bool) -> Iterator[str]:
        """Write the entry and the skill, and yield what was done; with ``dry_run``, what would be.
        Raises ArgumentError, which says what to do by hand, where the client cannot be asked."""
        yield from self.reasons
        if commands := self.client.commands:
            yield self._run(commands.add(self.name, self.line), commands, dry_run)
        else:
            yield self._change({"command": self.line[0], "args": [*self.line[1:]]}, dry_run)
        if self.client.skills is not None:
            skill = self._skill(self.client.skills)
            yield write_owned(skill, self._skill_text(), "skill", dry_run=dry_run)

    def remove(self, *, dry_run: bool) -> Iterator[str]:
        """Remove the skill and the entry, and yield what was done. Raises ArgumentError."""
        if self.client.skills is not None:
            yield from remove_owned(self._skill(self.client.skills), "skill", dry_run=dry_run)
        commands = self.client.commands
        if commands is None:
            yield self._change(None, dry_run)
        elif commands.remove is not None:
            yield self._run(commands.remove(self.name), commands, dry_run)
        elif self.name not in self.client.entries():
            yield self._unchanged("no")
        else:
            raise ArgumentError(
                f"{self.client.title} has no command that removes a server.",
                where=str(self.client.settings),
                do=f"Remove {self.name} from its list of MCP servers.",
            )

    def instructions(self) -> Instructions | None:
        """Return the lines for the project in the current folder; None if the client reads none."""
        client = self.client
        if not client.instructions:
            return None
        file = Path.cwd() / client.instructions
        return Instructions(self.name, self.location, file, client.agents)

    def _run(self, line: list[str], commands: Commands, dry_run: bool) -> str:
        is_there = shutil.which(line[0]) is not None
        if dry_run:
            condition = "" if is_there else f" if {line[0]} were on the PATH"
            return f"Would run{condition}: {shlex.join(line)}"
        if not is_there:
            raise ArgumentError(
                f"The command {line[0]} of {self.client.title} is not on the PATH.",
                do=f"Run: {shlex.join(line)}",
            )
        done = _output(line)
        # An entry of ours that the client refuses to replace is removed first.
        refused = done.returncode and "already exists" in done.stderr + done.stdout
        if refused and commands.remove and _places(self.client.entries().get(self.name)):
            _output(commands.remove(self.name))
            done = _output(line)
        if done.returncode:
            raise ArgumentError(
                f"The command of {self.client.title} failed (exit code {done.returncode}): "
                f"{' '.join((done.stderr or done.stdout).split())[:500]}",
                where=shlex.join(line),
                do=f"Choose another name: NAME={self.location}"
                if refused
                else "Run it in a terminal, to see what the client says.",
            )
        return f"Ran: {shlex.join(line)}"

    def _change(self, entry: dict[str, Any] | None, dry_run: bool) -> str:
        """Write the entry into the settings; None removes it. With the last entry of ours goes what
        we have made: the file, or the copy of what it was."""
        path, section = self.client.settings, self.client.section
        try:
            mode = path.lstat().st_mode if os.path.lexists(path) else None
            if mode is not None and not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "no regular file"
                raise OSError(f"The path is {kind}.")
            old = "" if mode is None else path.read_text("utf-8-sig")
            settings: Any = json.loads(old) if old.strip() else {}
            servers: Any = settings.setdefault(section, {})
            was_ours = any(map(_places, servers.values()))
            before: Any = servers.pop(self.name, None)
            if mode is not None and not mode & stat.S_IWUSR:
                raise OSError("The file is read-only.")
        except (ValueError, RecursionError) as error:  # also comments
            raise self._by_hand(entry, f"They are not plain JSON ({error}).") from error
        except (AttributeError, TypeError) as error:
            raise self._by_hand(entry, f'"{section}" is not an object.') from error
        except OSError as error:
            raise self._by_hand(entry, str(error)) from error
        if entry is not None:  # what the user has added to it stays, and is not shown
            is_same = self.location in _places(before)
            args = before["args"] if is_same and _is_program(before["command"]) else entry["args"]
            servers[self.name] = {**(before or {}), **entry, "args": args}
        if servers.get(self.name) == before:
            return self._unchanged("no" if entry is None else "the")
        if dry_run:
            would = "remove" if entry is None else "write"
            return f"Would {would} the entry {self.name} in {path}{self._shown(entry)}"
        try:
            if entry is None and not any(map(_places, servers.values())):
                return f"Removed the entry {self.name} in {path}{_undo(path, settings, section)}"
            saved = _write(path, _text(settings), keep=not was_ours)
        except OSError as error:
            raise self._by_hand(entry, str(error)) from error
        return f"{'Removed' if entry is None else 'Wrote'} the entry {self.name} in {path}{saved}"

    def _unchanged(self, article: str) -> str:
        return f"{self.client.settings} has {article} entry {self.name}; nothing was changed."

    def _by_hand(self, entry: dict[str, Any] | None, why: str) -> ArgumentError:
        what = "Remove" if entry is None else "Write"
        return ArgumentError(
            f"The settings cannot be changed. {why}",
            where=str(self.client.settings),
            allowed="a regular file that may be written, of JSON without comments",
            do=f"{what} the entry {self.name} by hand{self._shown(entry)}",
        )

    def _shown(self, entry: dict[str, Any] | None) -> str:
        """Return an entry as the settings have it, to print behind a sentence."""
        shown = {self.client.section: {self.name: entry}}
        return "" if entry is None else f":\n{json.dumps(shown, indent=2)}"

    def _skill(self, folder: Path) -> Path:
        return folder / f"search-{self.name.lower()}" / "SKILL.md"

    def _skill_text(self) -> str:
        import jinja2

        description = (
            f"Search the files in {self.location} (MCP server {self.name}). Use it for "
            "questions that these documents answer, whatever their wording, and to count "
            "or rank passages. For an exact string in a file at hand, use grep."
        )
        return jinja2.Template(_SKILL.read_text("utf-8"), keep_trailing_newline=True).render(
            name=self.name.lower(),
            location=self.location,
            shell_location=shlex.quote(self.location),
            description=json.dumps(description),
        )


def installation(client: Client, location: str) -> Installation:
    """Return the entry for an index, a folder of files or an address, or ``NAME=`` one of them. The
    name is the name of the entry that serves the place or, if there is none, of the folder. A
    number is added to it if another entry has it.

    Raises ArgumentError for a folder that is absent, for a chosen name that another entry has, and
    where the program may vanish, and MissingExtraError.
    """
    check_extra("mcp", "mcp")
    [(name, place)] = named_locations([location]).items()
    is_chosen = place != location
    if not is_address(place):
        folder = Path(place)
        if not folder.is_dir():
            raise ArgumentError(
                "There is no such folder.",
                where=place,
                allowed="an index, a folder of files, or the address of an index",
            )
        place = str(folder.resolve())
    entries, name = client.entries(), name.replace(".", "-")
    free = _free_name(name, place, entries)
    serving = [known for known, entry in entries.items() if place in _places(entry)]
    reasons: tuple[str, ...] = ()
    if serving and not is_chosen:
        free = name if name in serving else serving[0]
    elif free != name and is_chosen:
        raise ArgumentError(
            f'The name "{name}" is taken: {_about(entries, name)}',
            where=f"the settings of {client.title}, {client.settings}",
            allowed="a name that no entry has",
            do=f"Choose another: {free}={place}",
        )
    elif free != name:
        reasons = (f'The name "{name}" is taken: {_about(entries, name)} This one is "{free}".',)
    elif name in entries and place not in _places(entries[name]):
        reasons = (f'The entry "{name}" is replaced. {_about(entries, name)}',)
    return Installation(client, free, place, (_program(), "mcp", f"{free}={place}"), reasons)


def removal(client: Client, location: str) -> Installation:
    """Return the entry to remove: the entry that serves a folder, an index or an address, else the
    entry with that name. Raises ArgumentError for an entry of another program or folder."""
    [(name, place)] = named_locations([location]).items()
    if is_place := place == location and (is_address(place) or Path(place).is_dir()):
        place = place if is_address(place) else str(Path(place).resolve())
    entries, name = client.entries(), name.replace(".", "-")
    serving = [known for known, entry in entries.items() if place in _places(entry)]
    if is_place and serving:
        name = name if name in serving else serving[0]
    served = _places(entries.get(name))
    if name in entries and (not served or (is_place and name != location and not serving)):
        raise ArgumentError(
            f'The entry "{name}" stays. {_about(entries, name)}',
            where=f"the settings of {client.title}, {client.settings}",
            allowed="an entry of arag-search, by its name or the folder that it serves",
            do=f"Name it instead of the folder: {name}" if served else f"Ask {client.title}.",
        )
    return Installation(client, name, location)


def _free_name(name: str, place: str, entries: Mapping[str, object]) -> str:
    """Return the name or, with a number, the first that is free. So is the name of an entry of ours
    for the same place, or for what no longer exists."""
    taken = {known.lower() for known, entry in entries.items() if not _may_go(entry, place)}
    numbered = (f"{name}-{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if free.lower() not in taken)


def _may_go(entry: object, place: str) -> bool:
    places = _places(entry)
    return bool(places) and (place in places or not any(map(_exists, places)))


def _places(entry: Any) -> list[str]:
    """Return what an entry of ours serves; nothing for another one, whose command and arguments do
    not name our program."""
    try:
        words = [str(word) for word in (entry["command"], *entry.get("args", ()))]
    except (AttributeError, KeyError, TypeError):
        return []
    if not any(map(_is_program, words)):
        return []
    first = list(map(_is_program, words)).index(True) + 1
    behind = [word for word in words[first:] if not word.startswith("-")]
    return [word.partition("=")[2] or word for word in behind if word != "mcp"] or ["."]


def _is_program(command: str) -> bool:
    return PurePath(command).name == _PROGRAM


def _exists(place: str) -> bool:
    return is_address(place) or Path(place).expanduser().exists()


def _about(entries: Mapping[str, object], name: str) -> str:
    """Return a sentence on the entry that has a name, in whatever case."""
    entry = next(entry for known, entry in entries.items() if known.lower() == name.lower())
    if not (places := _places(entry)):
        return "It is the entry of another program." if entry else "It is in the settings already."
    is_there = any(map(_exists, places))
    return f"It serves {', '.join(places)}{'' if is_there else ', which no longer exists'}."


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


def _text(settings: object) -> bytes:
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()


def _write(path: Path, text: bytes, *, keep: bool) -> str:
    """Replace a file, with its mode, and return where the copy of what it was is: it is made if
    ``keep`` and there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.with_name(path.name + _BACKUP)
    exists = path.exists()
    if exists and keep and not os.path.lexists(before):
        _create(before, path.read_bytes(), path)
    with replacing(path, shared=True) as temporary:
        _create(temporary, text, path if exists else None)
    is_kept = os.path.lexists(before)
    return f" (as it was before the first change: {before})" if is_kept else ""


def _undo(path: Path, settings: dict[str, Any], section: str) -> str:
    """Write settings without an entry of ours, and return what has gone with the last one. If only
    our entries changed since the copy, the file is this copy again; a file of ours goes."""
    before = path.with_name(path.name + _BACKUP)
    if not before.is_file() or before.is_symlink():
        if settings == {section: {}}:
            path.unlink()
            remove_empty(path.parent)
            return ", and the file, which had nothing else"
        return _write(path, _text(settings), keep=False)
    copy = before.read_bytes()
    with suppress(ValueError, AttributeError):
        was: Any = json.loads(copy.decode("utf-8-sig").strip() or "{}")
        was.setdefault(section, {})
        if was == settings:
            _write(path, copy, keep=False)
            before.unlink()
            return ", which is as it was before"
    return _write(path, _text(settings), keep=False)


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

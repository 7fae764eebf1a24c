"""Lines that tell an assistant to search before it reads files: a marked block in the file of
instructions of a project, and for Claude Code a sub-agent.

Assistants rarely reach for a tool that no instructions name.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arag_search.errors import ArgumentError
from arag_search.system.durable import write_atomically

_MARK = "arag-search install"


@dataclass(frozen=True, slots=True)
class Instructions:
    """What is written for a server called ``name`` that serves ``location``: a block in ``file``,
    and a sub-agent in the folder ``agents``, if the client has them."""

    name: str
    location: str
    file: Path
    agents: Path | None = None

    def write(self, *, dry_run: bool) -> Iterator[str]:
        """Write the block, in place of one of this name, and the sub-agent; yield what was done, or
        with ``dry_run`` what would be. Raises ArgumentError for a file that cannot be changed."""
        old = self._text()
        block = self._block()
        if "\r\n" in old:
            block = block.replace("\n", "\r\n")
        new = self._pattern().sub(lambda _: block, old)
        if not self._is_in(old):
            new = f"{old}{_gap(old)}{block}"
        yield self._replace(old, new, "write", dry_run)
        if self.agents is not None:
            agent = self._agent()
            if agent.exists() and _MARK not in agent.read_text("utf-8", errors="replace"):
                yield f"{agent} was written by somebody else, and stays."
                return
            if not dry_run:
                agent.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(agent, self._agent_text().encode())
            yield f"{'Would write' if dry_run else 'Wrote'} the sub-agent {agent}"

    def remove(self, *, dry_run: bool) -> Iterator[str]:
        """Remove the block and the sub-agent, where they are, and yield what was done."""
        try:
            old = self._text()
        except ArgumentError:
            old = ""  # nothing of ours is in it
        if self._is_in(old):
            yield self._replace(old, self._pattern(r"(?:\r?\n)?").sub("", old), "remove", dry_run)
        agent = None if self.agents is None else self._agent()
        if agent is not None and agent.is_file() and _MARK in agent.read_text("utf-8", "replace"):
            if not dry_run:
                agent.unlink()
                with suppress(OSError):  # other files are in it
                    agent.parent.rmdir()
            yield f"{'Would remove' if dry_run else 'Removed'} the sub-agent {agent}"

    def _block(self) -> str:
        return (
            f"<!-- {self.name}: written and removed by {_MARK} -->\n"
            f"To answer from the files in {self.location}, first search them with logical_search of"
            f" the MCP server {self.name},\nor with the command arag-search search"
            f" {shlex.quote(self.location)} 'QUERY': both rank, count, and find all forms of a"
            " word,\nalso in PDF, office files and mail. Use grep for an exact"
            f" string in a file at hand.\n<!-- end of {self.name} -->\n"
        )

    def _pattern(self, above: str = "") -> re.Pattern[str]:
        name = re.escape(self.name)
        first, last = f"<!-- {name}: written and removed by {_MARK} -->", f"<!-- end of {name} -->"
        return re.compile(rf"{above}{first}.*?{last}\r?\n?", re.DOTALL)

    def _is_in(self, text: str) -> bool:
        return self._pattern().search(text) is not None

    def _text(self) -> str:
        """Return the text of the file, empty if there is none. Raises ArgumentError."""
        try:
            if not os.path.lexists(self.file):
                return ""
            if not stat.S_ISREG(self.file.lstat().st_mode):
                raise OSError("it is a link or no regular file")
            if not os.access(self.file, os.W_OK):
                raise OSError("it is read-only")
            with self.file.open(encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(
                f"The instructions cannot be changed: {error}.",
                where=str(self.file),
                allowed="a regular file of UTF-8 that may be written",
                do=f"Write these lines into it by hand:\n{self._block()}",
            ) from error

    def _replace(self, old: str, new: str, what: str, dry_run: bool) -> str:
        path = self.file
        if new == old:
            return f"{path} is as it should be; nothing was changed."
        if not dry_run and new.strip():
            mode = stat.S_IMODE(path.stat().st_mode) if old else 0o644
            write_atomically(path, new.encode(), shared=True)
            path.chmod(mode)
        elif not dry_run:
            path.unlink()
        done = f"Would {what}" if dry_run else {"write": "Wrote", "remove": "Removed"}[what]
        above = (path, *path.parents)
        repository = next((folder for folder in above if (folder / ".git").exists()), None)
        under = f", which is in the repository {repository}" if repository else ""
        return f"{done} instructions in {path}{under}"

    def _agent(self) -> Path:
        assert self.agents is not None
        return self.agents / f"search-{self.name.lower()}.md"

    def _agent_text(self) -> str:
        description = (
            f"Search the files in {self.location}, and answer from them with their ids. Use it for"
            " questions that these files answer, so that what is read on the way stays out of the"
            " conversation."
        )
        return (
            f"---\nname: search-{self.name.lower()}\ndescription: {json.dumps(description)}\n"
            f"tools: mcp__{self.name}__logical_search, Read\n---\n"
            f"<!-- Written by {_MARK}, which replaces and removes this file. -->\n"
            "Answer from what the searches show, and name the id of each passage that you used."
            " Begin with the two or three words that the answer must contain. Read a passage by its"
            " id before you rely on it. If nothing is found, say which searches you made.\n"
        )


def _gap(text: str) -> str:
    """Return what stands between a text and a block below it: the end of the last line, and a
    blank line."""
    end = "\r\n" if "\r\n" in text else "\n"
    return ("" if text.endswith("\n") else end) + end if text else ""

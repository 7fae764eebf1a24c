"""Lines that tell an assistant to search before it reads files. They are a marked block in a
project's file of instructions, and for Claude Code a sub-agent.

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
from arag_search.mcp_server.clients.owned import MARK, remove_owned, write_owned
from arag_search.system.durable import write_atomically

_PROGRAM = "arag-search install"


@dataclass(frozen=True, slots=True)
class Instructions:
    """The lines for a server called ``name`` that serves ``location``. They are a block in
    ``file``, and a sub-agent in the folder ``agents``, if the client has them."""

    name: str
    location: str
    file: Path
    agents: Path | None = None

    def write(self, *, dry_run: bool) -> Iterator[str]:
        """Write the block, in place of one of this name, and the sub-agent; yield what was done, or
        with ``dry_run`` what would be. Raises ArgumentError for a file that cannot be changed."""
        old, block = self._text(), self._block()
        if "\r\n" in old:
            block = block.replace("\n", "\r\n")
        new, count = self._pattern().subn(lambda _: block, old)
        yield self._replace(old, new if count else f"{old}{_gap(old)}{block}", "write", dry_run)
        if self.agents is not None:
            agent = self._agent(self.agents)
            yield write_owned(agent, self._agent_text(), "sub-agent", dry_run=dry_run)

    def remove(self, *, dry_run: bool) -> Iterator[str]:
        """Remove the block and the sub-agent, where they are, and yield what was done."""
        with suppress(ArgumentError):  # a file that we cannot change has nothing of ours
            old = self._text()
            block = self._pattern().pattern  # below a blank line, or at the end of an unended line
            above = re.compile(rf"(?:(?<=\n)\r?\n)?{block}|\r?\n{block}\Z", re.DOTALL)
            new, count = above.subn("", old)
            if count:
                yield self._replace(old, new, "remove", dry_run)
        if self.agents is not None:
            yield from remove_owned(self._agent(self.agents), "sub-agent", dry_run=dry_run)

    def _block(self) -> str:
        return (
            f"<!-- {self.name}: written and removed by {_PROGRAM} -->\n"
            f"Before you answer from the files in {self.location}, search them with logical_search"
            f" of the MCP server {self.name}.\nThe command arag-search search"
            f" {shlex.quote(self.location)} 'QUERY' does the same. Both rank, count, and find all"
            " forms of a word,\nalso in PDF, office files and mail. Use grep for an exact"
            f" string in a file at hand.\n<!-- end of {self.name} -->\n"
        )

    def _pattern(self) -> re.Pattern[str]:
        name = re.escape(self.name)
        first, last = (
            f"<!-- {name}: written and removed by {_PROGRAM} -->",
            f"<!-- end of {name} -->",
        )
        return re.compile(rf"{first}.*?{last}\r?\n?", re.DOTALL)

    def _text(self) -> str:
        """Return the text of the file, empty if there is none. Raises ArgumentError."""
        try:
            if not os.path.lexists(self.file):
                return ""
            if not stat.S_ISREG(self.file.lstat().st_mode):
                raise OSError("the file is a link or no regular file")
            if not os.access(self.file, os.W_OK):
                raise OSError("the file is read-only")
            with self.file.open(encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(
                f"The instructions cannot be changed: {error}.",
                where=str(self.file),
                allowed="a regular file of UTF-8 that may be written",
                do=f"Write these lines into the file by hand:\n{self._block()}",
            ) from error

    def _replace(self, old: str, new: str, what: str, dry_run: bool) -> str:
        path = self.file
        if new == old:
            return f"{path} has these instructions already; nothing was changed."
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

    def _agent(self, folder: Path) -> Path:
        return folder / f"search-{self.name.lower()}.md"

    def _agent_text(self) -> str:
        description = (
            f"Search the files in {self.location}, and answer from them with their ids. Use it for"
            " questions that these files answer, so that what is read on the way stays out of the"
            " conversation."
        )
        return (
            f"---\nname: search-{self.name.lower()}\ndescription: {json.dumps(description)}\n"
            f"tools: mcp__{self.name}__logical_search, Read\n---\n"
            f"{MARK}, which replaces and removes this file. -->\n"
            "Answer from what the searches show, and name the id of each passage that you used."
            " Begin with the two or three words that the answer must contain. Read a passage by its"
            " id before you rely on it. If nothing is found, say which searches you made.\n"
        )


def _gap(text: str) -> str:
    """Return the line end between a text and a block below it. It makes a blank line or, if the
    last line of the text has no end, ends it."""
    return ("\r\n" if "\r\n" in text else "\n") if text else ""

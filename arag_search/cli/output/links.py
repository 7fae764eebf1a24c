"""Links from passages to their files, for terminals that open them (OSC 8)."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from arag_search.cli.output.printing import print_text, terminal_text
from arag_search.corpus import MetadataValue, PassageOutline
from arag_search.manifest import Manifest
from arag_search.system.terminal import TerminalStream
from arag_search.tools.replies.writing import shown_id

_PATH = "path"
_HEADER = re.compile(r"^\[([^\]\n]+)\]", re.MULTILINE)


class Passage(Protocol):
    """A passage that can be linked to its file: a hit, or a passage that was read."""

    @property
    def id(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, MetadataValue]: ...
    @property
    def outline(self) -> PassageOutline: ...


def print_linked(text: str, passages: Iterable[Passage], manifest: Manifest) -> None:
    """Print text in which ids in brackets begin lines. On a terminal, the id of a passage becomes a
    link to its file and first line, if the file is there."""
    stream = sys.stdout
    if not isinstance(stream, TerminalStream):
        print_text(text)
        return
    addresses = {shown_id(passage.id): address(passage, manifest) for passage in passages}
    at = 0
    for match in _HEADER.finditer(text):
        if target := addresses.get(match[1]):
            stream.write(terminal_text(text[at : match.start()]))
            stream.terminal.write(f"\x1b]8;;{target}\x1b\\")
            stream.write(terminal_text(match[0]))
            stream.terminal.write("\x1b]8;;\x1b\\")
            at = match.end()
    print_text(text[at:])


def address(passage: Passage, manifest: Manifest) -> str:
    """Return the address of a passage in its file, such as ``file://host/notes/a.md#12``. It is
    empty for a passage from no file, and if the file is not in exactly one place."""
    paths = passage.metadata.get(_PATH)
    if _PATH not in manifest.file_metadata or not isinstance(paths, tuple | list) or not paths:
        return ""
    relative = str(paths[-1])
    files = {file for source in manifest.shard_sources if (file := _file(Path(source), relative))}
    if len(files) != 1:
        return ""
    line = f"#{passage.outline.line}" if passage.outline.line else ""
    return f"file://{quote(socket.gethostname())}{quote(os.fsencode(files.pop()))}{line}"


def _file(source: Path, relative: str) -> Path | None:
    """Return the file of a source with a path below the root of ids; None if it is not there. The
    root is the source or one of its parents."""
    for root in (source, *source.parents):
        file = root / relative
        if file.is_relative_to(source) and file.is_file():
            return file
    return None

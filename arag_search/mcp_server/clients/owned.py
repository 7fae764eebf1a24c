"""Files that install writes whole, replaces and removes: a mark in them says that they are ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from arag_search.system.durable import write_atomically

MARK = "<!-- Written by arag-search install"


def write_owned(path: Path, text: str, what: str, *, dry_run: bool) -> str:
    """Write a file, unless somebody else's file is there, and return what was done. With
    ``dry_run``, return what would be done. ``what`` names the file, such as "skill"."""
    if os.path.lexists(path) and not _is_ours(path):
        return f"{path} was written by somebody else, and stays."
    if not dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    return f"{'Would write' if dry_run else 'Wrote'} the {what} {path}"


def remove_owned(path: Path, what: str, *, dry_run: bool) -> Iterator[str]:
    """Remove a file of ours, and the folders above it that are then empty. Yield what was done, or
    nothing if there is no such file."""
    if not _is_ours(path):
        return
    if not dry_run:
        path.unlink()
        remove_empty(path.parent)
    yield f"{'Would remove' if dry_run else 'Removed'} the {what} {path}"


def remove_empty(folder: Path) -> None:
    """Remove a folder in which nothing is, and then the one above it, up to the home folder."""
    with suppress(OSError):  # other files are in it
        folder.rmdir()
        if Path.home() in folder.parent.parents:
            remove_empty(folder.parent)


def _is_ours(path: Path) -> bool:
    return path.is_file() and MARK in path.read_text("utf-8", errors="replace")

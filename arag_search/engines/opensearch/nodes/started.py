"""The list of local clusters that were started, in the cache folder: a file for each data folder.

With this list, ``down`` and ``status`` find a cluster whose data folder is not given.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from arag_search.engines.jars import cache_folder
from arag_search.engines.opensearch.nodes.record import read_record
from arag_search.errors import EngineError
from arag_search.system.durable import write_atomically

_FOLDER = "opensearch-clusters"


def note_started(data: Path) -> None:
    """Add a data folder to the list. A cache folder that cannot be written keeps no list: the
    cluster is then found by its data folder alone."""
    entry = _entry(data)
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, os.fsencode(data.absolute()))


def note_ended(data: Path) -> None:
    """Remove a data folder from the list."""
    with contextlib.suppress(OSError):
        _entry(data).unlink(missing_ok=True)


def running_folders(default: Path) -> list[Path]:
    """Return the data folders of listed clusters that run, sorted, ``default`` first if it is one
    of them."""
    folders = {default.absolute()}
    for entry in (cache_folder() / _FOLDER).glob("*"):
        with contextlib.suppress(OSError):
            folders.add(Path(os.fsdecode(entry.read_bytes())))
    running = [folder for folder in folders if _runs(folder)]
    return sorted(running, key=lambda folder: (folder != default.absolute(), folder))


def _runs(data: Path) -> bool:
    try:
        record = read_record(data)
    except EngineError:
        return False
    return record is not None and record.running > 0


def _entry(data: Path) -> Path:
    name = hashlib.sha256(os.fsencode(data.absolute())).hexdigest()[:16]
    return cache_folder() / _FOLDER / name

"""The common setup of figures: a corpus, its index, and a folder for temporary files."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.engines.base import check_compact
from arag_search.manifest import Manifest
from arag_search.search.opening import open_index
from arag_search.system.durable import write_atomically
from bench import BenchError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions


@dataclass(frozen=True, slots=True)
class Workbench:
    """A corpus file, the index of it, and all its chunks. ``folder`` is for temporary files."""

    corpus: Path
    folder: Path
    index: Path
    manifest: Manifest
    chunks: Sequence[Chunk]

    @contextmanager
    def room(self) -> Generator[Path]:
        """Yield an empty folder that is removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)


@contextmanager
def set_up(corpus: Path, parent: Path | None = None) -> Generator[Workbench]:
    """Index the corpus in a temporary folder below ``parent`` (None: the system's).

    Raises what ``build_index`` raises.
    """
    with tempfile.TemporaryDirectory(prefix="arag-bench-", dir=parent) as name:
        folder = Path(name)
        location = folder / "index"
        build_index([str(corpus)], location, BuildOptions())
        with open_index(location, search_timeout_s=None) as index:
            check_compact(index.engine.deletions(), str(location))
            yield Workbench(corpus, folder, location, index.manifest, list(index.scan()))


def kept_index(corpus: Path, folder: Path) -> Path:
    """Return the index of a corpus that is kept in ``folder``; build it if it is missing, or was
    built from another file or by another program.

    Raises what ``build_index`` raises.
    """
    options = BuildOptions(overwrite=True)
    made_of = hashlib.sha256(repr(options.signature()).encode() + corpus.read_bytes()).hexdigest()
    location, stamp = folder / "index", folder / "made_of.sha256"
    if not (location.exists() and stamp.exists() and stamp.read_text("utf-8") == made_of):
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        say(f"Indexing {corpus.parent.name}/{corpus.name} in {folder}.")
        build_index([str(corpus)], location, options)
        write_atomically(stamp, made_of.encode())
    return location


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise BenchError if the disk has less free space."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise BenchError(
            f"There is room for {free >> 20:,} MB, but {needed_bytes >> 20:,} MB are needed.",
            where="the folder for temporary files",
            do="Name another one with --work, or leave the largest scale out.",
        )


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def command_line() -> list[str]:
    """Return the arag-search command of this environment."""
    script = Path(sys.executable).parent / "arag-search"
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from arag_search.cli.app import main; main()"]


def last_lines(output: str, count: int = 4) -> list[str]:
    """Return the last lines of what a process printed."""
    return output.strip().splitlines()[-count:]

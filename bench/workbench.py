"""What benches have in common: kept indexes, room on the disk, progress, our own command."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from arag_search.engines.base import check_compact
from arag_search.engines.lucene.jvm import java
from arag_search.errors import AragError
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.durable import write_atomically
from arag_search.system.progress import open_progress
from bench import BenchError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions


def kept_index(corpus: Path, folder: Path) -> Path:
    """Return the index of a corpus that is kept in ``folder``. Build it if it is missing, or was
    built from another file, from a folder whose files have changed, or by another program.

    Raises what ``build_index`` raises.
    """
    options = BuildOptions(overwrite=True)
    made_of = hashlib.sha256(repr(options.signature()).encode() + _content(corpus)).hexdigest()
    location, stamp = folder / "index", folder / "made_of.sha256"
    if not (location.exists() and stamp.exists() and stamp.read_text("utf-8") == made_of):
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        say(f"Indexing {corpus.parent.name}/{corpus.name} in {folder}.")
        build_index([str(corpus)], location, options)
        write_atomically(stamp, made_of.encode())
    return location


def _content(corpus: Path) -> bytes:
    """Return the bytes of a file or, for a folder, the names, sizes and times of its files."""
    if corpus.is_file():
        return corpus.read_bytes()
    files = [(path, path.stat()) for path in sorted(corpus.rglob("*")) if path.is_file()]
    parts = [(str(path.relative_to(corpus)), of.st_size, of.st_mtime_ns) for path, of in files]
    return repr(parts).encode()


def open_kept(corpus: Path, folder: Path, encoder: str | None, own: Path | None = None) -> Index:
    """Open the ``kept_index`` of a corpus, or the index that its data set has of its ``own``. If an
    encoder is named, it has vectors of both units, which are kept in ``folder``."""
    location = own or kept_index(corpus, folder)
    vectors: Path | None = None
    if encoder is not None:
        name = f"vectors{'-of-own-index' * bool(own)}-{encoder}"
        vectors = folder / re.sub(r"[^A-Za-z0-9.-]+", "-", name)
        options = EmbedOptions(vectors=vectors, sentence_titles=False)
        embed_index(location, encoder, options, open_progress())
    index = open_index(location, vectors=vectors, encoder=encoder, search_timeout_s=None)
    try:
        check_compact(index.engine.deletions(), str(location))
    except AragError:
        index.close()
        raise
    return index


@dataclass(frozen=True, slots=True)
class Building:
    """The cost of a system before the first question: calls of models and their tokens, seconds,
    and the bytes that it keeps."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    bytes: int = 0


def built_once(folder: Path, build: Callable[[], tuple[int, int]]) -> Building:
    """Build in a folder, unless a build was finished before, and return its cost. A build that was
    killed starts again. ``build`` returns its calls of models and their tokens."""
    noted = folder / "building.json"
    if not noted.exists():
        folder.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        calls, tokens = build()
        seconds = time.perf_counter() - began
        building = Building(calls, tokens, seconds, size_of(folder))
        write_atomically(noted, orjson.dumps(building))
    return Building(**orjson.loads(noted.read_bytes()))


@contextmanager
def without_query_cache() -> Generator[None]:
    """Switch off the query cache of all searchers that are created in the block. The setting
    belongs to the process."""
    searcher = java("org.apache.lucene.search.IndexSearcher")
    before = searcher.getDefaultQueryCache()
    searcher.setDefaultQueryCache(None)
    try:
        yield
    finally:
        searcher.setDefaultQueryCache(before)


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise BenchError if the disk has less free space."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise BenchError(
            f"There is room for {free >> 20:,} MB, but {needed_bytes >> 20:,} MB are needed.",
            where="the folder for temporary files",
            do="Name another one with --work, or leave the largest scale out.",
        )


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def command_line() -> list[str]:
    """Return the arag-search command of this environment."""
    return [sys.executable, "-c", "from arag_search.cli.app import main; main()"]


def last_lines(output: str, count: int = 4) -> list[str]:
    """Return the last lines of what a process printed."""
    return output.strip().splitlines()[-count:]

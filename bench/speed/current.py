"""How soon an index follows its files, and whether searches notice.

    uv run --extra all python -m bench current
    uv run --extra all python -m bench current --notes 1000 --files 10000 --syncs 1000

Generated notes. The first answer is that of a server that is started over a folder without an
index, from the start of its process. A change is found when a search of an open index finds it,
with the watcher in the same process, as in a server. Under load, two threads search without a pause
while an index is synchronised again and again; every answer must be of one state.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import anyio

from arag_search.engines.jars import CACHE_VARIABLE, cache_folder
from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say
from index_jobs.updates.addition import AddOptions, Followed, sync_documents
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.watching import Watcher

SEED = 1741
FOUND_TARGET = Target("at most", 2.0)
NONE_TARGET = Target("at most", 0.0)

_WORDS_A_NOTE = 120
_VOCABULARY = 5_000
_STATES = 12
_TIMEOUT_S = 300.0
_START = "from arag_search.cli.app import main; main()"


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser("current", __doc__)
    add = parser.add_argument
    add("--notes", type=positive, default=1_000, help="files of the folder without an index")
    add("--files", type=positive, default=10_000, help="files of the folder in which one changes")
    add("--changes", type=positive, default=40, help="changes that are waited for")
    add("--syncs", type=positive, default=1_000, help="synchronisations under load")
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    with tempfile.TemporaryDirectory(prefix="arag-current-", dir=options.work) as name:
        work = Path(name)
        figures = [
            first_answer(_notes(work / "first", options.notes), work),
            changes(_notes(work / "changing", options.files), work, options.changes),
            under_load(work, options.syncs),
        ]
        show(options.json, figures, run)
    return 0


def _notes(folder: Path, count: int) -> Path:
    """Write generated notes in folders of two hundred."""
    chosen = random.Random(SEED)
    for number in range(count):
        place = folder / f"folder{number // 200}"
        place.mkdir(parents=True, exist_ok=True)
        words = (f"word{chosen.randrange(_VOCABULARY)}" for _ in range(_WORDS_A_NOTE))
        text = f"# Note {number}\n\n{' '.join(words)}. The mark is unchanged{number}.\n"
        (place / f"note{number}.md").write_text(text)
    return folder


def first_answer(folder: Path, work: Path) -> Figure:
    """Measure the time from the start of a server over a folder to its first answer."""
    say(f"first answer over {sum(1 for _ in folder.rglob('*.md')):,} files")
    cache = work / "cache"
    cache.mkdir()
    for file in cache_folder().glob("*.*ar"):
        (cache / file.name).symlink_to(file)
    began = time.perf_counter()
    anyio.run(_ask_server, folder, cache)
    seconds = time.perf_counter() - began
    return Figure("first_answer", (Row("a folder without an index", seconds, "s"),), {})


async def _ask_server(folder: Path, cache: Path) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import TextContent

    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", _START, "mcp", str(folder)],
        env={**os.environ, CACHE_VARIABLE: str(cache)},
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        while True:
            result = await client.call_tool("logical_search", {"query": "unchanged7"})
            content = result.content[0]
            if isinstance(content, TextContent) and "note7.md" in content.text:
                return


@contextmanager
def _watching(folder: Path, location: Path) -> Generator[None]:
    stop = threading.Event()
    watcher = Watcher([str(folder)], location, OPTIONS)
    watcher.synchronise()
    thread = threading.Thread(target=watcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def changes(folder: Path, work: Path, count: int) -> Figure:
    """Measure how long a change of one file takes until a search finds it."""
    files = sorted(folder.rglob("*.md"))
    say(f"{count} changes of one of {len(files):,} files")
    chosen = random.Random(SEED)
    seconds: list[float] = []
    location = work / "changed"
    with _watching(folder, location), open_index(location, refresh="auto") as index:
        _found(index, files[0], "first")  # what a start-up costs is not that of a change
        for number in range(count):
            time.sleep(chosen.uniform(0.2, 1.2))
            seconds.append(_found(index, chosen.choice(files), f"changed{number}"))
    ordered = sorted(seconds)
    p95 = ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
    rows = (
        Row("median until it is found", median(ordered), "s", ordered[0], ordered[-1]),
        Row("p95 until it is found", p95, "s", None, None, FOUND_TARGET),
    )
    return Figure("one_changed_file", rows, {"files": len(files), "seconds": seconds})


def _found(index: Index, file: Path, word: str) -> float:
    """Save a file as editors do, and return the seconds until a search finds it."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_text(f"# Saved\n\nNow with {word}.\n")
    temporary.replace(file)
    began = time.perf_counter()
    while not index.logical_search(word, feedback=False).total:
        if time.perf_counter() - began > _TIMEOUT_S:
            raise BenchError("A change was not found.", where=str(file))
        time.sleep(0.01)
    return time.perf_counter() - began


def under_load(work: Path, syncs: int) -> Figure:
    """Count the answers that fail or mix states while an index is synchronised."""
    say(f"{syncs:,} synchronisations under load")
    folder, location = work / "states", work / "followed"
    folder.mkdir()

    def write(state: int) -> None:
        for number in range(_STATES):
            (folder / f"{number}.md").write_text(f"# Note {number}\n\nThe sea, state{state}.\n")

    write(0)
    Watcher([str(folder)], location, OPTIONS).synchronise()
    stop = threading.Event()
    answers: list[bool] = []
    failures: list[str] = []

    def search(index: Index) -> None:
        while not stop.is_set():
            try:
                hits = index.logical_search("sea", top_k=2 * _STATES).hits
                states = {hit.content.split()[-1] for hit in hits}
                answers.append(len(states) == 1 and len(hits) == _STATES)
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")

    options = AddOptions(files=OPTIONS.files, followed=Followed(frozenset((str(folder),))))
    with open_index(location, refresh="auto") as index:
        threads = [threading.Thread(target=search, args=(index,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for state in range(1, syncs + 1):
                write(state)
                sync_documents([str(folder)], location, options)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    rows = (
        Row("answers", len(answers), ""),
        Row("calls that failed", len(failures), "", None, None, NONE_TARGET),
        Row("answers that mix states", answers.count(False), "", None, None, NONE_TARGET),
    )
    return Figure("under_load", rows, {"syncs": syncs, "failures": failures[:10]})

"""How soon an index follows its files, and whether searches notice.

    uv run --extra all python -m bench current
    uv run --extra all python -m bench current --postgresql FOLDER --python FOLDER --only first

Generated notes, and the manuals of PostgreSQL and Python, as Debian packages them. The first answer
is that of a server that is started over a folder without an index, from the start of its process. A
change is found when a search of an open index finds it, with the watcher in the same process, as in
a server; with vectors, a search for words and one by vectors are waited for. Under load, two
threads search a hundred times a second while an index is synchronised again and again; every answer
must be of one state.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import anyio

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive
from bench.report.rounds import percentile
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import command_line, say
from index_jobs.embedding.job import embed_index
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
_PAUSE_S = 0.01
_ANSWER = re.compile(r"[1-9][0-9,]* of [0-9,]+ passages? for ")
_PARTS = ("first", "change", "vectors", "load")
_MANUALS = {
    "postgresql": "max_connections AND default",
    "python": "TimeoutExpired AND communicate",
}
"""The manuals, each with a query that it answers."""


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser("current", __doc__)
    add = parser.add_argument
    add("--notes", type=positive, default=1_000, help="files of the folder without an index")
    add("--files", type=positive, default=10_000, help="files of the folder in which one changes")
    add("--changes", type=positive, default=40, help="changes that are waited for")
    add("--vectors", type=positive, default=1_000, help="files of the folder with vectors")
    parser.add_default("--encoder", str, "hashing", "encoder of these vectors")
    add("--syncs", type=positive, default=1_000, help="synchronisations under load")
    for manual in _MANUALS:
        add(f"--{manual}", type=Path, metavar="FOLDER", help="its manual, as Debian packages it")
    add("--only", type=names_from(_PARTS), default=_PARTS, metavar="PART,...", help=f"of {_PARTS}")
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    with tempfile.TemporaryDirectory(prefix="arag-current-", dir=options.work) as name:
        work = Path(name)
        measures: dict[str, Callable[[], Figure]] = {
            "first": lambda: first_answers(_notes(work / "first", options.notes), work, options),
            "change": lambda: changes(
                _notes(work / "changing", options.files), work / "i", options.changes
            ),
            "vectors": lambda: changes(
                _notes(work / "encoded", options.vectors),
                work / "v",
                options.changes,
                options.encoder,
            ),
            "load": lambda: under_load(work, options.syncs),
        }
        for part in options.only:
            show(options.json, [measures[part]()], run)
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


def first_answers(notes: Path, work: Path, options: argparse.Namespace) -> Figure:
    """Measure the time from the start of a server over each folder to its first answer."""
    folders = {f"{options.notes:,} notes": (notes, "unchanged7")}
    for manual, query in _MANUALS.items():
        folder: Path | None = getattr(options, manual)
        if folder is not None:
            files = sum(path.is_file() for path in folder.rglob("*"))
            folders[f"manual of {manual}, {files:,} files"] = (folder, query)
    rows: list[Row] = []
    for name, (folder, query) in folders.items():
        say(f"first answer over {name}")
        cache = work / f"cache{len(rows)}"
        cache.mkdir()
        for file in cache_folder().glob("*.jar"):
            (cache / file.name).symlink_to(file)
        began = time.perf_counter()
        anyio.run(_ask_server, folder, cache, query)
        rows.append(Row(name, time.perf_counter() - began, "s"))
    return Figure("first answer of a folder without an index", tuple(rows))


async def _ask_server(folder: Path, cache: Path, query: str) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import TextContent

    program, *arguments = command_line()
    server = StdioServerParameters(
        command=program,
        args=[*arguments, "mcp", str(folder)],
        env={**os.environ, CACHE_VARIABLE: str(cache)},
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        while True:
            result = await client.call_tool("logical_search", {"query": query})
            content = result.content[0]
            if isinstance(content, TextContent) and _ANSWER.search(content.text):
                return


@contextmanager
def _watching(folder: Path, location: Path, encoder: str) -> Generator[None]:
    stop = threading.Event()
    watcher = Watcher([str(folder)], location, OPTIONS)
    watcher.synchronise()
    if encoder:
        embed_index(location, encoder)
    thread = threading.Thread(target=watcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def changes(folder: Path, location: Path, count: int, encoder: str = "") -> Figure:
    """Measure how long a change of one file takes until a search finds it, and with vectors, until
    one by vectors does."""
    files = sorted(folder.rglob("*.md"))
    say(f"{count} changes of one of {len(files):,} files{' with vectors' * bool(encoder)}")
    chosen = random.Random(SEED)
    ways = (_by_words, _by_vectors) if encoder else (_by_words,)
    seconds: dict[str, list[float]] = {}
    with (
        _watching(folder, location, encoder),
        open_index(location, refresh="auto", search_timeout_s=_TIMEOUT_S) as index,
    ):
        words = (f"changed{number}" for number in itertools.count())
        for way in ways:
            _found(index, files[0], next(words), way)  # without the cost of a start
        for _ in range(count):
            for way in ways:
                time.sleep(chosen.uniform(0.2, 1.2))
                took = _found(index, chosen.choice(files), next(words), way)
                seconds.setdefault(way.__name__.strip("_").replace("_", " "), []).append(took)
    rows: list[Row] = []
    for what, times in seconds.items():
        ordered = sorted(times)
        target = None if encoder else FOUND_TARGET
        rows.append(Row(f"median, {what}", median(ordered), "s", ordered[0], ordered[-1]))
        rows.append(Row(f"p95, {what}", percentile(times, 0.95), "s", None, None, target))
    details = {"files": len(files), "encoder": encoder, "seconds": seconds}
    name = "one changed file, with vectors" if encoder else "one changed file"
    return Figure(name, tuple(rows), details)


def _by_words(index: Index, word: str) -> bool:
    return bool(index.logical_search(word, feedback=False).total)


def _by_vectors(index: Index, word: str) -> bool:
    hits = index.semantic_search(f"Now with {word}", top_k=5).hits
    return any(word in hit.content for hit in hits)


def _found(index: Index, file: Path, word: str, way: Callable[[Index, str], bool]) -> float:
    """Save a file as editors do, and return the seconds until a search finds it."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_text(f"# Saved\n\nNow with {word}.\n")
    temporary.replace(file)
    began = time.perf_counter()
    while not way(index, word):
        if time.perf_counter() - began > _TIMEOUT_S:
            raise BenchError("A change was not found.", where=str(file))
        time.sleep(_PAUSE_S)
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
            time.sleep(_PAUSE_S)

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
    return Figure("under load", rows, {"syncs": syncs, "failures": failures[:10]})

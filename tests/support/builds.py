"""Corpora for tests of building, and the indexes that were built from them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchRequest
from arag_search.engines.lucene.location import hold_live
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.manifest import Manifest
from arag_search.query.tree import Term, any_of
from arag_search.system.progress import Progress
from index_jobs.build.options import BuildOptions
from tests.support.corpus_files import in_own_folder  # noqa: F401
from tests.support.plans import written

QUERY = any_of(Term("sea"), Term("opera"), Term("w7"))
PLAIN = BuildOptions(language="en")
OVERWRITE = BuildOptions(overwrite=True, language="en")


def contents(location: str | Path) -> tuple[Manifest, list[Chunk], list[tuple[str, float]]]:
    """Return the manifest, the chunks and the hits of a query, from the live index."""
    hold = hold_live(Path(location))
    engine = LuceneEngine.open(hold.path, str(location))
    try:
        page = engine.search(SearchRequest(written(QUERY), top_k=50))
        hits = [(hit.id, hit.score) for hit in page.hits]
        return engine.manifest, list(engine.scan(None)), hits
    finally:
        engine.close()
        hold.release()


def same_index(location: str | Path) -> tuple[Manifest, list[Chunk], list[tuple[str, float]]]:
    """Return the contents of an index without what differs from build to build."""
    manifest, chunks, hits = contents(location)
    return replace(manifest, created="", sources=()), chunks, hits


def corpus(name: str, documents: int, words: int = 30) -> str:
    """Write a corpus of seeded nonsense, the same for the same arguments."""
    chance = random.Random(documents)
    with Path(name).open("w") as file:
        for number in range(documents):
            text = " ".join(f"w{int(chance.expovariate(0.1))}" for _ in range(words))
            record = {
                "id": f"d{number}",
                "title": f"Title {number}",
                "text": f"{text}. Sea. {text}.",
            }
            file.write(json.dumps(record) + "\n")
    return name


class InterruptingProgress(Progress):
    """A progress that presses Ctrl-C after a number of documents, and records notes."""

    def __init__(self, documents: int) -> None:
        self.notes: list[str] = []
        self._documents = documents

    def update(self, read_bytes: int, documents: int, details: str = "") -> None:
        if documents >= self._documents:
            signal.raise_signal(signal.SIGINT)  # to this thread, not to one of Java

    def note(self, text: str) -> None:
        self.notes.append(text)


def checkpoint_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECKPOINT_S", "CHECKPOINT_SHARE"):
        monkeypatch.setattr(f"index_jobs.build.new_index.{name}", 0)


def without_times(manifest: Manifest) -> Manifest:
    return replace(manifest, created="", sources=())


CHILD = """
import sys, time
from pathlib import Path
from arag_search.cli.app import run
from arag_search.engines.lucene import writer
import index_jobs.build.new_index, arag_search.system.progress

action, interval, workers, to, *sources = sys.argv[1:]
peak = 0

def resident(process):
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])

def resident_in_all():
    # this process and its workers, in KB
    sizes = [resident("self")]
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"index_jobs.workers.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                sizes.append(resident(child))
    return sum(sizes)

class Stopping(arag_search.system.progress.PlainProgress):
    def update(self, read_bytes, documents, details=""):
        global peak
        if action == "SLOW":
            print(documents, flush=True)
            time.sleep(0.03)
        if action == "MEMORY":
            peak = max(peak, resident_in_all())

arag_search.system.progress.open_progress = lambda: Stopping(sys.stderr)

index_jobs.build.new_index.CHECKPOINT_S = float(interval)
if not float(interval):
    index_jobs.build.new_index.CHECKPOINT_SHARE = 0
if action == "MEMORY":
    writer.RAM_BUFFER_MB = 1.0
code = run(["index", *sources, "--to", to, "--workers", workers, "--language", "en"])
if action == "MEMORY":
    print("peak", peak)
sys.exit(code)
"""


def command(
    action: str,
    *sources: str,
    interval_s: float = 0.0,
    workers: int = 0,
    to: str = "index",
    folder: Path | None = None,
) -> "subprocess.Popen[str]":
    """Start arag-search index in its own process, with an action: the process prints its peak
    memory in KB (MEMORY), or its count of documents, slowly (SLOW)."""
    return subprocess.Popen(
        [
            sys.executable, "-c", CHILD, action, str(interval_s), str(workers), to, *sources,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "ARAG_JVM_HEAP": "128m"},
    )  # fmt: skip


def kill_build_at_random(
    chance: random.Random, documents: int, *sources: str, to: str, workers: int
) -> None:
    """Kill a build at a random moment after it has written a number of documents."""
    child = command("SLOW", *sources, to=to, workers=workers)
    assert child.stdout is not None
    written = 0
    while written < documents:
        line = child.stdout.readline()
        assert line.strip().isdecimal(), child.communicate()
        written = int(line)
    time.sleep(chance.uniform(0, 0.2))
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL


ODD = [
    "Caf\u00e9 and cafe\u0301. Both.",
    "\u0645\u0631\u062d\u0628\u0627. \u4f60\u597d\u3002 \U0001f469\u200d\U0001f469\u200d\U0001f467",
    "",
    "\u2028 line \x00 zero. \ufeffmark",
    "x" * 5000,
    "The sea. " * 900,
]


def troublesome_corpus(name: str, documents: int) -> str:
    """Write a corpus with odd Unicode, bad lines, and duplicate ids, near and far apart."""
    lines: list[str] = []
    for number in range(documents):
        record = {
            "id": f"d{number}",
            "title": f"Title {number}" if number % 3 else "",
            "text": ODD[number % len(ODD)],
            "year": number,
            "other": 1,
        }
        lines.append(json.dumps(record, ensure_ascii=number % 2 == 0))
        if number % 50 == 7:
            lines += ["oops", '{"text": 3}', lines[-1], json.dumps({"id": "d1", "text": "again"})]
    Path(name).write_text("\n".join(lines), encoding="utf-8")
    return name

"""Our whole build, beside bare Lucene and Anserini's indexer.

Beside Anserini, each build is a command in processes of its own. Both read the same passages from
JSON lines, store them, and index words with their positions by two threads or processes. Ours makes
normal forms and the words as written, counts tokens, and, unless that is left out, indexes each
sentence. Anserini stems and drops stop words.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import orjson

from arag_search.engines.lucene import schema
from arag_search.engines.lucene.location import hold_live
from bench import BenchError
from bench.processes import Cost, run
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.bare import index_bare, word_counts
from bench.speed.peers import Passages
from bench.workbench import command_line, say, size_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

OURS, BARE, ANSERINI = "ours", "bare Lucene", "Anserini"
OPTIONS = BuildOptions(without=("forms", "sentences"))
"""Without what Lucene's own analysis does not have."""
WARM_UP = 3
"""The number of rounds until Java has compiled the code in use."""
COPIES = 8
"""The copies of the corpus that are built beside Anserini."""
THREADS = "2"
TARGETS = {"sentences": Target("at most", 2.2), "no sentences": Target("at most", 1.6)}
"""The time of ours over the time of Anserini."""
SEED = 1741


def beside_bare(passages: Passages, rounds: int, *, warm_up: int = WARM_UP) -> Figure:
    """Measure the rates of our build and of a loop that adds passages, cut beforehand, to Lucene.
    Raises BenchError if both do not index the same passages and words."""
    ready = list(passages.index.scan())
    say(f"building: {len(ready):,} passages, {warm_up} + {rounds} rounds")
    source, room = str(passages.source), passages.folder / "building"
    sides = {
        OURS: _fresh(room / OURS, lambda at: build_index([source], at, OPTIONS)),
        BARE: _fresh(room / BARE, lambda at: index_bare(ready, at, None)),
    }
    timings = interleaved(sides, rounds, warm_up=warm_up)
    live = hold_live(room / OURS)
    try:
        here, there = word_counts(live.path / schema.CHUNKS_FOLDER), word_counts(room / BARE)
    finally:
        live.release()
    if here != there:
        raise BenchError("The bare loop did not index what ours did.", where=f"{here} | {there}")
    ratio = timings.ratio(BARE, OURS)
    rows = [Row.of_ratio("rate of ours to bare Lucene", ratio)]
    rows += [Row(of, len(ready) / timings.median_s(of), "passages/s") for of in timings.seconds]
    return Figure("building", tuple(rows), {"seconds": timings.seconds})


def _fresh(folder: Path, build: Callable[[Path], object]) -> Side:
    """Return a side that builds into a folder that does not exist yet."""

    def run() -> float:
        shutil.rmtree(folder, ignore_errors=True)
        return timed(lambda: build(folder))

    return run


def beside_anserini(passages: Passages, rounds: int, jar: Path) -> Figure:
    """Build ``COPIES`` copies of the corpus by all three commands in interleaved rounds. A first
    round does not count. ``jar`` is the fat jar of Anserini; the Java of ``JAVA_HOME`` runs it."""
    room, home = passages.folder / "anserini", os.environ.get("JAVA_HOME")
    java = Path(home or "", "bin", "java")
    if not java.exists() or not jar.exists():
        raise BenchError(
            "Anserini needs its jar, and a JDK of 21 or later.",
            where=f"--anserini {jar}, JAVA_HOME={home}",
            allowed="the fat jar in the package pyserini, and the folder of a JDK",
            do="Set JAVA_HOME, and name the jar with --anserini.",
        )
    (room / "passages").mkdir(parents=True)
    count = write_copies(passages, room / "ours.jsonl", room / "passages" / "anserini.jsonl")
    ours = (*command_line(), "index", room / "ours.jsonl", "--to")
    commands = {
        "sentences": (*ours, room / "sentences"),
        "no sentences": (*ours, room / "no sentences", "--without", "sentences"),
        ANSERINI: (
            *(java, "--add-modules", "jdk.incubator.vector", "-cp", jar),
            *("io.anserini.index.IndexCollection", "-collection", "JsonCollection"),
            *("-input", room / "passages", "-threads", THREADS, "-storePositions"),
            *("-storeRaw", "-index", room / ANSERINI),
        ),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in commands}

    def side(name: str) -> float:
        shutil.rmtree(room / name, ignore_errors=True)
        costs[name].append(run(commands[name]))
        return costs[name][-1].seconds

    say(f"building: {count:,} passages beside Anserini, 1 + {rounds} rounds")
    timings = interleaved({name: lambda name=name: side(name) for name in commands}, rounds)
    processor = Timings(
        {name: tuple(of.processor_s for of in kept[1:]) for name, kept in costs.items()}
    )
    rows: list[Row] = []
    for name, target in TARGETS.items():
        what = f"time of ours over Anserini, {name}"
        rows.append(Row.of_ratio(what, timings.ratio(name, ANSERINI), target))
        rows.append(Row.of_ratio(f"processor {what}", processor.ratio(name, ANSERINI)))
    for name, kept in costs.items():
        rows.append(Row(f"{name}: time", timings.median_s(name), "s"))
        rows.append(Row(f"{name}: processor time", processor.median_s(name), "s"))
        peak = max(cost.peak_bytes for cost in kept)
        rows.append(Row(f"{name}: memory of the command at most", peak / 1e6, "MB"))
        rows.append(Row(f"{name}: index", size_of(room / name) / 1e6, "MB"))
    details = {"seconds": timings.seconds, "jar": jar.name, "copies": COPIES, "passages": count}
    return Figure("building beside Anserini", tuple(rows), details)


def write_copies(passages: Passages, ours: Path, theirs: Path) -> int:
    """Write copies of all passages as both read them: the first as they are, then with other ids
    and shuffled sentences; how many.

    They are no corpus: document frequencies grow with the copies, and no new words appear.
    """
    random, count = Random(SEED), 0
    with ours.open("wb") as file, theirs.open("wb") as other:
        for number in range(COPIES):
            for chunk in passages.index.scan():
                sentences = [sentence.strip() for sentence in chunk.sentences()]
                if number:
                    random.shuffle(sentences)
                name, text = f"{chunk.id}-{number}", " ".join(sentences)
                line = {"id": name, "title": chunk.title, "text": text}
                file.write(orjson.dumps(line) + b"\n")
                line = {"id": name, "contents": f"{chunk.title}\n{text}"}
                other.write(orjson.dumps(line) + b"\n")
                count += 1
    return count

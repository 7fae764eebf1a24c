"""The ahead-of-time cache of the classes that a search needs, loaded and linked in one file.

With the cache a first search takes two thirds of the time. The first build on a machine, or the
third run of a version, starts a process that creates it. Nothing depends on it, and it may be
deleted at any time.

``python -m arag_search.engines.lucene.aot_cache`` creates it now.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines.base import KeywordRequest, SearchRequest
from arag_search.engines.jars import java_command
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan, values_of
from arag_search.plan.lower import lower
from arag_search.query.fields import NAMES, MetadataType
from arag_search.query.forms import NONE, steps
from arag_search.query.reading import parse
from arag_search.system.lock import HeldError, hold

_MAX_CACHES = 8
"""One for each environment on a machine; the newest are kept."""
_LOCK = ".aot.lock"
_PASSAGES = 400
_ROUNDS = 40
"""As many searches as an agent makes: Java keeps with the classes which code was used often."""
_QUERIES = (
    "opera",
    "opera OR vivaldi griselda",
    '"antonio vivaldi" AND (title:gris* OR number) NOT handel',
    '"antonio by"~4^2 AND kind:opera AND year:>=1700 day:1735-05',
    "handel AND opera",
    "opera AND number AND vivaldi",
    "vivaldy~1 OR antonio OR title:griselda OR by",
)


def create_in_background() -> None:
    """Start a process that creates the cache, if there is none and no other process creates one. It
    outlives this one, and errors do not matter."""
    with contextlib.suppress(OSError, HeldError):
        cache = jvm.aot_cache(jvm.class_path())
        if not cache.exists():
            cache.parent.mkdir(parents=True, exist_ok=True)
            os.close(hold(cache.with_name(_LOCK), ""))
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is meant for the command that started it
            )
            process.returncode = 0  # it is not waited for here, which Python would warn about


def create() -> None:
    """Create the cache in this process, which must not have started Java.

    Returns without it if another process is creating one. Raises CalledProcessError if Java did not
    write it whole.
    """
    cache = jvm.aot_cache(jvm.class_path())
    recorded = cache.with_name(".new.config")
    written = cache.with_name(".new.aot")
    cache.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = hold(cache.with_name(_LOCK), "")
    except HeldError:
        return
    try:
        with tempfile.TemporaryDirectory() as folder:
            jvm.start("-XX:AOTMode=record", f"-XX:AOTConfiguration={recorded}")
            _build_and_search(Path(folder))
            class_path = str(jvm.java("java.lang.System").getProperty("java.class.path"))
            jvm.stop()  # Java writes down what it has loaded
        create = ("-XX:AOTMode=create", f"-XX:AOTConfiguration={recorded}")
        subprocess.run(
            [
                java_command(),
                *jvm.FIXED_FLAGS,
                *create,
                f"-XX:AOTCache={written}",
                "-cp",
                class_path,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        os.replace(written, cache)
        caches = sorted(cache.parent.glob("java-*.aot"), key=os.path.getmtime)
        for old in caches[:-_MAX_CACHES]:
            old.unlink(missing_ok=True)
    finally:
        for path in (recorded, written):
            path.unlink(missing_ok=True)
        os.close(lock)


def _build_and_search(folder: Path) -> None:
    """Build a small index and search it in every way, so that Java loads the classes for it."""
    types: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "day": "date"}
    values = {"kind": "opera", "year": 1735, "day": "1735-05-18"}
    manifest = Manifest(
        engine=schema.LUCENE,
        engine_version=jvm.LUCENE_VERSION,
        created="",
        documents=_PASSAGES,
        chunks=_PASSAGES,
        sentences=_PASSAGES,
        tokens=0,
        chunk_tokens=1000,
        metadata=types,
        language=NONE,
        forms=steps(NONE),
        fingerprint="",
        placement="",
    )
    writer = LuceneWriter(folder, metadata=types, language=NONE, sentences=True, resume=False)
    for number in range(_PASSAGES):
        text = f"Griselda is opera number {number} by Antonio Vivaldi."
        ordinal = ordinal_of(0, number, 0)
        chunk = Chunk(
            f"{number}.1", str(number), "Griselda", text, 1, 1, ordinal, (len(text),), values
        )
        writer.add([chunk])
        if number % 20 == 10:
            writer.commit({})
    writer.finish(manifest, {})
    with closing(LuceneEngine.open(folder, "the training run")) as engine:
        queries = [
            ResolvedPlan(lower(parse(text, manifest.query_schema).tree, manifest.language))
            for text in _QUERIES
        ]
        names = values_of(NAMES, ("griselda", "vivaldi"))
        for _ in range(_ROUNDS):
            for query in queries:
                request = SearchRequest(query)
                engine.search(request)
                engine.search(SearchRequest(query, granularity="sentence"))
                engine.counts_and_pages([(part, "chunk") for part in queries], [request], None)
            engine.search(SearchRequest(names, 100))
            engine.counts([(names, "chunk")], None)
            engine.keyword_search(KeywordRequest(("Antonio Vivaldi", "opera")))
            engine.read(["3.1"], None)


if __name__ == "__main__":
    os.nice(10)
    create()

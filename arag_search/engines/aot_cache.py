"""Ahead-of-time caches of Java: the classes that a start needs, loaded and linked in one file.

The runtime comes without one, so that every start would parse and verify thousands of classes. A
cache is created once on a machine, in a process of its own with low priority: a training run
records which classes are loaded, and Java writes them to a file. Java silently ignores a cache that
is absent, cut short, of another format or made for another class path, so that nothing depends on
it. Damage in the middle of the file can crash Java, which is why the file is synced before it gets
its name; it may be deleted at any time.
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
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from arag_search.engines.jars import cache_folder
from arag_search.engines.runtime import java_command, java_home
from arag_search.system.lock import HeldError, hold

_SUFFIX = ".aot"
_STAGING = ".aot-"
_TIME_LIMIT_S = 300
_MAX_CACHES = 3
"""One for each environment on a machine; the caches used last are kept."""

Train = Callable[[Path, Sequence[str]], None]
"""Starts Java with more flags than usual, lets it work in an empty folder, and ends it."""


def cache_path(kind: str, jars: Sequence[str]) -> Path:
    """Return the path of the cache of a kind for this runtime and these jars.

    The name contains everything that the cache depends on; the file need not exist.
    """
    parts: list[str] = []
    for name in (str(java_home() / "release"), *_class_path(jars)):
        with contextlib.suppress(OSError):
            status = os.stat(name)
            parts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"{kind}-{digest[:16]}{_SUFFIX}"


def cache_flags(cache: Path) -> list[str]:
    """Return the flags with which Java starts from a cache; none if it does not exist."""
    return [f"-XX:AOTCache={cache}"] if cache.exists() else []


def create_in_background(cache: Path, module: str) -> subprocess.Popen[bytes] | None:
    """Start a process that creates a cache, ``python -m module``, and return it; None if there is
    such a cache already.

    The process outlives this one. Errors do not matter, since the cache is optional.
    """
    with contextlib.suppress(OSError):
        if cache.exists():
            return None
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is meant for the command that started it
        )
        atexit.register(_leave_running, process)
        return process
    return None


def _leave_running(process: subprocess.Popen[bytes]) -> None:
    process.returncode = process.poll() or 0  # else Python warns about a running process


def create(cache: Path, jars: Sequence[str], flags: Sequence[str], train: Train) -> Path | None:
    """Create a cache by a training run, and return its path. ``jars`` and ``flags`` are those that
    all starts have in common.

    Returns None if another process is creating it. Raises OSError, what the training run raises,
    and CalledProcessError if Java cannot write the cache or use what it wrote.
    """
    cache.parent.mkdir(parents=True, exist_ok=True)
    kind = _kind(cache)
    lock_file = cache.with_name(f"{_STAGING}{kind}.lock")
    try:
        lock = hold(lock_file, "")
    except HeldError:
        return None
    staging = f"{_STAGING}{kind}-"
    try:
        for interrupted in cache.parent.glob(f"{staging}*/"):
            shutil.rmtree(interrupted, ignore_errors=True)
        if not cache.exists():
            _create(cache, [*flags, "-cp", os.pathsep.join(_class_path(jars))], train, staging)
            _remove_old(cache)
    finally:
        lock_file.unlink()
        os.close(lock)
    return cache


def main(create: Callable[[], Path | None]) -> None:
    """Create a cache as a command, with low priority."""
    with contextlib.suppress(OSError):
        os.nice(10)
    print(create() or "Another process is creating the cache.")


def _class_path(jars: Sequence[str]) -> list[str]:
    """Return the class path of Java that JPype starts with these jars: JPype adds its own."""
    jpype = find_spec("jpype")
    if jpype is None or jpype.origin is None:
        return [*jars]
    return [*jars, str(Path(jpype.origin).resolve().parent.parent / "org.jpype.jar")]


def _create(cache: Path, flags: Sequence[str], train: Train, prefix: str) -> None:
    staging = Path(tempfile.mkdtemp(prefix=prefix, dir=cache.parent))
    try:
        recorded, written = staging / "configuration", staging / "cache"
        (staging / "run").mkdir()
        record = ["-XX:AOTMode=record", f"-XX:AOTConfiguration={recorded}"]
        train(staging / "run", record)
        create = ["-XX:AOTMode=create", f"-XX:AOTConfiguration={recorded}"]
        _run([*create, f"-XX:AOTCache={written}", *flags])
        _check(written, flags)
        with written.open("rb") as file:
            os.fsync(file.fileno())  # Java detects a cache that was cut short, but no empty blocks
        os.replace(written, cache)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check(cache: Path, flags: Sequence[str]) -> None:
    """Raise CalledProcessError if Java cannot start with the cache, for example on a full disk.

    Java has been seen to refuse a sound cache on a busy machine, so it is asked again.
    """
    for is_last in (False, False, True):
        if _run(["-XX:AOTMode=on", f"-XX:AOTCache={cache}", *flags, "-version"], check=is_last):
            return


def _run(options: Sequence[str], *, check: bool = True) -> bool:
    """Run Java with these options, and return whether it ended well."""
    command = [java_command(), *options]
    done = subprocess.run(command, check=check, capture_output=True, timeout=_TIME_LIMIT_S)
    return done.returncode == 0


def _remove_old(newest: Path) -> None:
    caches = [path for path in newest.parent.glob(f"{_kind(newest)}-*{_SUFFIX}") if path != newest]
    caches.sort(key=lambda path: path.stat().st_atime, reverse=True)
    for path in caches[_MAX_CACHES - 1 :]:
        path.unlink(missing_ok=True)


def _kind(cache: Path) -> str:
    return cache.stem.rpartition("-")[0]

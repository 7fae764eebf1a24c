"""A node: the process that ``cluster.py`` starts, ``python -m ....nodes.node FOLDER [--owned]``.

``FOLDER/node.json`` holds its class path, flags, modules and settings. The process runs until
SIGTERM or SIGINT, and with --owned until its standard input ends, so that the node of a test does
not outlive the test, however the test ends. Its output goes to its log.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch.nodes.settings import CONFIG, LOGGING, TEMPORARY
from arag_search.engines.runtime import jvm_library

NODE_FILE = "node.json"
_RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"


@dataclass(frozen=True, slots=True)
class NodeFile:
    """The configuration of a node; ``settings`` are those of opensearch.yml."""

    class_path: Sequence[str]
    flags: Sequence[str]
    modules: Sequence[str]
    settings: Mapping[str, str | Sequence[str]]

    def write(self, folder: Path) -> None:
        (folder / CONFIG).mkdir(parents=True, exist_ok=True)
        (folder / CONFIG / "opensearch.yml").touch()
        (folder / CONFIG / "log4j2.properties").write_text(LOGGING, encoding="ascii")
        (folder / TEMPORARY).mkdir(exist_ok=True)
        (folder / NODE_FILE).write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> NodeFile:
        return cls(**json.loads((folder / NODE_FILE).read_text(encoding="utf-8")))


def main(folder: Path, owned: bool) -> int:
    """Run the node in ``folder`` until it is stopped. Return the exit code."""
    # A signal writes into the pipe whichever thread gets it, so that none is missed: an event would
    # be set by Python's main thread alone, which may wait for the event already.
    stopped, stop = os.pipe()
    os.set_blocking(stop, False)
    signal.set_wakeup_fd(stop)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _do_nothing)
    if owned:
        threading.Thread(target=_stop_with_input, args=(stop,), daemon=True).start()
    runner = _start(NodeFile.read(folder), folder)
    if runner is None:
        return 1
    os.read(stopped, 1)
    runner.close()
    return 0


def _do_nothing(number: int, frame: object) -> None:
    """Do nothing about a signal, whose number is in the pipe already."""


def _stop_with_input(stop: int) -> None:
    """Write into the pipe ``stop`` when the input ends."""
    while os.read(0, 4096):
        pass
    os.write(stop, b"\0")


def _start(file: NodeFile, folder: Path) -> Any:
    """Start a node and return its runner; None, with the reason printed, if it fails."""
    jpype: Any = importlib.import_module("jpype")
    jpype.startJVM(
        *file.flags, jvmpath=jvm_library(), classpath=list(file.class_path), interrupt=False
    )

    def build(_: int, settings: Any) -> None:
        for name, value in file.settings.items():
            if isinstance(value, str):
                settings.put(name, value)
            else:
                settings.putList(name, jpype.JArray(jpype.JString)(list(value)))

    runner = jpype.JClass(_RUNNER)()
    runner.onBuild(jpype.JProxy(f"{_RUNNER}$Builder", dict={"build": build}))
    runner.setMaxHttpPort(-1)
    arguments = {
        "-numOfNode": "1",
        "-moduleTypes": ",".join(file.modules),
        "-basePath": str(folder),
        "-confPath": str(folder / CONFIG),
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


def _exit(code: int) -> None:
    """End the process without waiting for threads of Java, which may write what it recorded."""
    sys.stdout.flush()
    sys.stderr.flush()
    jpype: Any = importlib.import_module("jpype")
    if jpype.isJVMStarted():
        jpype.JClass("java.lang.System").exit(code)
    os._exit(code)


if __name__ == "__main__":
    _exit(main(Path(sys.argv[1]), "--owned" in sys.argv[2:]))

"""Count the files that a search enters, and its calls from one room into another.

    python -m bench trace
    python -m bench trace --calls

Builds the sample, runs a first search by command, and counts the calls of a second one. Imports do
not count, and neither does a generator that goes on; a room is a folder of the map
(arag_search/README.md).
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import inspect
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import arag_search
from arag_search.cli.app import run

QUERY = '"antonio vivaldi" AND librett* AND year:>=1690 NOT title:griselda'
FIRST_QUERY = "opera PREFER venice"
_ROOT = Path(arag_search.__file__).parents[1]
_PACKAGES = ("arag_search", "index_jobs")


@dataclass(slots=True)
class Trace:
    """The calls of one search: by file, and between two rooms as "from -> to"."""

    calls: Counter[str] = field(default_factory=Counter[str])
    changes: Counter[str] = field(default_factory=Counter[str])

    def to_dict(self) -> dict[str, int]:
        """Return the figures: files, changes of room, calls."""
        return {
            "files entered": len(self.calls),
            "changes of room": self.changes.total(),
            "calls": self.calls.total(),
        }


def main(arguments: Sequence[str]) -> int:
    """Print the figures and return the exit code."""
    from bench.arguments import BenchParser  # which needs the sources of today

    parser = BenchParser("trace", __doc__)
    parser.add_argument("--calls", action="store_true", help="list the files and changes of room")
    return parser.run(arguments, _printed)


def _printed(options: argparse.Namespace, command: str) -> int:
    trace = traced_search()
    print(json.dumps(trace.to_dict(), indent=2))
    if options.calls:
        for title, counts in (("file", trace.calls), ("change of room", trace.changes)):
            print(f"\ncalls  {title}")
            print("\n".join(f"{count:5}  {name}" for name, count in sorted(counts.items())))
    return 0


def traced_search() -> Trace:
    """Trace a search of the sample, whose index is built for this in a temporary folder."""
    sample = Path(arag_search.__file__).parent / "sample" / "corpus.jsonl"
    with tempfile.TemporaryDirectory(prefix="arag-bench-") as folder:
        index = str(Path(folder) / "index")
        _run("index", str(sample), "--to", index, "--metadata", "year:number,kind:keyword")
        _run("search", index, FIRST_QUERY)
        return traced(lambda: _run("search", index, QUERY))


def traced(call: Callable[[], object]) -> Trace:
    """Call a function and trace the calls that it makes in this project."""
    trace = Trace()
    files: dict[str, str | None] = {}

    def file_of(frame: FrameType) -> str | None:
        path = frame.f_code.co_filename
        if path not in files:
            inside = path.startswith(tuple(f"{_ROOT}/{package}/" for package in _PACKAGES))
            files[path] = Path(path).relative_to(_ROOT).as_posix() if inside else None
        return files[path]

    def count(frame: FrameType, event: str, _: object) -> None:
        file = file_of(frame) if event == "call" else None
        if file is None or frame.f_code.co_name == "<module>" or _goes_on(frame):
            return
        trace.calls[file] += 1
        caller = frame.f_back
        while caller is not None and file_of(caller) is None:
            caller = caller.f_back
        origin = None if caller is None else file_of(caller)
        if origin is not None and _room(origin) != _room(file):
            trace.changes[f"{_room(origin)} -> {_room(file)}"] += 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return trace


def _goes_on(frame: FrameType) -> bool:
    """Return whether a generator has yielded before."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_GENERATOR:
        return False
    yields = (step.offset for step in dis.get_instructions(code) if step.opname == "YIELD_VALUE")
    return frame.f_lasti >= min(yields, default=sys.maxsize)


def _room(file: str) -> str:
    """Return the room of a file: the folder below the package, or the module in it."""
    return "/".join(file.split("/")[:2])


def _run(*arguments: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(arguments))
    if code:
        raise RuntimeError(f"arag-search {' '.join(arguments)} ended with exit code {code}.")

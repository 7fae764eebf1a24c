"""Helpers for the tests of commands: the result of a command, and files to pass to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

SAMPLE = str(files("arag_search") / "sample" / "corpus.jsonl")
NOT_ALTERNATIVE = (
    "a NOT cannot be an alternative of OR; alone it matches nearly every passage. Write AND NOT, "
    "or a space before NOT."
)


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., CommandResult]


def file_of(name: str, *lines: object) -> str:
    """Write a file of lines, in which anything but a string becomes JSON; return its name."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    Path(name).write_text("\n".join(texts), encoding="utf-8")
    return name


def process(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )

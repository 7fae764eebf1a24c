"""What the command lines of benches share."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)


def command_line(module: str, arguments: Sequence[str] | None) -> str:
    """The command line as typed; of absolute paths only the last part, for they name a machine."""
    words = sys.argv[1:] if arguments is None else arguments
    shown = [Path(word).name if Path(word).is_absolute() else word for word in words]
    return shlex.join(["python", "-m", module, *shown])

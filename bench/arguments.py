"""What the command lines of benches share."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)


def command_line(name: str, arguments: Sequence[str]) -> str:
    """Return the command line of the bench ``name`` as it was typed.

    Of an absolute path only the last part is kept: the rest would name a machine.
    """
    shown = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    return shlex.join(["python", "-m", "bench", name, *shown])

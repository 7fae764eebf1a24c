"""The command line of a bench: shared options, errors, exit codes and the command as typed."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from arag_search.cli.output.printing import INTERRUPTED
from arag_search.errors import AragError
from arag_search.system.cache import cache_folder
from bench.data import SAMPLE, default_data

Measure = Callable[[argparse.Namespace, str], int]
"""Runs a bench with its options and its command as typed, and returns the exit code."""


class BenchParser(argparse.ArgumentParser):
    """The parser of one bench, described by the docstring of its module.

    A bench that ``resumes`` keeps what it has measured when it is interrupted. If a bench first
    checks which data it reads, it ``tells_sample`` itself.
    """

    def __init__(
        self,
        name: str,
        description: str | None,
        *,
        resumes: bool = False,
        tells_sample: bool = False,
    ) -> None:
        super().__init__(
            prog=f"python -m bench {name}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._name = name
        self._resumes = resumes
        self._tells_sample = tells_sample

    def add_default(
        self, option: str, type: Callable[[str], Any], default: object, what: str
    ) -> None:
        """Add an option with a default, which its help names."""
        self.add_argument(option, type=type, default=default, help=f"{what} (default %(default)s)")

    def add_data(self) -> None:
        """Add --data: a folder of data sets, one of them, or any folder of files."""
        self.add_default(
            "--data", Path, default_data(), "folder of the data sets, or any folder of files"
        )

    def add_work(self) -> None:
        """Add --work, the folder for temporary files; None stands for the system's."""
        self.add_argument(
            "--work", type=Path, help="folder for temporary files (default: the system's)"
        )

    def add_kept_work(self, contents: str, folder: str) -> None:
        """Add --work, the folder where ``contents`` are kept (default: ``folder`` in the cache)."""
        self.add_argument(
            "--work",
            type=Path,
            default=cache_folder() / "bench" / folder,
            help=f"where {contents} are kept (default: in the cache)",
        )

    def add_results(self) -> None:
        """Add --json, which names the file of results; only this option writes a published one."""
        file = f"{self._name}.json"
        what = f"file of results (default: in the cache; bench/results/{file} is published)"
        default = cache_folder() / "bench" / "results" / file
        self.add_argument("--json", type=Path, default=default, help=what)

    def run(self, arguments: Sequence[str], measure: Measure) -> int:
        """Parse the arguments, run ``measure`` and return its exit code.

        An AragError is printed to stderr and becomes exit code 1; an interrupt becomes 130.
        """
        options = self.parse_args(arguments)
        if not self._tells_sample:
            tell_sample(getattr(options, "data", None))
        try:
            return measure(options, command_line(self._name, arguments))
        except AragError as error:
            print(error, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            again = shlex.join([*self.prog.split(), *arguments])
            todo = f" Resume with: {again}" if self._resumes else ""
            print(f"Interrupted.{todo}", file=sys.stderr)
            return INTERRUPTED


def tell_sample(data: Path | None) -> None:
    """Tell a user whose bench reads the sample in place of data sets which ones to get."""
    if data is not None and SAMPLE in (data, data.parent):
        notice = "The data sets are not here: this measures the sample of 63 short articles."
        print(notice, "bench/README.md says which public files to get.", file=sys.stderr)


def whole_from(least: int) -> Callable[[str], int]:
    """Return a converter for argparse that takes whole numbers from ``least``."""

    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least}")
        return int(text)

    return convert


positive = whole_from(1)


def names_from(choices: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a converter for argparse that takes some of the choices, with commas between them, and
    drops duplicates."""

    def convert(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(text.split(",")))
        if not set(names) <= set(choices):
            raise argparse.ArgumentTypeError(f"{text} is not of {','.join(choices)}")
        return names

    return convert


def command_line(name: str, arguments: Sequence[str]) -> str:
    """Return the command line of the bench ``name`` as it was typed.

    Only the last part of an absolute path is kept, because the rest would identify a machine.
    """
    shown = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    return shlex.join(["python", "-m", "bench", name, *shown])

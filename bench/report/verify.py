"""Run figures again and compare them with their expected values.

    python -m bench verify
    python -m bench verify --only words --only offline
    python -m bench verify --all
    python -m bench verify --cheap

Commands, values and tolerances are in bench/expected.yaml. Without options, whatever takes a minute
or less runs; with --cheap, what needs no data but the sample of the package, and takes seconds.
Values of kind "deterministic" are the same for the same code, data and versions. Those of kind
"ratio" compare two times; they hold roughly on any machine and have a wide tolerance.
The exit code is 1 if a value is off or missing.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.errors import ArgumentError
from bench.arguments import BenchParser
from bench.report.expected import EXPECTED, Expectation, read_expected
from bench.report.rows import aligned, read_results, shown_number
from bench.workbench import last_lines, say


@dataclass(frozen=True, slots=True)
class Verdict:
    """One value, and what it should be; ``value`` is None if there is none."""

    of: str
    what: str
    expected: float
    tolerance: float
    value: float | None
    good: bool

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        value = "none" if self.value is None else shown_number(self.value)
        bound = f"{shown_number(self.expected)} ± {shown_number(self.tolerance)}"
        return (self.of, self.what, value, bound, "as expected" if self.good else "OFF")


def main(arguments: Sequence[str]) -> int:
    """Verify the chosen figures and return the exit code: 1 if a value is off or missing."""
    parser = BenchParser("verify", __doc__)
    add = parser.add_argument
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="verify only this command; may be repeated",
    )
    add("--all", action="store_true", help="include commands that take longer than a minute")
    add(
        "--cheap",
        action="store_true",
        help="only what is measured on the sample, in seconds",
    )
    add(
        "--expected",
        type=Path,
        default=EXPECTED,
        help="file of expected values (default bench/expected.yaml)",
    )
    return parser.run(arguments, _verified)


def _verified(options: argparse.Namespace, _: str) -> int:
    expected = read_expected(options.expected)
    if options.cheap:
        expected = {name: of for name, of in expected.items() if of.is_cheap}
    chosen = _chosen(expected, options.only, all_of_them=options.all)
    verdicts: list[Verdict] = []
    for name, expectation in chosen.items():
        say(f"{name}: python -m bench {expectation.command} (about {expectation.seconds:g} s)")
        began = time.perf_counter()
        verdicts += (of_name := list(verified(name, expectation)))
        off = sum(not verdict.good for verdict in of_name)
        seconds = time.perf_counter() - began
        say(f"{name}: {off or 'none'} of {len(expectation.expected)} off, {seconds:.0f} s")
    head = ("figure", "value", "found", "expected", "")
    print(aligned([head, *(verdict.cells() for verdict in verdicts)]))
    off = sum(not verdict.good for verdict in verdicts)
    ratios = sum(expectation.kind == "ratio" for expectation in chosen.values())
    print(
        f"{len(verdicts) - off} of {len(verdicts)} values are as expected;"
        f" {ratios} of {len(chosen)} figures are ratios of times, the others deterministic."
    )
    return 1 if off else 0


def verified(name: str, expectation: Expectation) -> Iterator[Verdict]:
    """Run a command and compare its values; if it fails, print its last lines to stderr and count
    all values as off."""
    values = _run(expectation)
    for what, expected in expectation.expected.items():
        value = values.get(what)
        good = value is not None and expectation.is_near(value, expected)
        yield Verdict(name, what, expected, expectation.tolerance, value, good)


def _run(expectation: Expectation) -> Mapping[str, float]:
    """Run the command and return its values by "figure/row"; none if it failed."""
    words = shlex.split(expectation.command)
    with tempfile.TemporaryDirectory(prefix="arag-verify-") as folder:
        results = Path(folder) / "results.json"
        done = subprocess.run(
            [sys.executable, "-m", "bench", *words, "--json", str(results)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not results.exists():
            lines = last_lines(done.stderr)
            say("\n".join([f"It ended with exit code {done.returncode}.", *lines]))
            return {}
        figures = read_results(results)
    return {
        f"{name}/{row.what}": row.value for name, figure in figures.items() for row in figure.rows
    }


def _chosen(
    expected: Mapping[str, Expectation], only: Sequence[str], *, all_of_them: bool
) -> dict[str, Expectation]:
    """Return the expectations that are named, else all or the quick ones. Raises ArgumentError for
    an unknown name."""
    unknown = [name for name in only if name not in expected]
    if unknown:
        raise ArgumentError(
            f"--only: nothing is expected of {', '.join(unknown)}.", allowed=", ".join(expected)
        )
    return {
        name: expectation
        for name, expectation in expected.items()
        if (name in only if only else all_of_them or expectation.is_quick)
    }

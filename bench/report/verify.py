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
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from arag_search.errors import ArgumentError
from arag_search.system.yaml_file import numbered, read_mapping
from bench import BenchError
from bench.arguments import BenchParser
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


# Expected figures: bench/expected.yaml, read strictly


EXPECTED = Path(__file__).parents[1] / "expected.yaml"
SAMPLE = "arag_search/sample"
QUICK_S = 60.0
"""Expectations that take at most this long are verified by default."""

_WHAT = "file of expected figures"


class Expectation(BaseModel):
    """A command of a bench with its expected values.

    ``expected`` is keyed by "figure/row" as in the file of results. A value is right if it differs
    by at most ``tolerance``.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    command: str = Field(
        pattern=r"^\w+( [^\s].*)?$", description="As after python -m bench; gets --json as well."
    )
    kind: Literal["deterministic", "ratio"] = Field(
        description="Whether the same code gives the same values, or two times are compared."
    )
    seconds: float = Field(gt=0, description="What it takes on two cores, about.")
    tolerance: float = Field(ge=0, description="In the unit of the values.")
    expected: Mapping[str, float] = Field(min_length=1)

    @property
    def is_quick(self) -> bool:
        """Whether it is verified by default."""
        return self.seconds <= QUICK_S

    @property
    def is_cheap(self) -> bool:
        """Whether it needs no data but the sample of the package, and takes seconds."""
        return f"--data {SAMPLE}" in self.command

    def is_near(self, value: float, expected: float) -> bool:
        """Return whether a value is within the tolerance of the expected one."""
        return abs(value - expected) <= self.tolerance + 1e-9 * abs(expected)


def read_expected(path: Path = EXPECTED) -> dict[str, Expectation]:
    """Read all expectations by name, in the order of the file.

    Raises ConfigError if the file is not YAML, BenchError listing everything else that is wrong.
    """
    keys = ", ".join(Expectation.model_fields)
    content = read_mapping(path, _WHAT, holds="expectations", allowed=f"names, each with {keys}")
    try:
        return TypeAdapter(dict[str, Expectation]).validate_python(content)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, entry['loc']))}: {entry['msg'][:1].lower()}{entry['msg'][1:]}."
            for entry in error.errors()
        ]
        raise BenchError(
            numbered(_WHAT, problems), where=str(path), allowed=f"names, each with {keys}"
        ) from error

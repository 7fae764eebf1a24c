"""Run figures again and compare them with their expected values.

    python -m bench verify
    python -m bench verify --only retrieval
    python -m bench verify --long

bench/expected.yaml has the commands, with their values. Those marked long run with --long, instead
of the others. A command whose data is not here is skipped, which is said. The exit code is 1 if a
value is off or missing.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from arag_search.errors import ArgumentError
from arag_search.system.yaml_file import read_mapping
from bench import BenchError
from bench.arguments import BenchParser
from bench.report.rows import read_results, shown_number
from bench.workbench import last_lines, say

EXPECTED = Path(__file__).parents[1] / "expected.yaml"
_WHAT = "file of expected figures"


class Expectation(BaseModel):
    """A command of a bench, as after ``python -m bench`` and without --json, with its values.

    ``expected`` is keyed by "figure/row" as in the file of results. A value is right if it differs
    by at most ``tolerance``. ``seconds`` is what the command takes on two cores, ``needs`` a folder
    without which it cannot run, and ``guides`` the documents that state the values.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    command: str = Field(pattern=r"^\w+( [^\s].*)?$")
    seconds: float = Field(gt=0)
    tolerance: float = Field(ge=0)
    long: bool = False
    needs: str | None = None
    guides: list[str] = []
    expected: Mapping[str, float] = Field(min_length=1)

    def is_near(self, value: float, expected: float) -> bool:
        """Return whether a value is within the tolerance of the expected one."""
        return abs(value - expected) <= self.tolerance + 1e-9 * abs(expected)


def main(arguments: Sequence[str]) -> int:
    """Verify the chosen figures and return the exit code: 1 if a value is off or missing."""
    parser = BenchParser("verify", __doc__)
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="only this entry; may be repeated")
    add("--long", action="store_true", help="the entries that take long, instead of the others")
    parser.add_default("--expected", Path, EXPECTED, "file of expected values")
    return parser.run(arguments, _verified)


def _verified(options: argparse.Namespace, _: str) -> int:
    expectations = read_expected(options.expected)
    names = [name for name, of in expectations.items() if of.long == options.long]
    for name in options.only or ():
        if name not in expectations:
            raise ArgumentError(
                f'--only: nothing is expected of "{name}".', allowed=", ".join(expectations)
            )
    values = off = 0
    for name in options.only or names:
        of = expectations[name]
        if of.needs is not None and not Path(of.needs).is_dir():
            print(f"{name}: skipped, there is no {of.needs}")
            continue
        say(f"{name}: python -m bench {of.command} (about {of.seconds:g} s)")
        began = time.perf_counter()
        deviations = verified(of)
        seconds = time.perf_counter() - began
        print(f"{name}: {len(deviations)} of {len(of.expected)} values off, {seconds:.0f} s")
        print(*deviations, sep="", end="", flush=True)
        values += len(of.expected)
        off += len(deviations)
    print(f"{values - off} of {values} values are as expected.")
    return 1 if off else 0


def verified(expectation: Expectation) -> list[str]:
    """Run a command and return a line for each value that is off. If it fails, all are off, and its
    last lines go to stderr."""
    with tempfile.TemporaryDirectory(prefix="arag-verify-") as folder:
        results = Path(folder) / "results.json"
        command = ["bench", *shlex.split(expectation.command), "--json", str(results)]
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False
        )
        values: dict[str, float] = {}
        if done.returncode or not results.exists():
            said = "\n".join(last_lines(done.stderr))
            say(f"It ended with exit code {done.returncode}.\n{said}")
        else:
            for name, figure in read_results(results).items():
                values |= {f"{name}/{row.what}": row.value for row in figure.rows}
    lines: list[str] = []
    for what, expected in expectation.expected.items():
        value = values.get(what)
        if value is None or not expectation.is_near(value, expected):
            text = "none" if value is None else shown_number(value)
            lines.append(f"  OFF  {what}: {text} instead of {shown_number(expected)}\n")
    return lines


def read_expected(path: Path = EXPECTED) -> dict[str, Expectation]:
    """Read all expectations by name, in the order of the file.

    Raises ConfigError if the file is not YAML, BenchError with all that is wrong otherwise.
    """
    allowed = f"names, each with {', '.join(Expectation.model_fields)}"
    content = read_mapping(path, _WHAT, holds="expectations", allowed=allowed)
    try:
        return TypeAdapter(dict[str, Expectation]).validate_python(content)
    except ValidationError as error:
        raise BenchError(f"The {_WHAT} is wrong: {error}", where=str(path)) from error

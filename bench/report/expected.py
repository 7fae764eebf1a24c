"""Expected figures: bench/expected.yaml, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from bench import BenchError

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
    results: str | None = Field(
        default=None, description="The file of results that holds the same figures."
    )
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


def expectation(name: str, path: Path = EXPECTED) -> Expectation:
    """Read the expectation of this name. Raises as ``read_expected``, and ConfigError for an
    unknown name."""
    expectations = read_expected(path)
    if name not in expectations:
        raise ConfigError(
            f'Nothing is expected of "{name}".', where=str(path), allowed=", ".join(expectations)
        )
    return expectations[name]

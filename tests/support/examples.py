"""How much is tried: all that a test knows in ``.ci/long``, a tenth of it in every other run."""

import os
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "ARAG_TEST_EXAMPLES"
FULL = 1_000
"""The number of random queries on which engines are compared in ``.ci/long``, unless it is given
another; other tests try more or less in proportion."""

_LEAST = 3

T = TypeVar("T")


def is_long() -> bool:
    """Return whether this run is a long one."""
    return VARIABLE in os.environ


def examples(in_long: int, share: int = 10) -> int:
    """Return so many in a long run, and elsewhere that divided by ``share``, but at least 3."""
    wanted = int(os.environ.get(VARIABLE, FULL // share))
    return max(min(in_long, _LEAST), in_long * wanted // FULL)


def some_of(values: Sequence[T], count: int = 1) -> Sequence[T]:
    """Return all values in a long run, and the first ``count`` elsewhere."""
    return values if is_long() else values[:count]

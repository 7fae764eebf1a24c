"""A suite and an experiment for tests: a formula computes the values, and nothing is searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from bench.ablation.cells import CellRow, Key
from bench.ablation.suite import Suite, checked_suite

SETS = {"small": 6, "large": 12}

Values = Callable[[Key, int], dict[str, float | None]]
"""The values of a condition and the number of a question."""


def suite_values(**changes: Any) -> dict[str, Any]:
    """Return a gold-chain suite as YAML gives it: two interfaces, two orders, a pair."""
    values: dict[str, Any] = {
        "name": "trial",
        "description": "Two interfaces.",
        "experiment": {
            "kind": "gold_chain",
            "sets": list(SETS),
            "passages": ["published"],
            "interfaces": ["logical", "keyword"],
            "orders": ["Q1 Q2", "Q2 Q1"],
            "names": ["surface"],
            "encoder": "hashing:16",
        },
        "comparison": {
            "factor": "interface",
            "pairs": [["logical", "keyword"]],
            "primary": "TokensToEvidence",
            "secondary": ["FullEvidence"],
            "policy": {"order": "Q1 Q2"},
        },
    }
    for path, value in changes.items():
        part, _, key = path.rpartition("__")
        target = values
        for step in part.split("__") if part else ():
            target = target[step]
        target[key] = value
    return values


def suite_of(**changes: Any) -> Suite:
    return checked_suite(suite_values(**changes), "trial.yaml")


class ComputedExperiment:
    """An experiment whose values are computed. ``measured`` lists the keys in the order in which
    they are measured; ``stop_at`` is the number of the measurement that raises KeyboardInterrupt
    instead; ``more`` returns further details of a question, by its number."""

    def __init__(
        self, suite: Suite, values: Values, *, code: str = "one", stop_at: int | None = None
    ) -> None:
        self._suite = suite
        self._values = values
        self.code: Mapping[str, str] = {"code": code}
        self.stop_at = stop_at
        self.measured: list[Key] = []
        self.seeds = (1,)
        self.more: Callable[[int], Mapping[str, Any]] = lambda number: {}

    @property
    def keys(self) -> Sequence[Key]:
        factors = self._suite.experiment.factors
        return [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]

    def fingerprints(self, key: Key) -> Mapping[str, str]:
        return self.code

    def measure(self, key: Key) -> list[CellRow]:
        if len(self.measured) == self.stop_at:
            raise KeyboardInterrupt
        self.measured.append(key)
        return [
            CellRow(
                f"q{number}",
                "even" if number % 2 == 0 else "odd",
                seed,
                self._values(key, number),
                {
                    "hops": 2 + number % 3,
                    "record": f"cells/{key['interface']}#q{number}",
                    "searches": 4,
                    "zero_hits": 1,
                    "curve": [(0, 0.0), (100 + number, 1.0)],
                    **self.more(number),
                },
            )
            for number in range(SETS[key["set"]])
            for seed in self.seeds
        ]

    def close(self) -> None:
        pass


def halved_tokens(key: Key, number: int) -> dict[str, float | None]:
    """Return values in which logical takes half of the tokens of keyword, under every order."""
    tokens = 100.0 * (number + 1) * (0.5 if key["interface"] == "logical" else 1.0)
    return {"TokensToEvidence": tokens, "FullEvidence": float(number % 4 != 0)}

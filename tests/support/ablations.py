"""A suite and its cells for tests: a formula computes the values, and nothing is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.ablation.cells import Cell, CellRow
from bench.ablation.suite import Key, Suite, checked_suite

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
            "interfaces": ["logical", "keyword"],
            "orders": ["Q1 Q2 Q3", "Q2 Q1 Q3"],
            "names": ["surface"],
            "encoder": "hashing:16",
        },
        "comparison": {
            "factor": "interface",
            "pairs": [["logical", "keyword"]],
            "primary": "TokensToEvidence",
            "secondary": ["FullEvidence"],
            "apart": ["order"],
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


def cells_of(suite: Suite, values: Values, seeds: Sequence[int] = (1,)) -> list[Cell]:
    """Return the cells of a suite with computed values."""
    return [
        Cell(
            key,
            {"index": key["set"]},
            [
                CellRow(f"q{n}", "even" if n % 2 == 0 else "odd", seed, values(key, n))
                for n in range(SETS[key["set"]])
                for seed in seeds
            ],
        )
        for key in suite.keys
    ]


def halved_tokens(key: Key, number: int) -> dict[str, float | None]:
    """Return values in which logical takes half of the tokens of keyword, under every order."""
    tokens = 100.0 * (number + 1) * (0.5 if key["interface"] == "logical" else 1.0)
    return {"TokensToEvidence": tokens, "FullEvidence": float(number % 4 != 0)}


def read_cells(folder: Path) -> list[Cell]:
    """Read the cells that a report was written from, below the folder of its suite."""
    (path,) = folder.rglob("cells.jsonl")
    kept = map(orjson.loads, path.read_bytes().splitlines())
    return [
        Cell(cell["key"], cell["fingerprints"], [CellRow(**row) for row in cell["rows"]])
        for cell in kept
    ]

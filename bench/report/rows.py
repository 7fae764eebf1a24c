"""Measured rows with their targets, as a table and as JSON with their circumstances."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from arag_search.engines.lucene.jvm import LUCENE_VERSION
from arag_search.evaluation.bootstrap import Interval
from arag_search.manifest import Manifest
from arag_search.system.processes import usable_cores
from arag_search.system.release import git
from bench.report import markdown
from bench.report.fingerprints import code_fingerprint

MACRO = "macro-average"
"""The name of the average in which each data set counts the same."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that a value has to keep."""

    kind: Literal["at least", "at most"]
    value: float

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g}"

    def reached(self, value: float) -> bool:
        """Return whether the value keeps the bound; an equal value does."""
        return value >= self.value if self.kind == "at least" else value <= self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One number. ``low`` and ``high`` are its range over the rounds, or an interval; None if
    the figure has neither."""

    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    target: Target | None = None

    @staticmethod
    def of_ratio(what: str, ratio: Interval, target: Target | None = None) -> Row:
        """Return a ratio with its range."""
        return Row(what, ratio.value, "x", ratio.low, ratio.high, target)

    @property
    def verdict(self) -> str:
        """Reached or missed; nothing if there is no target."""
        if self.target is None:
            return ""
        return "reached" if self.target.reached(self.value) else "missed"

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        content: dict[str, Any] = {"what": self.what, "value": self.value, "unit": self.unit}
        if self.low is not None:
            content["range"] = [self.low, self.high]
        if self.target is not None:
            content["target"] = str(self.target)
            content["verdict"] = self.verdict
        return content


@dataclass(frozen=True, slots=True)
class Figure:
    """A part of the bench with all of its measurements. ``details`` are further values for JSON."""

    name: str
    rows: tuple[Row, ...]
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return the figure for JSON."""
        return {"rows": [row.to_dict() for row in self.rows], "details": dict(self.details)}


def table(figures: Sequence[Figure]) -> str:
    """Format all rows as a table in Markdown."""
    lines: list[tuple[str, ...]] = []
    for figure in figures:
        for row in figure.rows:
            bound = str(row.target) if row.target else ""
            spread = ""
            if row.low is not None and row.high is not None:
                spread = f"{shown_number(row.low)} to {shown_number(row.high)}"
            value = f"{shown_number(row.value)} {row.unit}".strip()
            lines.append((figure.name, row.what, value, spread, bound, row.verdict))
    return "\n".join(markdown.table(("figure", "what", "value", "range", "target", ""), lines))


def shown_number(value: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.6f}"


def circumstances(
    command: str, manifest: Manifest | None = None, *, seed: int | None = None
) -> dict[str, Any]:
    """Return what the figures depend on: code, versions, the corpus and the seed if there is one;
    nothing that names the machine."""
    about: dict[str, Any] = {
        "command": command,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": git("rev-parse", "--verify", "HEAD"),
        "uncommitted_changes": bool(git("status", "--porcelain")),
        "code": code_fingerprint(),
        "python": platform.python_version(),
        "lucene": LUCENE_VERSION,
        "cpus": usable_cores(),
        "load": round(os.getloadavg()[0], 2),
    }
    if manifest:
        about["corpus"] = corpus_of(manifest)
    return about if seed is None else {**about, "seed": seed}


def corpus_of(manifest: Manifest) -> dict[str, Any]:
    """Return the size and fingerprint of the corpus of an index."""
    return {
        "passages": manifest.documents,
        "chunks": manifest.chunks,
        "sentences": manifest.sentences,
        "fingerprint": manifest.fingerprint,
    }


def show(path: Path, figures: Sequence[Figure], run: Mapping[str, Any]) -> None:
    """Write the figures to a file and print them as a table."""
    write_results(path, figures, run)
    print(table(figures), end="")
    print(f"Results are in {path}.", file=sys.stderr)


def write_results(path: Path, figures: Sequence[Figure], run: Mapping[str, Any]) -> None:
    """Write the figures to a file; other figures in it stay. Each row, and each entry of the
    details, is a line."""
    kept: dict[str, Any] = {}
    if path.exists():
        kept = orjson.loads(path.read_bytes())["figures"]
    for figure in figures:
        kept[figure.name] = {**figure.to_dict(), "run": dict(run)}
    path.parent.mkdir(parents=True, exist_ok=True)
    laid_out = {
        name: {
            "rows": [_line(row) for row in of["rows"]],
            "details": {what: _line(detail) for what, detail in of["details"].items()},
            "run": _line(of["run"]),
        }
        for name, of in sorted(kept.items())
    }
    path.write_bytes(orjson.dumps({"figures": laid_out}, option=orjson.OPT_INDENT_2) + b"\n")


def _line(value: Any) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(value))


def read_results(path: Path) -> dict[str, Figure]:
    """Read the figures that ``write_results`` wrote, by name, without their targets; the details of
    a figure include its run."""
    return {
        name: Figure(
            name,
            tuple(
                Row(row["what"], row["value"], row["unit"], *row.get("range", ()))
                for row in kept["rows"]
            ),
            {**kept["details"], "run": kept["run"]},
        )
        for name, kept in orjson.loads(path.read_bytes())["figures"].items()
    }

"""Figures of papers, shown next to ours: not measured here, and never compared by a test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from arag_search.system.yaml_file import read_mapping
from bench.report.markdown import table

FILE = Path(__file__).parents[1] / "papers.yaml"
MEAN = "mean of "
"""The beginning of the name of a data set that stands for several."""
Figures = Sequence[tuple[str, str, str, str, float]]
"""System, model, data set, measure and value."""


@cache
def all_tables() -> list[dict[str, Any]]:
    """Return all tables of the file; a test checks them. Raises ConfigError if it is no YAML."""
    values: Any = read_mapping(FILE, "list of figures", holds="figures", allowed="tables: a list")
    return values["tables"]


def figures_of(paper: dict[str, Any], sets: Collection[str]) -> Figures:
    """Return the figures of some data sets, and the figures that are of no single set."""
    others = {name for name in paper["passages"] if not name.startswith(MEAN)} - set(sets)
    return [tuple(figure) for figure in paper["figures"] if figure[2] not in others]


def paper_lines(suite: str, sets: Collection[str]) -> list[str]:
    """Return the tables for a suite in Markdown, with the figures of its data sets; nothing if
    there are none."""
    papers = [paper for paper in all_tables() if suite in paper["suites"]]
    said = "Figures of papers, on other corpora and questions than ours, as read at the source."
    lines = ["## Not measured here", "", said, ""] if papers else []
    for paper in papers:
        measures = "; ".join(f"{name}: {of}" for name, of in paper["measures"].items())
        about = (
            "{paper}: {what}, in {unit}; questions: {questions}. Source: {source}, {table}. {note}"
        )
        lines += [f"{about.format_map(paper)} Measures: {measures or 'plain'}.", ""]
        rows = [
            (*names, f"{value:g}", paper["passages"].get(names[2], "not stated"))
            for *names, value in figures_of(paper, sets)
        ]
        lines += table(("system", "model", "data set", "measure", "value", "passages"), rows)
    return lines

"""Figures of papers, shown next to ours: not measured here, and never compared by a test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from bench.ablation.suite import Part
from bench.report.markdown import table

MEAN = "mean of "
"""What the name of a data set begins with that stands for several."""
FILE = Path(__file__).parents[1] / "papers.yaml"


class PaperTable(Part):
    """Figures of one table of a paper: system, model, data set, measure and value.

    ``suites`` are those whose reports show it. ``table`` is its number, ``what`` what it measures,
    ``measures`` what its measures mean. ``passages`` is the size of the corpus by data set.
    ``settings`` and ``marks`` are what is not a number; ``note`` says what is lost, derived or
    doubtful.
    """

    id: str
    suites: tuple[str, ...]
    paper: str
    source: str
    table: str
    what: str
    unit: str
    questions: str
    passages: dict[str, str]
    models: tuple[str, ...]
    measures: dict[str, str]
    settings: dict[str, str] = Field(default_factory=dict[str, str])
    marks: tuple[tuple[str, ...], ...] = ()
    note: str
    figures: tuple[tuple[str, str, str, str, float], ...]


def paper_tables(suite: str, sets: Collection[str]) -> list[PaperTable]:
    """Return the tables for a suite, with the figures of its data sets, and those that are of none
    alone. Raises ConfigError naming everything that is wrong."""
    shown: list[PaperTable] = []
    for paper in all_tables():
        if suite in paper.suites:
            others = {name for name in paper.passages if not name.startswith(MEAN)} - set(sets)
            kept = tuple(figure for figure in paper.figures if figure[2] not in others)
            shown.append(paper.model_copy(update={"figures": kept}))
    return shown


@cache
def all_tables() -> tuple[PaperTable, ...]:
    """Return all tables. Raises ConfigError naming everything that is wrong."""
    values = read_mapping(FILE, "list of figures", holds="figures", allowed="tables: a list")
    try:
        reader = TypeAdapter(tuple[PaperTable, ...])
        return reader.validate_json(orjson.dumps(values["tables"], default=str))
    except ValidationError as error:
        problems = [f"{problem['loc']}: {problem['msg']}." for problem in error.errors()]
        raise ConfigError(numbered("list of figures", problems), where=str(FILE)) from error


def paper_lines(tables: Sequence[PaperTable]) -> list[str]:
    """Return the figures in Markdown; nothing if there are none."""
    if not tables:
        return []
    said = "Figures of papers, on other corpora and questions than ours, as read at the source."
    lines = ["## Not measured here", "", said, ""]
    for paper in tables:
        measures = "; ".join(f"{name}: {meaning}" for name, meaning in paper.measures.items())
        lines += [
            f"{paper.paper}: {paper.what}, in {paper.unit}; questions: {paper.questions}. "
            f"Source: {paper.source}, {paper.table}. {paper.note} Measures: {measures or 'plain'}.",
            "",
        ]
        rows = [
            (*names, f"{value:g}", paper.passages.get(names[2], "not stated"))
            for *names, value in paper.figures
        ]
        lines += table(("system", "model", "data set", "measure", "value", "passages"), rows)
    return lines

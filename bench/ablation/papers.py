"""Figures of papers, shown next to ours: not measured here, and never compared by a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
from pydantic import ValidationError

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from bench.ablation.suite import Part
from bench.report.markdown import table

FILE = Path(__file__).parents[1] / "papers.yaml"


class PaperTable(Part):
    """Figures of one table of a paper, with their systems, models, data and source. ``figures`` are
    system, model, data set, measure and value; ``passages`` is the size of the corpus by data
    set."""

    suites: tuple[str, ...]
    paper: str
    source: str
    questions: str
    passages: dict[str, str]
    figures: tuple[tuple[str, str, str, str, float], ...]


class PaperTables(Part):
    """The content of the file."""

    tables: tuple[PaperTable, ...]


def paper_tables(suite: str) -> list[PaperTable]:
    """Return the tables for a suite. Raises ConfigError naming everything that is wrong."""
    values = read_mapping(FILE, "list of figures", holds="figures", allowed="tables: a list")
    try:
        content = PaperTables.model_validate_json(orjson.dumps(values, default=str))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}."
            for problem in error.errors(include_url=False)
        ]
        raise ConfigError(numbered("list of figures", problems), where=str(FILE)) from error
    return [paper for paper in content.tables if suite in paper.suites]


def paper_lines(tables: Sequence[PaperTable]) -> list[str]:
    """Return the figures in Markdown; nothing if there are none."""
    if not tables:
        return []
    lines = [
        "## Not measured here",
        "",
        "Figures of papers, on other corpora and questions than ours, as read at the source; no "
        "test compares them with ours.",
        "",
    ]
    head = ("system", "model", "data set", "measure", "value", "passages")
    for paper in tables:
        lines += [
            f"{paper.paper}; questions: {paper.questions}. Source: {paper.source}",
            "",
        ]
        rows = [
            (*names, f"{value:g}", paper.passages.get(names[2], "not stated"))
            for *names, value in paper.figures
        ]
        lines += table(head, rows)
    return lines

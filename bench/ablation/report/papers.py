"""Figures of papers, to stand beside ours: never measured here, and never compared by a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
from pydantic import ValidationError

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from bench.ablation.experiment.suite import Part
from bench.ablation.report.wording import table

FILE = Path(__file__).parents[2] / "papers.yaml"


class PaperTable(Part):
    """Figures of one table: of which systems with which models, on which data, and where they were
    read. ``figures`` are system, model, data set, measure and value; ``passages`` is the size of
    the corpus by data set."""

    suites: tuple[str, ...]
    paper: str
    source: str
    questions: str
    passages: dict[str, str]
    figures: tuple[tuple[str, str, str, str, float], ...]


class PaperTables(Part):
    """What the file holds."""

    tables: tuple[PaperTable, ...]


def paper_tables(suite: str, file: Path = FILE) -> list[PaperTable]:
    """The tables that stand beside a suite. Raises ConfigError naming all that is wrong."""
    values = read_mapping(file, "list of figures", holds="figures", allowed="tables: a list")
    try:
        found = PaperTables.model_validate_json(orjson.dumps(values, default=str))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}."
            for one in error.errors(include_url=False)
        ]
        raise ConfigError(numbered("list of figures", problems), where=str(file)) from error
    return [one for one in found.tables if suite in one.suites]


def paper_lines(found: Sequence[PaperTable]) -> list[str]:
    """The figures in Markdown; nothing where there are none."""
    if not found:
        return []
    lines = [
        "## Not measured here",
        "",
        "Figures of papers, on other corpora and questions than ours, as read at the source; no "
        "test compares them with ours.",
        "",
    ]
    head = ("system", "model", "data set", "measure", "value", "passages")
    for one in found:
        lines += [f"{one.paper}; questions: {one.questions}. Source: {one.source}", ""]
        rows = [
            (*names, f"{value:g}", one.passages.get(names[2], "not stated"))
            for *names, value in one.figures
        ]
        lines += table(head, rows)
    return lines

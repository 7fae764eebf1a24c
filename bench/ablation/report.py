"""The report of a suite: Markdown and JSON, with its picture beside them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from arag_search.evaluation.bootstrap import LEVEL, NOT_TOLD_APART, SEED, Interval
from arag_search.system.durable import write_atomically
from bench.ablation.analysis import Analysis
from bench.ablation.cells import CellRow
from bench.ablation.judging.intents import repeated
from bench.ablation.measure import is_ratio, measure_of
from bench.ablation.papers import paper_lines
from bench.ablation.picture import picture
from bench.ablation.suite import ALPHA, Levels, Suite
from bench.report.markdown import table
from bench.report.rows import MACRO, Figure, Row, write_results

CELLS = "cells.jsonl"
METHOD = (
    "- Seeds are averaged first. Each data set counts the same in the {macro}. Intervals are "
    "percentiles of {resamples:,} resamples of questions within data set and type (seed {seed}): "
    "of values at {level:.0%}, of contrasts at a level that is corrected for their number "
    "(Bonferroni), at {alpha:.0%} in all for the primary measure and for the others. Tokens and "
    "seconds of the agent are geometric means, compared by their ratio; others are means, compared "
    "by their difference. *x 0.50*: the first takes half of the second. *not told apart*: 0 lies "
    "in the interval; beside it the smallest difference that could have been told. It does not say "
    "that two are as good as each other."
)


def write_report(analysis: Analysis, run: Mapping[str, Any], folder: Path) -> Path:
    """Write ``NAME.md``, ``NAME.json``, ``NAME.svg`` and, with all values, ``cells.jsonl`` to a
    folder, and return the path of the text. ``run`` are circumstances and fingerprints."""
    folder.mkdir(parents=True, exist_ok=True)
    name = analysis.suite.name
    drawn = picture(analysis)
    if drawn:
        write_atomically(folder / f"{name}.svg", drawn.encode())
    text = markdown(analysis, run, f"{name}.svg" if drawn else None)
    write_atomically(folder / f"{name}.md", text.encode())
    write_results(folder / f"{name}.json", [figure(analysis)], run)
    lines = (orjson.dumps(cell, option=orjson.OPT_APPEND_NEWLINE)
             for cell in analysis.cells.values())  # fmt: skip
    write_atomically(folder / CELLS, b"".join(lines))
    return folder / f"{name}.md"


def declaration(suite: Suite) -> list[str]:
    """Return the declared questions, in the form in which they are shown before anything is
    measured."""
    asked: dict[str, list[str]] = {}
    for contrast in suite.contrasts:
        what = ", ".join(filter(None, (contrast.measure, levels_text(contrast.stratum))))
        pairs = asked.setdefault(f"- {what}, intervals at {contrast.level:.3%}: ", [])
        pairs.append(f"{contrast.first} against {contrast.second}")
    return [f"{what}{'; '.join(pairs)}" for what, pairs in asked.items()]


def markdown(analysis: Analysis, run: Mapping[str, Any], drawn: str | None) -> str:
    """Return the whole text of the report; ``run`` are its circumstances, and ``drawn`` is the name
    of its picture."""
    suite = analysis.suite
    method = METHOD.format(
        macro=MACRO, resamples=analysis.resamples, seed=SEED, level=LEVEL, alpha=ALPHA
    )
    return "\n".join(
        [
            *(f"# {suite.name}", "", suite.description, "", f"`{run['command']}`", ""),
            *(_made_by(run), ""),
            *("## How it was asked", "", *declaration(suite), "", method),
            *map(_meaning, analysis.measures),
            "",
            *(line for stratum in suite.strata for line in _section(analysis, stratum)),
            *([f"![Accuracy or evidence against tokens]({drawn})", ""] if drawn else []),
            *paper_lines(suite.name, suite.experiment.sets),
        ]
    )


def _made_by(run: Mapping[str, Any]) -> str:
    """Return what a citation of the figures has to name beside the command."""
    commit = f"commit {run['commit']}" if run["commit"] else "commit unknown"
    changed = ", with uncommitted changes" if run["uncommitted_changes"] else ""
    sources = f"sources {run['code']}, Lucene {run['lucene']}, Python {run['python']}"
    return f"Made by arag_search {version('arag-search')} ({commit}{changed}; {sources})."


def _meaning(name: str) -> str:
    kind = measure_of(name).kind
    unit = "" if kind.unit == "share" else f" ({kind.unit})"
    better = "higher" if kind.higher_is_better else "lower"
    return f"- {name}{unit}: {kind.meaning}; {better} is better."


def _section(analysis: Analysis, stratum: Levels) -> list[str]:
    rows = {
        (name, level): analysis.cells[name, analysis.suite.condition(stratum, level)].rows
        for name, level in product(analysis.sets, analysis.suite.compared)
    }
    failures = {at: Counter(row.failure for row in of) for at, of in rows.items()}
    verdicts = {at: Counter(row.verdict for row in of) for at, of in rows.items()}
    parts = {
        "Values": values_table(analysis, stratum, rows),
        "Built before the first question": building_table(analysis, stratum),
        "Contrasts": contrast_table(analysis, stratum),
        "Searches for the same fact, by verdict": intent_table(rows),
        "Wrong answers, by their records": _table_of_counts(failures),
        "Wrong answers by verdict, in A-RAG's categories": _table_of_counts(verdicts),
    }
    sections = (["", f"### {title}", "", *part] for title, part in parts.items() if part)
    return [f"## {levels_text(stratum) or 'Results'}", *(line for of in sections for line in of)]


Rows = Mapping[tuple[str, str], Sequence[CellRow]]
"""The rows of cells by data set and level."""


def values_table(analysis: Analysis, stratum: Levels, counted: Rows) -> list[str]:
    """Return the one table: a row for each data set and level, a column for each measure."""
    rows: list[list[str]] = []
    for group, level in product(analysis.groups, analysis.suite.compared):
        cells: list[str] = []
        for name in analysis.measures:
            at = (name, group, analysis.suite.condition(stratum, level))
            estimate, mean = analysis.estimates.get(at), analysis.means.get(at)
            also = "" if mean is None else f", mean {_interval_text(mean)}"
            cells.append("-" if estimate is None else f"{value_text(name, estimate)}{also}")
        of = counted.get((group, level), ())
        counts = (len(of), sum(row.failed for row in of), sum(row.unresolved for row in of))
        rows.append([group, level, *cells, *(str(n) if of else "" for n in counts)])
    head = ("data set", analysis.suite.comparison.factor, *analysis.measures)
    return table((*head, "answers", "failed", "evidence in no passage"), rows)


def building_table(analysis: Analysis, stratum: Levels) -> list[str]:
    """Return what systems took to build; nothing if none built anything."""
    rows: list[list[str]] = []
    for name, level in product(analysis.sets, analysis.suite.compared):
        built = analysis.cells[name, analysis.suite.condition(stratum, level)].building
        if built is not None:
            counts = (built.calls, built.tokens, built.seconds, built.bytes)
            rows.append([name, level, *(f"{count:,.0f}" for count in counts)])
    head = ("data set", analysis.suite.comparison.factor, "calls", "tokens", "seconds", "bytes")
    return table(head, rows) if rows else []


def contrast_table(analysis: Analysis, stratum: Levels) -> list[str]:
    """Return the declared contrasts, for each data set and together."""
    rows = [
        [
            *(contrast.measure, contrast.first, contrast.second, group),
            difference_text(contrast.measure, of.interval),
            *map(str, (of.wins, of.losses, of.ties)),
        ]
        for (contrast, group), of in analysis.differences.items()
        if contrast.stratum == stratum
    ]
    head = ("measure", "first", "second", "data set", "first - second, or x second")
    return table((*head, "wins of first", "losses", "ties"), rows)


def intent_table(rows: Rows) -> list[str]:
    """Return how searches for the same fact overlap and recover as a model judged them; nothing if
    none did."""
    lines: list[tuple[str, ...]] = []
    for at, of in rows.items():
        grouped = [row.intents for row in of if row.intents is not None]
        again = repeated(grouped)
        overlaps = [intent.overlap for intent in again]
        recovered = [intent.is_recovered for intent in again]
        counts = (sum(map(len, grouped)), len(again), len(of) - len(grouped))
        if grouped:
            lines.append((*at, *map(str, counts), _mean(overlaps), _mean(recovered)))
    head = ("data set", "level", "intents", "searched again", "records not grouped")
    return table((*head, "overlap (of)", "recovery (of first searches that failed)"), lines)


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.3f} ({len(known):,})" if known else "-"


def _table_of_counts(counts: Mapping[tuple[str, str], Counter[str | None]]) -> list[str]:
    names = sorted({name for of in counts.values() for name in of if name is not None})
    rows = [(*at, *(str(of[name]) for name in names)) for at, of in counts.items()]
    return table(("data set", "level", *names), rows) if names else []


# Figures and names as text


def natural(name: str, value: float) -> float:
    """Convert a value of a measure from its scale, logarithms for ratios, to its unit."""
    return math.exp(value) if is_ratio(name) else value


def in_unit(name: str, of: Interval) -> Interval:
    """Convert an estimate of a measure as ``natural`` does."""
    return Interval(*(natural(name, bound) for bound in (of.value, of.low, of.high)))


def value_text(name: str, estimate: Interval) -> str:
    """Format a value of a measure in its unit, with its interval."""
    return _interval_text(in_unit(name, estimate))


def _interval_text(of: Interval) -> str:
    return f"{_short(of.value)} [{_short(of.low)}, {_short(of.high)}]"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def difference_text(name: str, interval: Interval) -> str:
    """Format a difference with its interval: as a factor for a ratio, else with its sign. If it is
    not told apart, also the difference that could have been."""

    def change(value: float) -> str:
        if is_ratio(name):
            return f"x {math.exp(value):.2f}"
        return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3f}"

    text = f"{change(interval.value)} [{change(interval.low)}, {change(interval.high)}]"
    if interval.is_resolved:
        return text
    least = interval.resolution
    known = f"{math.expm1(least):.0%}" if is_ratio(name) else change(least).removeprefix("+")
    return f"{text} {NOT_TOLD_APART} (smallest: {known})"


def levels_text(levels: Levels) -> str:
    """Format factors and levels in a line; "" if there are none."""
    return ", ".join(f"{factor} {level}" for factor, level in levels)


# JSON


def figure(analysis: Analysis) -> Figure:
    """Return the estimates as rows, in the unit of their measure, and the rest as details. The
    values of every question are in the cells."""

    def named(name: str, group: str, condition: Levels) -> str:
        return f"{group}: {', '.join(level for _, level in condition)}, {name}"

    def row(name: str, what: str, of: Interval) -> Row:
        unit = measure_of(name).kind.unit
        bounds = (round(bound, 6) for bound in (of.low, of.high))
        return Row(what, round(of.value, 6), "" if unit == "share" else unit, *bounds)

    estimates = analysis.estimates.items()
    rows = [row(at[0], named(*at), in_unit(at[0], of)) for at, of in estimates]
    rows += [row(at[0], f"{named(*at)}, mean", mean) for at, mean in analysis.means.items()]
    names = dict.fromkeys(name for cell in analysis.cells.values() for name in cell.fingerprints)
    details = {
        "suite": analysis.suite.model_dump(mode="json"),
        "resamples": analysis.resamples,
        "means": {named(*at): round(mean.value, 6) for at, mean in analysis.means.items()},
        "differences": [
            {**asdict(contrast), "data_set": group, **asdict(difference)}
            for (contrast, group), difference in analysis.differences.items()
        ],
        "fingerprints": {
            name: sorted({cell.fingerprints.get(name, "") for cell in analysis.cells.values()})
            for name in names
        },
    }
    return Figure(analysis.suite.name, tuple(rows), details)

"""The report of a suite: Markdown and JSON, with pictures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from arag_search.evaluation.bootstrap import LEVEL, SEED, Interval
from arag_search.system.durable import write_atomically
from bench.ablation.analysis import Analysis, natural
from bench.ablation.cells import Key
from bench.ablation.design import ALPHA, Contrast, Design, Stratum
from bench.ablation.measure import comparable
from bench.ablation.papers import PaperTable, paper_lines
from bench.ablation.plots import plots
from bench.ablation.suite import AgentRuns
from bench.ablation.tables import (
    claim_text,
    contrast_lines,
    contrast_tables,
    coverage_table,
    failure_table,
    fingerprint_lines,
    intent_table,
    levels_text,
    measure_tables,
    sets_text,
    verdict_table,
    withheld_table,
)
from bench.ablation.values import Condition
from bench.report.rows import Figure, Row, write_results

WITHHELD_METHOD = (
    "- Evidence withheld: a scope leaves out every document with evidence of any question that is "
    "asked; scores use the statistics of the whole corpus. Chosen are questions whose answer must "
    "be read. Those whose answer a remaining passage still holds are apart under *Without "
    "evidence*. The three shares add up to 1, but for questions that failed."
)


@dataclass(frozen=True, slots=True)
class Report:
    """The input of a report. ``work`` is the folder of the suite, below
    which its records are; ``run`` are circumstances and fingerprints."""

    analysis: Analysis
    missing: Sequence[Key]
    papers: Sequence[PaperTable]
    work: Path
    run: Mapping[str, Any]


def write_report(report: Report, folder: Path, *, pictures: bool = True) -> Path:
    """Write ``NAME.md``, ``NAME.json`` and pictures to a folder, and return the path of the
    text."""
    folder.mkdir(parents=True, exist_ok=True)
    name = report.analysis.design.suite.name
    drawn = plots(report.analysis, folder) if pictures else []
    text = markdown(report, [path.name for path in drawn if path.suffix == ".png"], folder)
    path = folder / f"{name}.md"
    write_atomically(path, text.encode())
    write_results(folder / f"{name}.json", [figure(report)], report.run)
    return path


# Text


def declaration(design: Design) -> list[str]:
    """Return the declared questions, in the form in which they are shown before anything is
    measured."""
    suite = design.suite
    families = (("Primary", design.primary), ("Secondary", design.secondary))
    lines = [f"{suite.name}: {suite.description}", ""]
    for (name, family), level in zip(families, design.levels, strict=True):
        if family:
            lines.append(f"{name} contrasts, intervals at {level:.3%}:")
            lines += contrast_lines(family)
    if len(design.policies) > 1:
        lines.append(f"A claim has to be resolved under all of {len(design.policies)} policies.")
    return lines


def markdown(report: Report, pictures: Sequence[str], folder: Path) -> str:
    """Return the whole text of the report."""
    analysis = report.analysis
    suite = analysis.design.suite
    parts = [
        [f"# {suite.name}", "", suite.description, "", f"`{report.run['command']}`", ""],
        _incomplete(report.missing),
        ["## What may be said", "", *claim_lines(analysis), ""],
        ["## How it was asked", "", *declaration(analysis.design)[2:], "", *_method(analysis), ""],
        *(_stratum(analysis, stratum) for stratum in analysis.design.strata),
        [f"![{name}]({name})" for name in pictures],
        [""],
        paper_lines(report.papers),
        ["## Fingerprints", "", *fingerprint_lines(_fingerprints(analysis)), ""],
    ]
    return "\n".join(line for part in parts for line in part)


def claim_lines(analysis: Analysis) -> list[str]:
    """Return a line for each primary contrast, grouped by stratum."""
    lines: list[str] = []
    for stratum in analysis.design.strata:
        name = levels_text(stratum)
        claims = {
            contrast: claim
            for contrast, claim in analysis.claims.items()
            if contrast.stratum == stratum
        }
        lines += [f"{name}:", ""] if name and claims else []
        lines += [
            f"- {claim_text(contrast, claim, len(analysis.sets))}"
            for contrast, claim in claims.items()
        ]
        lines += [""] if claims else []
    return lines[:-1]


def _incomplete(missing: Sequence[Key]) -> list[str]:
    if not missing:
        return []
    return [
        f"**Incomplete**: {len(missing):,} cells were not measured yet, the first of them "
        f"{', '.join(f'{factor} {level}' for factor, level in missing[0].items())}. What is said "
        "below is of the others, and may change.",
        "",
    ]


def _method(analysis: Analysis) -> list[str]:
    ratios = [
        name for name in analysis.design.suite.shown_measures if comparable(name).scale == "ratio"
    ]
    averaged = (
        f"{' and '.join(ratios)}: geometric means, compared by their ratio (x 0.50: the first "
        "takes half as much as the second). Others: means, compared by their difference."
        if ratios
        else "Means, compared by their difference."
    )
    main = levels_text(analysis.design.main)
    several = len(analysis.policies) > 1
    return [
        f"- Data: {sets_text(analysis)}.",
        f"- {averaged} Seeds are averaged first. Intervals are percentiles of "
        f"{analysis.resamples:,} resamples of questions within data set and type (seed {SEED}).",
        f"- Intervals of contrasts are at a level corrected for the number of declared ones, at "
        f"{ALPHA:.0%} in all (Bonferroni).",
        *([WITHHELD_METHOD] if _withholds(analysis) else []),
        "- *not resolved*: 0 lies in the corrected interval; beside it the smallest difference "
        "that could have been resolved. It does not say that two are as good as each other.",
        *(
            [f"- Tables show the policy {main}, where they do not say otherwise."]
            if several
            else []
        ),
    ]


def _withholds(analysis: Analysis) -> bool:
    experiment = analysis.design.suite.experiment
    return isinstance(experiment, AgentRuns) and experiment.withholds


def _stratum(analysis: Analysis, stratum: Stratum) -> list[str]:
    name = levels_text(stratum) or "Results"
    sections = (
        ("Values", measure_tables(analysis, stratum)),
        ("Contrasts", contrast_tables(analysis, stratum)),
        ("Calls and coverage", coverage_table(analysis, stratum)),
        ("Without evidence", withheld_table(analysis, stratum)),
        ("Searches for the same fact, by verdict", intent_table(analysis, stratum)),
        ("Wrong answers", failure_table(analysis, stratum)),
        ("Wrong answers by verdict, in A-RAG's categories", verdict_table(analysis, stratum)),
    )
    lines = [f"## {name[0].upper()}{name[1:]}", ""]
    for title, section in sections:
        lines += [f"### {title}", "", *section] if section else []
    return lines


def _fingerprints(analysis: Analysis) -> dict[str, str]:
    """Return the fingerprints of the suite and of all cells: one value if they agree, else their
    number."""
    fingerprints = {"suite": analysis.design.suite.fingerprint}
    for name, values in sorted(_by_name(analysis).items()):
        only = next(iter(values))
        fingerprints[name] = (
            only if len(values) == 1 else f"{len(values)} different ones, see the JSON"
        )
    return fingerprints


def _by_name(analysis: Analysis) -> dict[str, set[str]]:
    """Return the different fingerprints of all cells by name."""
    by_name: dict[str, set[str]] = {}
    for data_set in analysis.sets:
        for fingerprints in data_set.fingerprints.values():
            for name, value in fingerprints.items():
                by_name.setdefault(name, set()).add(value)
    return by_name


# JSON


def figure(report: Report) -> Figure:
    """Return the estimates of the main policy as rows, in the unit of their measure, and the rest
    as details. The values of every question and policy are in the cells."""
    analysis = report.analysis
    suite = analysis.design.suite
    main = set(analysis.design.main)
    rows = [
        _row(name, set_name, condition, interval)
        for (name, set_name, condition), interval in analysis.estimates.items()
        if main <= set(condition)
    ]
    details: dict[str, Any] = {
        "suite": suite.model_dump(mode="json"),
        "statistics": {
            "resamples": analysis.resamples,
            "seed": SEED,
            "level": LEVEL,
            "corrected_levels": list(analysis.design.levels),
        },
        "over_policies": list(_over_policies(analysis)),
        "plain_means": [
            {"measure": name, "data_set": set_name, **dict(condition), "value": round(value, 6)}
            for (name, set_name, condition), value in analysis.plain_means.items()
            if main <= set(condition)
        ],
        "claims": [
            {**_contrast(contrast), **asdict(claim)} for contrast, claim in analysis.claims.items()
        ],
        "differences": [
            {
                **_contrast(contrast),
                "data_set": set_name,
                "policy": dict(policy),
                **asdict(difference),
            }
            for (contrast, set_name, policy), difference in analysis.differences.items()
            if policy == analysis.design.main
            or (set_name == analysis.total and contrast.measure == suite.comparison.primary)
        ],
        "coverage": [
            {"data_set": data_set.name, **dict(condition), **asdict(totals)}
            for data_set in analysis.sets
            for condition, totals in data_set.totals.items()
            if main <= set(condition)
        ],
        "missing": [dict(key) for key in report.missing],
        "papers": [paper_table.model_dump() for paper_table in report.papers],
        "fingerprints": {name: sorted(values) for name, values in _by_name(analysis).items()},
    }
    return Figure(suite.name, tuple(rows), details)


def _row(name: str, set_name: str, condition: Condition, interval: Interval) -> Row:
    measure = comparable(name)
    value, low, high = (
        round(natural(measure, number), 6)
        for number in (interval.value, interval.low, interval.high)
    )
    levels = ", ".join(level for _, level in condition)
    return Row(f"{set_name}: {levels}, {name}", value, measure.unit, low, high)


def _over_policies(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield the least and the largest estimate of every level."""
    design = analysis.design
    names = product(design.suite.shown_measures, analysis.set_names, design.strata, design.compared)
    for measure, set_name, stratum, level in names:
        over = analysis.over_policies(measure, set_name, stratum, level)
        if over is not None:
            least, most = (round(natural(comparable(measure), estimate), 6) for estimate in over)
            levels = {**dict(stratum), design.suite.comparison.factor: level}
            yield {
                "measure": measure, "data_set": set_name, **levels, "least": least, "most": most
            }  # fmt: skip


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "measure": contrast.measure,
        **dict(contrast.stratum),
        "first": contrast.first,
        "second": contrast.second,
    }

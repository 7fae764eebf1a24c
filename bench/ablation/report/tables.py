"""The tables of a report, in Markdown."""

from __future__ import annotations

from arag_search.evaluation.bootstrap import LEVEL
from arag_search.evaluation.evidence import FAILURES
from bench.ablation.analysis.analysis import Analysis, Difference
from bench.ablation.analysis.design import Contrast, Stratum
from bench.ablation.analysis.values import SetValues, Totals
from bench.ablation.experiment.measure import Comparable, comparable
from bench.ablation.report.wording import (
    change_text,
    difference_text,
    estimate_text,
    p_text,
    tested_text,
    value_text,
)
from bench.report.markdown import table
from bench.report.statistics import MACRO


def measure_tables(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return a table for each measure: the value of each level under the main policy, and its range
    over all policies."""
    lines: list[str] = []
    for name in analysis.design.suite.shown_measures:
        measure = comparable(name)
        rows: list[list[str]] = []
        for set_name in analysis.set_names:
            for level in analysis.design.compared:
                row = _measure_row(analysis, stratum, name, set_name, level)
                rows += [row] if row else []
        if rows:
            better = "lower" if measure.lower_is_better else "higher"
            unit = f" ({measure.unit})" if measure.unit else ""
            lines += [f"**{name}**{unit}: {measure.kind.meaning}; {better} is better.", ""]
            head = ["data set", analysis.design.suite.comparison.factor, f"value [{LEVEL:.0%}]"]
            plain = ["arithmetic mean"] if measure.scale == "ratio" else []
            spread = ["over policies"] if len(analysis.policies) > 1 else []
            lines += table([*head, *plain, *spread, "questions"], rows)
    return lines


def _measure_row(
    analysis: Analysis, stratum: Stratum, name: str, set_name: str, level: str
) -> list[str]:
    measure = comparable(name)
    main = analysis.estimate(name, set_name, stratum, level, analysis.design.main)
    over = analysis.over_policies(name, set_name, stratum, level)
    if main is None or over is None:
        return []
    least, most = (value_text(measure, estimate) for estimate in over)
    questions = analysis.questions.get((name, set_name, stratum))
    plain = analysis.plain_mean(name, set_name, stratum, level)
    return [
        set_name,
        level,
        estimate_text(measure, main),
        *([] if plain is None else [f"{plain:,.0f}" if plain >= 100 else f"{plain:.3g}"]),
        *([f"{least} to {most}"] if len(analysis.policies) > 1 else []),
        f"{questions:,}" if questions is not None else "",
    ]


def contrast_tables(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return the declared contrasts under the main policy, for each data set and together."""
    design = analysis.design
    lines: list[str] = []
    for family, level in zip((design.primary, design.secondary), design.levels, strict=True):
        rows = [
            row
            for contrast in family
            if contrast.stratum == stratum
            for row in _contrast_rows(analysis, contrast)
        ]
        head = ("measure", "first", "second", "data set", f"first to second [{level:.2%}]")
        last = ("ratio of means", "p", "p, Holm", "wins", "losses", "ties")
        lines += table((*head, *last), rows)
    return lines


def _contrast_rows(analysis: Analysis, contrast: Contrast) -> list[list[str]]:
    measure = comparable(contrast.measure)
    rows: list[list[str]] = []
    for set_name in analysis.set_names:
        difference = analysis.differences.get((contrast, set_name, analysis.design.main))
        if difference is not None:
            rows.append(
                [
                    contrast.measure,
                    contrast.first,
                    contrast.second,
                    set_name,
                    difference_text(measure, difference.interval),
                    _ratio_of_means(analysis, contrast, set_name),
                    tested_text(difference),
                    p_text(difference.adjusted_p),
                    *(
                        f"{count:,}"
                        for count in (difference.wins, difference.losses, difference.ties)
                    ),
                ]
            )
    return rows


def _ratio_of_means(analysis: Analysis, contrast: Contrast, set_name: str) -> str:
    """Return the ratio of the arithmetic means of a contrast, which papers use as the ratio of
    costs; nothing for a measure that is compared by differences."""
    first, second = (
        analysis.plain_mean(contrast.measure, set_name, contrast.stratum, level)
        for level in (contrast.first, contrast.second)
    )
    return "" if first is None or second is None else f"x {first / second:.2f}"


def policy_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return the primary contrasts under every policy, of all data sets together; a star marks
    resolved ones."""
    if len(analysis.policies) < 2:
        return []
    measure = comparable(analysis.design.suite.comparison.primary)
    rows: list[list[str]] = []
    for contrast in analysis.design.primary:
        differences = [
            analysis.differences.get((contrast, analysis.total, policy))
            for policy in analysis.policies
        ]
        if contrast.stratum == stratum and any(differences):
            cells = [_policy_cell(measure, difference) for difference in differences]
            rows.append([f"{contrast.first} to {contrast.second}", *cells])
    names = [", ".join(level for _, level in policy) for policy in analysis.policies]
    return table(["contrast (* resolved)", *names], rows)


def _policy_cell(measure: Comparable, difference: Difference | None) -> str:
    if difference is None:
        return "-"
    star = " *" if difference.interval.is_resolved else ""
    return f"{change_text(measure, difference.interval.value)}{star}"


def coverage_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return counts of the calls of every level under the main policy."""
    rows: list[list[str]] = []
    for data_set in analysis.sets:
        for level in analysis.design.compared:
            totals = data_set.totals.get(
                analysis.design.condition(stratum, analysis.design.main, level)
            )
            if totals is not None:
                rows.append([data_set.name, level, *_coverage(data_set, totals)])
    head = (
        "data set",
        analysis.design.suite.comparison.factor,
        "questions",
        "unresolved",
        "failed",
    )
    counts = ("calls", "found nothing", "refused", "tokens shown again", "tokens of failed calls")
    return table((*head, *counts), rows)


def _coverage(data_set: SetValues, totals: Totals) -> list[str]:
    """Format a level's counts: rates for each call, tokens for each question."""
    calls = totals.counts["searches"]

    def rate(name: str) -> str:
        count = totals.counts[name]
        return "-" if count is None or not calls else f"{count / calls:.1%}"

    def per_row(name: str) -> str:
        count = totals.counts[name]
        return "-" if count is None else f"{count / totals.rows:,.1f}"

    unresolved = sum(question.unresolved for question in data_set.questions)
    return [
        f"{len(data_set.questions):,}",
        f"{unresolved:,}",
        f"{totals.failed:,}",
        per_row("searches"),
        rate("zero_hits"),
        rate("refused"),
        per_row("repeated_tokens"),
        per_row("failed_tokens"),
    ]


def failure_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return the reasons of wrong answers by their records, under the main policy; nothing if there
    are none."""
    rows: list[list[str]] = []
    for data_set in analysis.sets:
        for level in analysis.design.compared:
            condition = analysis.design.condition(stratum, analysis.design.main, level)
            totals = data_set.totals.get(condition)
            if totals is not None:
                counts = [totals.failures.get(name, 0) for name in FAILURES]
                rows.append([data_set.name, level, f"{totals.rows:,}", *map(str, counts)])
    if not any(count != "0" for row in rows for count in row[3:]):
        return []
    meanings = [f"- {name}: {meaning}" for name, meaning in FAILURES.items()]
    head = ("data set", analysis.design.suite.comparison.factor, "answers")
    return [*table((*head, *FAILURES), rows), *meanings, ""]


def sets_text(analysis: Analysis) -> str:
    """Return the data sets and how they are averaged."""
    names = ", ".join(
        f"{data_set.name} ({len(data_set.questions):,} questions)" for data_set in analysis.sets
    )
    if len(analysis.sets) == 1:
        return names
    return f"{names}; {MACRO}: each data set counts the same, questions are never pooled"

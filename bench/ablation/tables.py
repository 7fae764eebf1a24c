"""The tables of a report, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from arag_search.evaluation.bootstrap import LEVEL, Interval
from arag_search.evaluation.evidence import FAILURES
from arag_search.evaluation.measures import GOLD_LEAK, HALLUCINATION, REFUSAL
from bench.ablation.analysis import Analysis, Claim, natural
from bench.ablation.design import Contrast, Policy, Stratum
from bench.ablation.measure import Comparable, comparable
from bench.ablation.unavailable import GONE, STILL_PRESENT
from bench.ablation.values import SetValues, Totals
from bench.report.markdown import table
from bench.report.rows import MACRO


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
        last = ("ratio of means", "wins", "losses", "ties")
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


def coverage_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return counts of the calls of every level under the main policy."""
    rows = [
        [data_set.name, level, *_coverage(data_set, totals)]
        for data_set, level, totals in _main_totals(analysis, stratum)
    ]
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
    for data_set, level, totals in _main_totals(analysis, stratum):
        counts = [totals.failures.get(name, 0) for name in FAILURES]
        rows.append([data_set.name, level, f"{totals.rows:,}", *map(str, counts)])
    if not any(count != "0" for row in rows for count in row[3:]):
        return []
    meanings = [f"- {name}: {meaning}" for name, meaning in FAILURES.items()]
    head = ("data set", analysis.design.suite.comparison.factor, "answers")
    return [*table((*head, *FAILURES), rows), *meanings, ""]


def withheld_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return what answers were without their evidence under the main policy, apart for those that
    remaining passages still hold; nothing if the suite does not show these measures."""
    names = [kind.name for kind in (REFUSAL, HALLUCINATION, GOLD_LEAK)]
    rows: list[list[str]] = []
    for data_set, level, type in product(
        analysis.sets, analysis.design.compared, (GONE, STILL_PRESENT)
    ):
        condition = analysis.design.condition(stratum, analysis.design.main, level)
        if condition not in data_set.conditions or not data_set.tables.keys() >= set(names):
            continue
        at = data_set.conditions.index(condition)
        are_of_type = np.array([name == type for name in data_set.types])
        columns = [data_set.tables[name][are_of_type, at] for name in names]
        counted = int((~np.isnan(columns[0])).sum())
        if counted:
            shares = (f"{float(np.nanmean(column)):.3f}" for column in columns)
            rows.append([data_set.name, level, type, f"{counted:,}", *shares])
    if not rows:
        return []
    head = ("data set", analysis.design.suite.comparison.factor, "remaining passages", "questions")
    return table((*head, *names), rows)


def verdict_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return A-RAG's categories of wrong answers as a model judged them, under the main policy;
    nothing if none did."""
    counted = [
        (data_set.name, level, totals.verdicts)
        for data_set, level, totals in _main_totals(analysis, stratum)
        if totals.verdicts
    ]
    names = list(dict.fromkeys(name for *_, counts in counted for name in counts))
    rows = [
        (set_name, level, *(f"{counts.get(name, 0):,}" for name in names))
        for set_name, level, counts in counted
    ]
    head = ("data set", analysis.design.suite.comparison.factor, *names)
    return table(head, rows) if rows else []


def intent_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Return how searches for the same fact overlap and recover as a model judged them, under the
    main policy; nothing if none did."""
    rows = [
        (
            data_set.name,
            level,
            f"{intents.intents:,}",
            f"{intents.repeated:,}",
            _share_of(intents.overlap, intents.overlapping),
            _share_of(intents.recovery, intents.failed),
            f"{intents.not_grouped:,} of {intents.records:,}",
        )
        for data_set, level, totals in _main_totals(analysis, stratum)
        if (intents := totals.intents) is not None
    ]
    head = ("data set", analysis.design.suite.comparison.factor, "intents", "searched again")
    last = ("overlap (of)", "recovery (of first searches that failed)", "records not grouped")
    return table((*head, *last), rows) if rows else []


def _share_of(share: float | None, counted: int) -> str:
    return "-" if share is None else f"{share:.3f} ({counted:,})"


def _main_totals(analysis: Analysis, stratum: Stratum) -> Iterator[tuple[SetValues, str, Totals]]:
    """Yield the totals of every data set and level under the main policy."""
    for data_set, level in product(analysis.sets, analysis.design.compared):
        condition = analysis.design.condition(stratum, analysis.design.main, level)
        if condition in data_set.totals:
            yield data_set, level, data_set.totals[condition]


def sets_text(analysis: Analysis) -> str:
    """Return the data sets and how they are averaged."""
    names = ", ".join(
        f"{data_set.name} ({len(data_set.questions):,} questions)" for data_set in analysis.sets
    )
    if len(analysis.sets) == 1:
        return names
    return f"{names}; {MACRO}: each data set counts the same, questions are never pooled"


# Figures and names as text, the same in tables, plots and on the terminal


def value_text(measure: Comparable, value: float) -> str:
    """Format a value in the unit of the measure with its significant digits."""
    shown = natural(measure, value)
    if measure.scale == "ratio":
        return f"{shown:,.0f}" if shown >= 100 else f"{shown:.3g}"
    return f"{shown:.1f}" if abs(shown) >= 10 else f"{shown:.3f}"


def estimate_text(measure: Comparable, interval: Interval) -> str:
    """Format a value with its interval."""
    value, low, high = (
        value_text(measure, bound) for bound in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"


def change_text(measure: Comparable, change: float) -> str:
    """Format a difference: as a factor for a ratio, else with its sign."""
    if measure.scale == "ratio":
        return f"x {math.exp(change):.2f}"
    return f"{change:+.3f}"


def difference_text(measure: Comparable, interval: Interval) -> str:
    """Format a difference with its interval; if it is not resolved, also the difference that could
    have been."""
    low, high = (change_text(measure, bound) for bound in (interval.low, interval.high))
    text = f"{change_text(measure, interval.value)} [{low}, {high}]"
    return (
        text
        if interval.is_resolved
        else f"{text} not resolved ({resolution_text(measure, interval)})"
    )


def resolution_text(measure: Comparable, estimate: Interval | Claim) -> str:
    """Return the smallest difference that could have been resolved."""
    if measure.scale == "ratio":
        return f"from {math.expm1(estimate.resolution):.0%}"
    return f"from {estimate.resolution:.3f}"


def levels_text(levels: Stratum | Policy) -> str:
    """Format factors and levels in a line; "" if there are none."""
    return ", ".join(f"{factor} {level}" for factor, level in levels)


def contrast_lines(family: Sequence[Contrast]) -> list[str]:
    """Return what the contrasts ask, in a line for each measure and stratum."""
    asked: dict[tuple[str, Stratum], list[str]] = {}
    for contrast in family:
        pairs = asked.setdefault((contrast.measure, contrast.stratum), [])
        pairs.append(f"{contrast.first} against {contrast.second}")
    return [
        f"- {', '.join(part for part in (measure, levels_text(stratum)) if part)}: "
        f"{'; '.join(pairs)}"
        for (measure, stratum), pairs in asked.items()
    ]


def claim_text(contrast: Contrast, claim: Claim, sets: int) -> str:
    """Return a claim about a contrast in one sentence."""
    measure = comparable(contrast.measure)
    low, high = (change_text(measure, bound) for bound in (claim.low, claim.high))
    span = low if low == high else f"{low} to {high}"
    averaged = f", {MACRO} of {sets} data sets" if sets > 1 else ""
    facts = f"{contrast.measure} {span}{_over(contrast, claim)}{averaged}"
    return f"{_said(contrast, claim, measure)}: {facts}."


def _over(contrast: Contrast, claim: Claim) -> str:
    """Return the number of policies, and how many of them are resolved for each side."""
    if claim.policies == 1:
        return ""
    resolved = [
        f"{count} for {side}"
        for side, count in zip((contrast.first, contrast.second), claim.resolved_for, strict=True)
        if count
    ]
    return f" over {claim.policies} policies, resolved in {' and '.join(resolved) or 'none'}"


def _said(contrast: Contrast, claim: Claim, measure: Comparable) -> str:
    first, second = contrast.first, contrast.second
    match claim.outcome:
        case "first":
            return f"**{first} beats {second}**"
        case "second":
            return f"**{second} beats {first}**"
        case "depends":
            return f"**{first} against {second} depends on policy**"
        case "not resolved":
            known = resolution_text(measure, claim)
            return f"**{first} against {second} is not resolved** ({known})"


def fingerprint_lines(fingerprints: Mapping[str, str]) -> list[str]:
    """Return a list of fingerprints."""
    return [f"- {name}: `{value}`" for name, value in fingerprints.items()]

"""The tables of a report, in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from arag_search.evaluation.bootstrap import LEVEL
from arag_search.evaluation.failures import FAILURES
from arag_search.evaluation.score import NOT_MEASURED
from bench.ablation.analysis.analysis import MACRO, Analysis
from bench.ablation.analysis.design import Contrast, Stratum
from bench.ablation.analysis.groups import Group, groups
from bench.ablation.analysis.searching import OVERLAP, RECOVERY, Searched, searched
from bench.ablation.analysis.values import SetValues, Totals
from bench.ablation.experiment.measure import MEASURES
from bench.ablation.report.wording import (
    change_text,
    difference_text,
    estimate_text,
    p_text,
    table,
    tested_text,
    value_text,
)


def measure_tables(analysis: Analysis, stratum: Stratum) -> list[str]:
    """A table per measure: what each level reaches under the main policy, and over all policies."""
    lines: list[str] = []
    for name in analysis.design.suite.shown_measures:
        measure = MEASURES[name]
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
            spread = ["over policies"] if len(analysis.policies) > 1 else []
            lines += table([*head, *spread, "questions"], rows)
    return lines


def _measure_row(
    analysis: Analysis, stratum: Stratum, name: str, set_name: str, level: str
) -> list[str]:
    measure = MEASURES[name]
    main = analysis.estimate(name, set_name, stratum, level, analysis.design.main)
    over = analysis.over_policies(name, set_name, stratum, level)
    if main is None or over is None:
        return []
    least, most = (value_text(measure, one) for one in over)
    questions = analysis.questions.get((name, set_name, stratum))
    return [
        set_name,
        level,
        estimate_text(measure, main),
        *([f"{least} to {most}"] if len(analysis.policies) > 1 else []),
        f"{questions:,}" if questions is not None else "",
    ]


def contrast_tables(analysis: Analysis, stratum: Stratum) -> list[str]:
    """The declared contrasts under the main policy, for each data set and together."""
    design = analysis.design
    lines: list[str] = []
    for family, level in zip((design.primary, design.secondary), design.levels, strict=True):
        rows = [
            row for one in family if one.stratum == stratum for row in _contrast_rows(analysis, one)
        ]
        head = ("measure", "first", "second", "data set", f"first to second [{level:.2%}]")
        lines += table((*head, "p", "p, Holm", "wins", "losses", "ties"), rows)
    return lines


def _contrast_rows(analysis: Analysis, one: Contrast) -> list[list[str]]:
    measure = MEASURES[one.measure]
    rows: list[list[str]] = []
    for set_name in analysis.set_names:
        found = analysis.differences.get((one, set_name, analysis.design.main))
        if found is not None:
            rows.append(
                [
                    one.measure,
                    one.first,
                    one.second,
                    set_name,
                    difference_text(measure, found.interval),
                    tested_text(found),
                    p_text(found.adjusted_p),
                    *(f"{count:,}" for count in (found.wins, found.losses, found.ties)),
                ]
            )
    return rows


def policy_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """The primary contrasts under every policy, of all data sets together; resolved ones have a
    star."""
    if len(analysis.policies) < 2:
        return []
    measure = MEASURES[analysis.design.suite.comparison.primary]
    rows: list[list[str]] = []
    for one in analysis.design.primary:
        found = [
            analysis.differences.get((one, analysis.total, policy)) for policy in analysis.policies
        ]
        if one.stratum == stratum and any(found):
            cells = [
                f"{change_text(measure, each.interval.value)}{' *' * each.interval.is_resolved}"
                if each
                else "-"
                for each in found
            ]
            rows.append([f"{one.first} to {one.second}", *cells])
    names = [", ".join(level for _, level in policy) for policy in analysis.policies]
    return table(["contrast (* resolved)", *names], rows)


def coverage_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """What every level did beside its values, under the main policy."""
    rows: list[list[str]] = []
    for one in analysis.sets:
        for level in analysis.design.compared:
            totals = one.totals.get(analysis.design.condition(stratum, analysis.design.main, level))
            if totals is not None:
                rows.append([one.name, level, *_coverage(one, totals)])
    head = (
        "data set",
        analysis.design.suite.comparison.factor,
        "questions",
        "unresolved",
        "failed",
    )
    counts = ("calls", "found nothing", "refused", "tokens shown again", "tokens of failed calls")
    return table((*head, *counts), rows)


def _coverage(one: SetValues, totals: Totals) -> list[str]:
    """Rates are of calls, tokens a question."""
    calls = totals.counts["searches"]

    def rate(name: str) -> str:
        count = totals.counts[name]
        return "-" if count is None or not calls else f"{count / calls:.1%}"

    def each(name: str) -> str:
        count = totals.counts[name]
        return "-" if count is None else f"{count / totals.rows:,.1f}"

    unresolved = sum(question.unresolved for question in one.questions)
    return [
        f"{len(one.questions):,}",
        f"{unresolved:,}",
        f"{totals.failed:,}",
        each("searches"),
        rate("zero_hits"),
        rate("refused"),
        each("repeated_tokens"),
        each("failed_tokens"),
    ]


def searching_tables(analysis: Analysis, stratum: Stratum) -> list[str]:
    """What consecutive searches share and what followed failed ones, under the main policy;
    nothing where no records are kept."""
    found = searched(analysis, stratum)
    if not found:
        return []
    lines: list[str] = []
    for counted, rates in ((("pairs", "empty_pairs"), OVERLAP), (("searches", "failed"), RECOVERY)):
        names = [name.replace("_", " ") for name in counted]
        head = ("data set", analysis.design.suite.comparison.factor, *names)
        rows = [_searched_row(one, counted, rates) for one in found]
        lines += table((*head, *(f"{name} [{LEVEL:.0%}]" for name in rates)), rows)
    return [
        *lines,
        "- Shares of passages that two consecutive searches of a question both show; pairs that "
        "found nothing twice are apart. Then: searches that found nothing or were refused, and "
        "what the next searches found. A rate is over all searches of a condition.",
        f"- Whether two searches meant the same, and which succeeded: {NOT_MEASURED}.",
        "",
    ]


def _searched_row(one: Searched, counted: Sequence[str], rates: Collection[str]) -> list[str]:
    counts = [f"{one.counts[name]:,.0f}" if one.counts else "" for name in counted]
    cells = [
        "-" if each is None else f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"
        for each in (one.rates[name] for name in rates)
    ]
    return [one.set_name, one.level, *counts, *cells]


def failure_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """Why answers were wrong, as records tell, under the main policy; nothing where none are."""
    rows: list[list[str]] = []
    for one in analysis.sets:
        for level in analysis.design.compared:
            condition = analysis.design.condition(stratum, analysis.design.main, level)
            totals = one.totals.get(condition)
            if totals is not None:
                counts = [totals.failures.get(name, 0) for name in FAILURES]
                rows.append([one.name, level, f"{totals.rows:,}", *map(str, counts)])
    if not any(count != "0" for row in rows for count in row[3:]):
        return []
    meanings = [f"- {name}: {meaning}" for name, meaning in FAILURES.items()]
    head = ("data set", analysis.design.suite.comparison.factor, "answers")
    return [*table((*head, *FAILURES), rows), *meanings, ""]


def group_table(analysis: Analysis, stratum: Stratum) -> list[str]:
    """The primary measure by number of hops and by type, under the main policy."""
    measure = MEASURES[analysis.design.suite.comparison.primary]
    found = groups(analysis, measure.name, stratum)
    levels = [
        level for level in analysis.design.compared if any(level in one.estimates for one in found)
    ]
    rows = [_group_row(one, levels) for one in found]
    return table(("data set", "part", "questions", *levels), rows)


def _group_row(one: Group, levels: Sequence[str]) -> list[str]:
    measure = MEASURES[one.measure]
    cells = [
        estimate_text(measure, one.estimates[level]) if level in one.estimates else "-"
        for level in levels
    ]
    return [one.set_name, one.part, f"{one.questions:,}", *cells]


def sets_text(analysis: Analysis) -> str:
    """The data sets and how they are brought together."""
    names = ", ".join(f"{one.name} ({len(one.questions):,} questions)" for one in analysis.sets)
    if len(analysis.sets) == 1:
        return names
    return f"{names}; {MACRO}: each data set counts the same, questions are never pooled"

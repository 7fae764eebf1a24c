"""Figures and names as text, the same in tables, plots and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from arag_search.evaluation.bootstrap import Interval
from bench.ablation.analysis.analysis import MACRO, Difference, natural
from bench.ablation.analysis.claims import Claim, Policy
from bench.ablation.analysis.design import Contrast, Stratum
from bench.ablation.experiment.measure import MEASURES, Comparable


def value_text(measure: Comparable, value: float) -> str:
    """A value in the unit of the measure, its digits those that mean something."""
    shown = natural(measure, value)
    if measure.scale == "ratio":
        return f"{shown:,.0f}" if shown >= 100 else f"{shown:.3g}"
    return f"{shown:.1f}" if abs(shown) >= 10 else f"{shown:.3f}"


def estimate_text(measure: Comparable, found: Interval) -> str:
    """A value with its interval."""
    value, low, high = (value_text(measure, one) for one in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def change_text(measure: Comparable, change: float) -> str:
    """A difference: as a factor for a ratio, else with its sign."""
    if measure.scale == "ratio":
        return f"x {math.exp(change):.2f}"
    return f"{change:+.3f}"


def difference_text(measure: Comparable, found: Interval) -> str:
    """A difference with its interval, and where 0 lies in it what could have been resolved."""
    low, high = (change_text(measure, one) for one in (found.low, found.high))
    text = f"{change_text(measure, found.value)} [{low}, {high}]"
    return text if found.is_resolved else f"{text} not resolved ({resolution_text(measure, found)})"


def resolution_text(measure: Comparable, found: Interval | Claim) -> str:
    """The smallest difference that could have been resolved."""
    if measure.scale == "ratio":
        return f"from {math.expm1(found.resolution):.0%}"
    return f"from {found.resolution:.3f}"


def p_text(p: float | None) -> str:
    """A p value; "-" for none."""
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def tested_text(found: Difference) -> str:
    """p and which test it is of."""
    return f"{p_text(found.p)} ({found.test})"


def levels_text(levels: Stratum | Policy) -> str:
    """Factors and levels in a line; "" for none."""
    return ", ".join(f"{factor} {level}" for factor, level in levels)


def contrast_lines(family: Sequence[Contrast]) -> list[str]:
    """What contrasts ask, a line a measure and stratum."""
    asked: dict[tuple[str, Stratum], list[str]] = {}
    for one in family:
        pairs = asked.setdefault((one.measure, one.stratum), [])
        pairs.append(f"{one.first} against {one.second}")
    return [
        f"- {', '.join(part for part in (measure, levels_text(stratum)) if part)}: "
        f"{'; '.join(pairs)}"
        for (measure, stratum), pairs in asked.items()
    ]


def claim_text(contrast: Contrast, found: Claim, sets: int) -> str:
    """What may be said of a contrast, in one sentence."""
    measure = MEASURES[contrast.measure]
    low, high = (change_text(measure, one) for one in (found.low, found.high))
    span = low if low == high else f"{low} to {high}"
    averaged = f", {MACRO} of {sets} data sets" if sets > 1 else ""
    facts = f"{contrast.measure} {span}{_over(contrast, found)}{averaged}"
    return f"{_said(contrast, found, measure)}: {facts}."


def _over(contrast: Contrast, found: Claim) -> str:
    """How many policies there are, and how many of them are resolved, for whom."""
    if found.policies == 1:
        return ""
    resolved = [
        f"{count} for {side}"
        for side, count in zip((contrast.first, contrast.second), found.resolved_for, strict=True)
        if count
    ]
    return f" over {found.policies} policies, resolved in {' and '.join(resolved) or 'none'}"


def _said(contrast: Contrast, found: Claim, measure: Comparable) -> str:
    first, second = contrast.first, contrast.second
    match found.outcome:
        case "first":
            return f"**{first} beats {second}**"
        case "second":
            return f"**{second} beats {first}**"
        case "depends":
            return f"**{first} against {second} depends on policy**"
        case "not resolved":
            known = resolution_text(measure, found)
            return f"**{first} against {second} is not resolved** ({known})"
        case "too few policies":
            ahead = first if found.resolved_for[0] else second
            behind = second if ahead == first else first
            return (
                f"**{ahead} is ahead of {behind} in every policy that was measured, which are too "
                "few for a claim**"
            )


def line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(one.replace('|', chr(92) + '|') for one in cells)} |"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; nothing where there are no rows."""
    if not rows:
        return []
    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


def fingerprint_lines(found: Mapping[str, str]) -> list[str]:
    """A list of fingerprints."""
    return [f"- {name}: `{value}`" for name, value in found.items()]

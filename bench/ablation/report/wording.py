"""Figures and names as text, the same in tables, plots and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from arag_search.evaluation.bootstrap import Interval
from bench.ablation.analysis.analysis import Difference, natural
from bench.ablation.analysis.claims import Claim, Policy
from bench.ablation.analysis.design import Contrast, Stratum
from bench.ablation.experiment.measure import Comparable, comparable
from bench.report.statistics import MACRO


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


def p_text(p: float | None) -> str:
    """Format a p value; "-" stands for none."""
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def tested_text(difference: Difference) -> str:
    """Format p with the name of its test."""
    return f"{p_text(difference.p)} ({difference.test})"


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
        case "too few policies":
            ahead = first if claim.resolved_for[0] else second
            behind = second if ahead == first else first
            return (
                f"**{ahead} is ahead of {behind} in every policy that was measured, which are too "
                "few for a claim**"
            )


def fingerprint_lines(fingerprints: Mapping[str, str]) -> list[str]:
    """Return a list of fingerprints."""
    return [f"- {name}: `{value}`" for name, value in fingerprints.items()]

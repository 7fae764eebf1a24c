"""The measures of ablations and their scales: measures of runs, and measures of benches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from arag_search.agent.record import Record
from arag_search.errors import ArgumentError
from arag_search.evaluation.measures import KINDS, Kind, Measure, Outcome, Unit, parse_measure


def _fixed(record: Record) -> float | None:
    """Return the tokens of prompts without the replies of tools and without calls. Each is taken
    off as often as later requests repeat it, a call with as many tokens as any output."""
    asked = len(record.requests) or record.loops + (record.status == "forced")
    is_repeated = "system" not in record.fingerprints  # others begin each request anew
    if not asked or record.usage.source == "counted" or not is_repeated:
        return None
    output = (record.usage.completion_tokens - record.usage.reasoning_tokens) / asked
    turns = ((step.turn or n, step.result_tokens) for n, step in enumerate(record.trajectory, 1))
    replies = sum(max(asked - turn, 0) * tokens for turn, tokens in turns)
    return max(record.usage.prompt_tokens - replies - output * asked * (asked - 1) / 2, 0.0)


def _cached(record: Record) -> float | None:
    return record.usage.cached_tokens if record.usage.source == "endpoint" else None


def _kind(
    name: str, unit: Unit, meaning: str, value: Callable[[Record], float | None] | None = None
) -> Kind:
    def of_outcome(outcome: Outcome) -> float | None:
        return None if outcome.record is None or value is None else value(outcome.record)

    return Kind(name, unit, False, None, frozenset(), None, meaning, of_outcome)


OWN = {
    kind.name: Measure(kind)
    for kind in (
        _kind("FixedTokens", "tokens", "instructions, tools and question, in all requests", _fixed),
        _kind("CachedTokens", "tokens", "what the endpoint read from its cache", _cached),
        _kind("Searches", "steps", "searches of the gold-chain agent"),
        _kind("ZeroHits", "share", "share of its searches that found nothing"),
        _kind("RefusedQueries", "share", "share of its searches that were refused"),
        _kind("FailedTokens", "tokens", "tokens of its replies without a passage"),
    )
}
"""Measures of benches, which are averaged arithmetically, because payments add up."""
COSTS = ("TotalTokens", "FixedTokens", "CachedTokens")
"""Cost as it is paid, which every report of a model's runs shows."""
ALWAYS = (*(Measure(kind) for kind in KINDS if not kind.is_ranking), *OWN.values())
"""The measures of every row. A suite may also show others, such as rankings and measures of a
tool."""


@cache
def measure_of(name: str) -> Measure:
    """Return the measure with a printed name, such as "CitedRecall@1". Raises ArgumentError."""
    try:
        return OWN.get(name) or parse_measure(name)
    except ArgumentError as error:
        if ":" in name:  # of a tool, or one's own
            raise
        allowed = ", ".join(kind.form for kind in (*KINDS, *(of.kind for of in OWN.values())))
        raise ArgumentError(f'There is no measure "{name}".', allowed=allowed) from error


def is_ratio(name: str) -> bool:
    """Return whether a measure is averaged as a geometric mean, with values below 1 counted as 1.
    Such measures are costs of the agent, and two conditions are compared by the ratio of these
    means. Others are averaged arithmetically and compared by their difference."""
    kind = measure_of(name).kind
    return name not in OWN and not kind.per_right and kind.unit in ("tokens", "seconds")

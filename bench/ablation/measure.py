"""The measures of ablations and their scales: those of runs, and those that benches add."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from arag_search.errors import ArgumentError
from arag_search.evaluation import measures as names
from arag_search.evaluation.measures import Kind, Measure, Unit, parse_measure

Scale = Literal["ratio", "difference"]


@dataclass(frozen=True, slots=True)
class Comparable:
    """A measure with the scale on which conditions are compared.

    A "ratio" is averaged as a geometric mean, with values below 1 counted as 1, and two conditions
    are compared by the ratio of these means. A "difference" is averaged arithmetically and compared
    by the difference. ``name`` is as printed.
    """

    kind: Kind
    scale: Scale
    name: str

    @property
    def unit(self) -> str:
        """The unit; nothing for a share."""
        return "" if self.kind.unit == "share" else self.kind.unit

    @property
    def lower_is_better(self) -> bool:
        """Whether lower values are better."""
        return not self.kind.higher_is_better


def _cost(name: str, unit: Unit, meaning: str) -> Kind:
    return Kind(name, unit, False, None, frozenset(), None, meaning)


EVIDENCE_AREA = Kind(
    "EvidenceArea", "share", True, 0.0, frozenset({"evidence"}), None,
    "area under the share of evidence shown against retrieved tokens, up to the cap",
)  # fmt: skip

_ONLY_GOLD = _cost(
    "OnlyGoldTokens", "tokens", "TokensToEvidence, were only evidence read: a lower bound"
)
_HOP = _cost("HopTokens", "tokens", "tokens a hop; its cap where it was not found")
_OF_BENCHES = {
    kind.name: kind
    for kind in (
        EVIDENCE_AREA,
        _ONLY_GOLD,
        _HOP,
        _cost("Searches", "steps", "searches"),
        _cost("ZeroHits", "share", "share of the searches that found nothing"),
        _cost("RefusedQueries", "share", "share of the searches that were refused"),
        _cost("RepeatedTokens", "tokens", "tokens that were shown again"),
        _cost("FailedTokens", "tokens", "tokens of calls that failed"),
    )
}
_RATIOS = {
    kind.name
    for kind in (
        _ONLY_GOLD,
        _HOP,
        names.TOKENS_TO_EVIDENCE,
        names.RETRIEVED_TOKENS,
        names.TOTAL_TOKENS,
        names.PROMPT_TOKENS,
        names.COMPLETION_TOKENS,
        names.SECONDS,
    )
}

ALLOWED = ", ".join(kind.form for kind in (*names.KINDS, *_OF_BENCHES.values()))
"""The names of measures, for messages."""


@cache
def comparable(name: str) -> Comparable:
    """Return the measure with a printed name, such as "CitedRecall@1". Raises ArgumentError."""
    measured = run_measure(name)
    if measured is None and name not in _OF_BENCHES:
        raise ArgumentError(f'There is no measure "{name}".', allowed=ALLOWED)
    kind = _OF_BENCHES[name] if measured is None else measured.kind
    return Comparable(kind, "ratio" if kind.name in _RATIOS else "difference", name)


def run_measure(name: str) -> Measure | None:
    """Return the measure of runs with this name; None if there is none, as for measures that
    benches add."""
    try:
        return parse_measure(name)
    except ArgumentError:
        return None

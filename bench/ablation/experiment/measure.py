"""The measures of ablations and their scales: those of runs, and those that benches add."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from arag_search.errors import ArgumentError
from arag_search.evaluation import measures as names
from arag_search.evaluation.measures import Kind, Measure, Unit, parse_measure

Scale = Literal["ratio", "difference", "rate"]


@dataclass(frozen=True, slots=True)
class Comparable:
    """A measure with the scale on which conditions are compared.

    A "ratio" is averaged as a geometric mean, with values below 1 counted as 1, and two conditions
    are compared by the ratio of these means. "difference" and "rate" are averaged arithmetically
    and compared by their difference; a rate is 0 or 1 for one question and seed. ``name`` is as
    printed.
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

_SCALES: tuple[tuple[Kind, Scale], ...] = (
    (names.TOKENS_TO_EVIDENCE, "ratio"),
    (names.FULL_EVIDENCE, "rate"),
    (EVIDENCE_AREA, "difference"),
    (names.EVIDENCE_RECALL, "difference"),
    (names.RETRIEVED_TOKENS, "ratio"),
    (
        _cost(
            "OnlyGoldTokens", "tokens", "TokensToEvidence, were only evidence read: a lower bound"
        ),
        "ratio",
    ),
    (_cost("HopTokens", "tokens", "tokens a hop; its cap where it was not found"), "ratio"),
    (_cost("Searches", "steps", "searches"), "difference"),
    (_cost("ZeroHits", "share", "share of the searches that found nothing"), "difference"),
    (_cost("RefusedQueries", "share", "share of the searches that were refused"), "difference"),
    (_cost("RepeatedTokens", "tokens", "tokens that were shown again"), "difference"),
    (_cost("FailedTokens", "tokens", "tokens of calls that failed"), "difference"),
    (names.EM, "rate"),
    (names.F1, "difference"),
    (names.CONTAIN_ACC, "rate"),
    (names.JUDGE_ACC, "rate"),
    (names.FACTUALITY, "difference"),
    (names.TOTAL_TOKENS, "ratio"),
    (names.PROMPT_TOKENS, "ratio"),
    (names.COMPLETION_TOKENS, "ratio"),
    (names.TOOL_CALLS, "difference"),
    (names.SUMMARIZE_CALLS, "difference"),
    (names.ITERATIONS, "difference"),
    (names.STEPS, "difference"),
    (names.SECONDS, "ratio"),
    (names.COST, "difference"),
    *(
        (kind, "rate" if kind in (names.SUCCESS, names.CITED_SUCCESS) else "difference")
        for kind in names.KINDS
        if kind.is_ranking
    ),
)

_BY_NAME = {kind.name: (kind, scale) for kind, scale in _SCALES}
_OF_BENCHES = set(_BY_NAME) - {kind.name for kind in names.KINDS}

ALLOWED = ", ".join(kind.form for kind, _ in _SCALES)
"""The names of measures, for messages."""


@cache
def comparable(name: str) -> Comparable:
    """Return the measure with a printed name, such as "CitedRecall@1". Raises ArgumentError."""
    measured = run_measure(name)
    if measured is None and name not in _OF_BENCHES:
        raise ArgumentError(f'There is no measure "{name}".', allowed=ALLOWED)
    kind, scale = _BY_NAME[name if measured is None else measured.kind.name]
    return Comparable(kind, scale, name)


def run_measure(name: str) -> Measure | None:
    """Return the measure of runs with this name; None if there is none, as for measures that
    benches add."""
    try:
        return parse_measure(name)
    except ArgumentError:
        return None

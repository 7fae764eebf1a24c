"""How a measure of an ablation is compared: which way is better, and on which scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scale = Literal["ratio", "difference", "rate"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure by the name it prints as.

    A "ratio" is averaged as a geometric mean, values below 1 counting as 1, and two conditions are
    compared by the ratio of these; "difference" and "rate" are averaged as they are and compared
    by their difference, a rate being 0 or 1 for one question and seed.
    """

    name: str
    unit: str
    lower_is_better: bool
    scale: Scale
    about: str


def _named(*measures: Measure) -> dict[str, Measure]:
    return {one.name: one for one in measures}


MEASURES = _named(
    Measure(
        "TokensToEvidence", "tokens", True, "ratio",
        "retrieved tokens until all evidence was shown; the cap where it was not",
    ),
    Measure("FullEvidence", "", False, "rate", "all evidence was shown within the cap"),
    Measure("EvidenceArea", "", False, "difference", "area under evidence against tokens"),
    Measure("EvidenceRecall", "", False, "difference", "share of the evidence that was shown"),
    Measure("RetrievedTokens", "tokens", True, "ratio", "retrieved tokens of all calls"),
    Measure(
        "OnlyGoldTokens", "tokens", True, "ratio",
        "as TokensToEvidence, were only the evidence read of what was found: a lower bound",
    ),
    Measure("HopTokens", "tokens", True, "ratio", "tokens a hop; its cap where it was not found"),
    Measure("Searches", "calls", True, "difference", "searches"),
    Measure("ZeroHits", "", True, "difference", "share of the searches that found nothing"),
    Measure("RefusedQueries", "", True, "difference", "share of the searches that were refused"),
    Measure("RepeatedTokens", "tokens", True, "difference", "tokens that were shown again"),
    Measure("FailedTokens", "tokens", True, "difference", "tokens of calls that failed"),
    Measure("EM", "", False, "rate", "the short answer is a gold answer"),
    Measure("F1", "", False, "difference", "words shared with the best gold answer"),
    Measure("ContainAcc", "", False, "rate", "a gold answer stands in the answer"),
    Measure("JudgeAcc", "", False, "rate", "a model judges the answer correct"),
    Measure("Steps", "calls", True, "difference", "tool calls"),
    Measure("Seconds", "s", True, "ratio", "time of the question"),
    Measure("Cost", "USD", True, "difference", "cost of the question"),
)  # fmt: skip

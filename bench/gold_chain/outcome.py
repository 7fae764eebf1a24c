"""The values of a question, from the outcomes of its hops."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

from bench.ablation.cells import CellRow
from bench.ablation.scoring import CAP_TOKENS, Curve, area, tokens_to_evidence
from bench.gold_chain.policy import HOP_TOKENS, HopOutcome

Half = Literal["development", "test"]


def half_of(question_id: str) -> Half:
    """Return the half of the questions that a question belongs to, by the hash of its id."""
    even = hashlib.sha256(question_id.encode()).digest()[0] % 2 == 0
    return "development" if even else "test"


def row_of(question_id: str, type: str | None, seed: int, hops: Sequence[HopOutcome]) -> CellRow:
    """Return the row of a question in a cell."""
    return CellRow(question_id, type, seed, values_of(hops), details_of(question_id, hops))


def values_of(hops: Sequence[HopOutcome]) -> Mapping[str, float | None]:
    """Return the measures of a question; see bench/studies/gold_chain.md."""
    curve = curve_of(hops)
    tokens = tokens_to_evidence(curve)
    searches = sum(hop.searches for hop in hops)

    def share(count: int) -> float | None:
        return count / searches if searches else None

    return {
        "TokensToEvidence": tokens,
        "FullEvidence": float(all(hop.shown for hop in hops) and curve[-1][0] <= CAP_TOKENS),
        "EvidenceArea": area(curve),
        "EvidenceRecall": sum(hop.shown for hop in hops) / len(hops),
        "RetrievedTokens": float(sum(hop.tokens for hop in hops)),
        "OnlyGoldTokens": tokens_to_evidence(curve_of(hops, only_gold=True)),
        "HopTokens": sum(hop.tokens if hop.shown else HOP_TOKENS for hop in hops) / len(hops),
        "Searches": float(searches),
        "ZeroHits": share(sum(hop.zero_hits for hop in hops)),
        "RefusedQueries": share(sum(hop.refused for hop in hops)),
        "RepeatedTokens": float(sum(hop.repeated_tokens for hop in hops)),
        "FailedTokens": float(sum(hop.failed_tokens for hop in hops)),
    }


def details_of(question_id: str, hops: Sequence[HopOutcome]) -> Mapping[str, Any]:
    """Return what a report shows in addition to the measures; ``outcomes`` has a list for each hop:
    found, tokens, searches, searches without hits."""
    return {
        "hops": len(hops),
        "half": half_of(question_id),
        "unresolved": not all(hop.resolved for hop in hops),
        "searches": sum(hop.searches for hop in hops),
        "zero_hits": sum(hop.zero_hits for hop in hops),
        "refused": sum(hop.refused for hop in hops),
        "repeated_tokens": sum(hop.repeated_tokens for hop in hops),
        "failed_tokens": sum(hop.failed_tokens for hop in hops),
        "curve": curve_of(hops),
        "outcomes": [[int(h.shown), h.tokens, h.searches, h.zero_hits] for h in hops],
    }


def curve_of(hops: Sequence[HopOutcome], *, only_gold: bool = False) -> Curve:
    """Return the share of the evidence shown by the number of tokens spent: a point at (0, 0) and
    one for each hop that was found. ``only_gold`` counts the tokens of the lower bound."""
    shown = 0
    points = [(0.0, 0.0)]
    spent = accumulate(hop.gold_tokens if only_gold else hop.tokens for hop in hops)
    for hop, tokens in zip(hops, spent, strict=True):
        if hop.shown:
            shown += 1
            points.append((float(tokens), shown / len(hops)))
    return points

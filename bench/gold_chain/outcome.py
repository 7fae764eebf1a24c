"""What a walk is worth: the values of a question from how its hops ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

from bench.ablation.cells import CellRow
from bench.gold_chain.policy import HOP_TOKENS, HopOutcome

CAP = 8_000
"""Tokens to full evidence are not counted beyond; what they are where a hop is not found."""

Half = Literal["development", "test"]


def half_of(question_id: str) -> Half:
    """The half of the questions that a question belongs to, by the hash of its id."""
    even = hashlib.sha256(question_id.encode()).digest()[0] % 2 == 0
    return "development" if even else "test"


def row_of(question_id: str, type: str | None, seed: int, hops: Sequence[HopOutcome]) -> CellRow:
    """The row of a question in a cell."""
    return CellRow(question_id, type, seed, values_of(hops), details_of(question_id, hops))


def values_of(hops: Sequence[HopOutcome]) -> Mapping[str, float | None]:
    """The measures of a question; see bench/README.md."""
    spent = sum(hop.tokens for hop in hops)
    all_found = all(hop.found for hop in hops)
    searches = sum(hop.searches for hop in hops)

    def to_evidence(tokens: int) -> float:
        return float(min(tokens, CAP) if all_found else CAP)

    def share(count: int) -> float | None:
        return count / searches if searches else None

    return {
        "TokensToEvidence": to_evidence(spent),
        "FullEvidence": float(all_found and spent <= CAP),
        "EvidenceArea": _area(curve_of(hops)),
        "EvidenceRecall": sum(hop.found for hop in hops) / len(hops),
        "RetrievedTokens": float(spent),
        "OnlyGoldTokens": to_evidence(sum(hop.gold_tokens for hop in hops)),
        "HopTokens": sum(hop.tokens if hop.found else HOP_TOKENS for hop in hops) / len(hops),
        "Searches": float(searches),
        "ZeroHits": share(sum(hop.zero_hits for hop in hops)),
        "RefusedQueries": share(sum(hop.refused for hop in hops)),
        "RepeatedTokens": float(sum(hop.repeated_tokens for hop in hops)),
        "FailedTokens": float(sum(hop.failed_tokens for hop in hops)),
    }


def details_of(question_id: str, hops: Sequence[HopOutcome]) -> Mapping[str, Any]:
    """What a report tells beside the measures; ``outcomes`` has a line a hop: found, tokens,
    searches, searches that found nothing."""
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
        "outcomes": [[int(h.found), h.tokens, h.searches, h.zero_hits] for h in hops],
    }


def curve_of(hops: Sequence[HopOutcome]) -> list[tuple[int, float]]:
    """Tokens, and the share of the evidence that had been shown when they were spent, for each hop
    that was found."""
    found = 0
    points: list[tuple[int, float]] = []
    for hop, tokens in zip(hops, accumulate(hop.tokens for hop in hops), strict=True):
        if hop.found:
            found += 1
            points.append((tokens, found / len(hops)))
    return points


def _area(curve: Sequence[tuple[int, float]]) -> float:
    """The area under the curve from 0 tokens to CAP, as a share of all of it."""
    area = last = 0.0
    for tokens, share in curve:
        area += (share - last) * max(0, CAP - tokens)
        last = share
    return area / CAP

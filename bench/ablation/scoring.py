"""A record as a row of a cell: its measures, and what a report tells beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import shown_titles
from arag_search.evaluation.measures import evidence_recall
from arag_search.evaluation.questions import Question
from arag_search.evaluation.score import score_question
from bench.ablation.cells import CellRow

CAP_TOKENS = 8_000
"""What evidence that was never shown in full is charged, and as far as tokens are looked at."""

Curve = Sequence[tuple[float, float]]
"""Tokens and the share of the evidence shown by then; tokens grow, from (0, 0)."""


def row_of(question: Question, record: Record | None, seed: int, place: str) -> CellRow:
    """The row of a question; ``place`` is where its record is. No record is a failed question."""
    score = score_question(question, record)
    curve = curve_of(question, record)
    tokens = None if curve is None else tokens_to_evidence(curve)
    values: dict[str, float | None] = {
        "TokensToEvidence": tokens,
        "FullEvidence": None
        if curve is None
        else float(curve[-1][1] == 1 and tokens != CAP_TOKENS),
        "EvidenceArea": None if curve is None else area(curve),
        "EvidenceRecall": score.evidence_recall,
        "RetrievedTokens": score.retrieved_tokens,
        "EM": score.exact_match,
        "F1": score.f1,
        "ContainAcc": score.contain_accuracy,
        "Steps": score.steps,
        "Seconds": score.seconds,
        "Cost": score.cost_usd,
    }
    details: dict[str, Any] = {
        "status": score.status,
        "answer": score.answer,
        "record": place,
        "failed": score.status in ("failed", "missing"),
    }
    if getattr(question, "hops", ()):
        details["hops"] = len(question.hops)
    if curve is not None:
        details["curve"] = curve
    if record is not None:
        details |= _calls(record)
    return CellRow(question.id, question.type, seed, values, details)


def _calls(record: Record) -> dict[str, Any]:
    """How the calls of a record went. A refused call is one that the tool would not run."""
    steps = record.trajectory
    return {
        "searches": len(steps),
        "zero_hits": sum(one.status == "empty" for one in steps),
        "refused": sum(one.status == "error" for one in steps),
        "failed_tokens": sum(one.result_tokens for one in steps if one.status != "ok"),
    }


def curve_of(question: Question, record: Record | None) -> Curve | None:
    """How the evidence came with the retrieved tokens; None where the question names none.

    A piece of evidence counts from the end of the call that showed its title.
    """
    if not question.gold_titles:
        return None
    curve = [(0.0, 0.0)]
    if record is None or record.status == "failed":
        return curve
    tokens = 0
    for number, step in enumerate(record.trajectory, 1):
        tokens += step.retrieved_tokens
        so_far = replace(record, trajectory=record.trajectory[:number])
        curve.append((float(tokens), evidence_recall(question, shown_titles(so_far)) or 0.0))
    return curve


def tokens_to_evidence(curve: Curve) -> float:
    """The tokens at which all evidence had been shown, at most the cap; the cap where it never
    was."""
    whole = next((tokens for tokens, share in curve if share == 1), CAP_TOKENS)
    return float(min(whole, CAP_TOKENS))


def area(curve: Curve) -> float:
    """The mean share of the evidence over tokens from 0 to the cap, a share holding until the next
    call."""
    points = [*((min(tokens, CAP_TOKENS), share) for tokens, share in curve), (CAP_TOKENS, 0.0)]
    return sum(share * (after - before) for (before, share), (after, _) in pairwise(points)) / (
        CAP_TOKENS
    )

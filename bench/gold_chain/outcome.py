"""The row of a question, from the outcomes of its hops."""

from __future__ import annotations

from collections.abc import Sequence

from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS
from arag_search.questions.question import Question
from bench.ablation.cells import CellRow
from bench.gold_chain.policy import HopOutcome


def row_of(question: Question, seed: int, hops: Sequence[HopOutcome]) -> CellRow:
    """Return the row of a question in a cell; for its measures see bench/studies/gold_chain.md."""
    tokens = sum(hop.tokens for hop in hops)
    searches = sum(hop.searches for hop in hops)
    is_full = all(hop.shown for hop in hops) and tokens <= EVIDENCE_CAP_TOKENS
    values = {
        "TokensToEvidence": float(tokens if is_full else EVIDENCE_CAP_TOKENS),
        "FullEvidence": float(is_full),
        "EvidenceRecall": sum(hop.shown for hop in hops) / len(hops),
        "RetrievedTokens": float(tokens),
        "Searches": float(searches),
        "ZeroHits": sum(hop.zero_hits for hop in hops) / searches if searches else None,
        "RefusedQueries": sum(hop.refused for hop in hops) / searches if searches else None,
        "FailedTokens": float(sum(hop.failed_tokens for hop in hops)),
    }
    unresolved = not all(hop.resolved for hop in hops)
    return CellRow(question.id, question.type, seed, values, unresolved=unresolved)

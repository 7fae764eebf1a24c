"""The row of a record in a cell: its measures, and further details for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate, pairwise
from typing import Any

from arag_search.agent.record import Record, Step
from arag_search.evaluation import measures as names
from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS as CAP_TOKENS
from arag_search.evaluation.evidence import Failure, failure_of, sightings_by_passage
from arag_search.evaluation.measures import Measure
from arag_search.evaluation.question_score import score_question
from arag_search.evaluation.resolution import EvidencePiece, IndexedPassage
from arag_search.questions.files import Question
from arag_search.tools.reply_text import shown_tokens
from bench.ablation.cells import INTENTS, VERDICT, CellRow
from bench.ablation.judging.judges import TrajectoryJudges
from bench.ablation.measure import EVIDENCE_AREA

MEASURES = tuple(Measure(kind) for kind in names.KINDS if not kind.is_ranking)
"""The measures of every row; a suite may show others too, such as those of rankings and of single
tools."""

NO_RECORD: Failure = "no answer"
"""The reason of a wrong answer of which no record shows more."""
Sets = Sequence[Sequence[EvidencePiece]]
"""The evidence of a question in the index: sets of pieces, any of which is enough."""
Curve = Sequence[tuple[float, float]]
"""Tokens and the share of the evidence shown by then; both grow, from (0, 0)."""


def row_of(
    question: Question,
    record: Record | None,
    seed: int,
    place: str,
    sets: Sets,
    measured: Mapping[str, float | None],
) -> CellRow:
    """Return the row of a question with its measured values. ``place`` is where its record is. A
    question without a record has failed."""
    curve = curve_of(record, sets)
    values = {**measured, EVIDENCE_AREA.name: area(curve) if sets else None}
    verdict = measured.get(names.JUDGE_ACC.name)
    score = score_question(question, record)
    details: dict[str, Any] = {
        "status": score.status,
        "answer": score.answer,
        "record": place,
        "failed": score.status in ("failed", "missing"),
        "unresolved": bool(sets)
        and all(any(not piece.chunk_ids for piece in pieces) for pieces in sets),
    }
    if question.hops:
        details["hops"] = len(question.hops)
    if sets:
        details["curve"] = curve
    if record is not None:
        details |= _calls(record)
    is_right = score.contain_accuracy if verdict is None else verdict
    if not is_right and question.answerable and question.answers:
        details["failure"] = failure_of(question, record, sets)
    return CellRow(question.id, question.type, seed, values, details)


def with_verdicts(
    rows: Sequence[CellRow],
    judges: TrajectoryJudges,
    questions: Sequence[Question],
    records: Mapping[str, Record],
    passages: Sequence[IndexedPassage],
) -> list[CellRow]:
    """Add to the rows of a run what the judges of trajectories say: the intents of searches, and
    why answers are wrong. ``passages`` are those of the corpus, none if they are not known. Raises
    ModelError of the judges."""
    intents = judges.intents.judge_all(questions, records)
    unread = (None, NO_RECORD)
    wrong = {row.question_id for row in rows if row.details.get("failure") not in unread}
    asked = [question for question in questions if question.id in wrong]
    failures = judges.failures.judge_wrong(asked, records, passages)

    def details(id: str) -> dict[str, Any]:
        of_searches = intents.get(id)
        return {
            **({INTENTS: of_searches and list(map(asdict, of_searches))} if id in intents else {}),
            **({VERDICT: asdict(failures[id])} if id in failures else {}),
        }

    return [replace(row, details={**row.details, **details(row.question_id)}) for row in rows]


def _calls(record: Record) -> dict[str, Any]:
    """Count the calls of a record. A refused call is one that the tool would not run."""
    steps = record.trajectory
    return {
        "searches": len(steps),
        "zero_hits": sum(step.status == "empty" for step in steps),
        "refused": sum(step.status == "error" for step in steps),
        "repeated_tokens": repeated_tokens(steps),
        "failed_tokens": sum(step.result_tokens for step in steps if step.status != "ok"),
    }


def repeated_tokens(steps: Sequence[Step]) -> int:
    """Return the tokens of passages that had been shown before, by the rule of the gold-chain
    agent: the tokens shown now, up to the most that were shown of the passage at once."""
    seen: dict[str, int] = {}
    repeated = 0
    for step in steps:
        for span in step.passages:
            tokens = shown_tokens(step.tool_output, [span])
            repeated += min(seen.get(span.id, 0), tokens)
            seen[span.id] = max(seen.get(span.id, 0), tokens)
    return repeated


def curve_of(record: Record | None, sets: Sets) -> Curve:
    """Return the share of the evidence by retrieved tokens, for the set of which most was shown.

    A piece counts from the end of the call that made it visible.
    """
    if record is None or record.status == "failed" or not sets:
        return [(0.0, 0.0)]
    spent = list(accumulate(step.retrieved_tokens for step in record.trajectory))
    curves = [
        _steps(
            [spent[sighting.visible] for sighting in sightings if sighting.visible is not None],
            len(sightings),
        )
        for sightings in sightings_by_passage(sets, record)
    ]
    return max(curves, key=lambda curve: curve[-1][1])


def _steps(tokens: Sequence[int], pieces: int) -> Curve:
    """Return the curve of pieces that were found after these numbers of tokens."""
    reached = [(float(count), number / pieces) for number, count in enumerate(sorted(tokens), 1)]
    return [(0.0, 0.0), *reached]


def tokens_to_evidence(curve: Curve) -> float:
    """Return the tokens at which all evidence had been shown, or the cap if that is less or it
    never was."""
    whole = next((tokens for tokens, share in curve if share == 1), CAP_TOKENS)
    return float(min(whole, CAP_TOKENS))


def area(curve: Curve) -> float:
    """Return the mean share of the evidence over tokens from 0 to the cap; a share holds until the
    next piece."""
    points = [*((min(tokens, CAP_TOKENS), share) for tokens, share in curve), (CAP_TOKENS, 0.0)]
    shares = ((before[1], after[0] - before[0]) for before, after in pairwise(points))
    return sum(share * tokens for share, tokens in shares) / CAP_TOKENS

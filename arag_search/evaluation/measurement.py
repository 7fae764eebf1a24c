"""Values of measures for the questions of a run, and their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import evidence_values
from arag_search.evaluation.measures import Kind, Measure, Need, Outcome
from arag_search.evaluation.question_score import QuestionScore, groups_of, score_question
from arag_search.evaluation.ranking import judgements, ranking_values, shown_documents
from arag_search.evaluation.resolution import EvidencePiece, LocatedEvidence
from arag_search.questions.question import Question

Values = Mapping[str, float | None]
"""Values by the printed name of the measure; None could not be measured."""


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the questions of one type, or all, by measure; None if nothing was measured.
    ``counted`` is the number of questions of each mean."""

    type: str
    questions: int
    values: Values
    counted: Mapping[str, int]


def measure_questions(
    questions: Sequence[Question],
    records: Mapping[str, Record],
    measures: Sequence[Measure],
    *,
    located: LocatedEvidence | None = None,
    verdicts: Mapping[str, float | None] | None = None,
) -> dict[str, dict[str, float | None]]:
    """Return the values of every question by its id.

    ``records`` are by question id. With ``located``, the evidence in the index that was
    searched, evidence counts when the text of its passages was visible, and rankings can be
    measured; without it, evidence counts when its titles were shown. ``verdicts`` are those of a
    judge, from 0 to 1. A question that failed or has no record scores the ``missing`` value of
    the measure.
    """
    sets = {
        question.id: None if located is None else located.sets[question.id]
        for question in questions
    }
    by_question = {
        question.id: measure_question(
            question,
            records.get(question.id),
            measures,
            sets[question.id],
            (verdicts or {}).get(question.id),
        )
        for question in questions
    }
    rankings = [measure for measure in measures if measure.kind.is_ranking]
    if rankings and located is not None:
        passages = located.passages
        judged = {
            question.id: judgements(question, located.sets[question.id], passages)
            for question in questions
        }
        ranked = {
            id: shown_documents(record, passages)
            for id, record in records.items()
            if record.status != "failed"
        }
        for id, values in ranking_values(rankings, judged, ranked).items():
            by_question[id].update(values)
    return by_question


def measure_question(
    question: Question,
    record: Record | None,
    measures: Sequence[Measure],
    sets: Sequence[Sequence[EvidencePiece]] | None = None,
    verdict: float | None = None,
) -> dict[str, float | None]:
    """Return the values of one question; a record of None is a question without a record.
    Rankings are None: they are measured together."""
    score = score_question(question, record)
    failed = score.status in ("failed", "missing")
    absent: set[Need] = set() if question.answers else {"answers"}
    if not (question.gold_titles if sets is None else sets):
        absent.add("evidence")
    evidence = None
    if (
        record is not None
        and not failed
        and any("evidence" in measure.kind.needs for measure in measures)
    ):
        evidence = evidence_values(question, record, sets)
    outcome = Outcome(score, evidence, verdict)

    def value(kind: Kind) -> float | None:
        if kind.is_ranking or kind.needs & absent:
            return None
        return kind.missing if failed and kind.missing is not None else kind.value(outcome)

    return {str(measure): value(measure.kind) for measure in measures}


def means_by_type(
    scores: Sequence[QuestionScore], values: Mapping[str, Values], measures: Sequence[Measure]
) -> tuple[Means, ...]:
    """Return means over all questions, then over those of each type, as the rows of a score."""
    return tuple(
        _means(name, [values[score.id] for score in group], measures)
        for name, group in groups_of(scores)
    )


def _means(name: str, values: Sequence[Values], measures: Sequence[Measure]) -> Means:
    known = {
        str(measure): [
            value for by_measure in values if (value := by_measure[str(measure)]) is not None
        ]
        for measure in measures
    }
    return Means(
        type=name,
        questions=len(values),
        values={
            measure: fmean(known_values) if known_values else None
            for measure, known_values in known.items()
        },
        counted={measure: len(known_values) for measure, known_values in known.items()},
    )


def measures_json(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """Return the meaning of each name, for readers of the figures."""
    return [
        {
            "name": str(measure),
            "unit": measure.kind.unit,
            "higher_is_better": measure.kind.higher_is_better,
            "meaning": measure.kind.meaning,
        }
        for measure in measures
    ]

"""Values of measures for the questions of a run, and their means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation import measure_names as names
from arag_search.evaluation.evidence import evidence_values
from arag_search.evaluation.measure_names import Measure
from arag_search.evaluation.question_score import QuestionScore, groups_of, score_question
from arag_search.evaluation.ranking import judgements, ranking_values, shown_documents
from arag_search.evaluation.resolution import LocatedEvidence, Piece
from arag_search.questions.question import Question

Values = Mapping[str, float | None]
"""By measure, as it prints; None is what could not be measured."""

_OF_SCORE: Mapping[str, Callable[[QuestionScore], float | None]] = {
    names.EM.name: lambda one: one.exact_match,
    names.F1.name: lambda one: one.f1,
    names.CONTAIN_ACC.name: lambda one: one.contain_accuracy,
    names.RETRIEVED_TOKENS.name: lambda one: one.retrieved_tokens,
    names.STEPS.name: lambda one: one.steps,
    names.SECONDS.name: lambda one: one.seconds,
    names.COST.name: lambda one: one.cost_usd,
}
_OF_EVIDENCE = (names.EVIDENCE_RECALL, names.FULL_EVIDENCE, names.TOKENS_TO_EVIDENCE)


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the questions of one type, or all, by measure; None where nothing was measured.
    ``counted`` are the questions that each mean is over."""

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
    """The values of every question by its id.

    ``records`` are by question id. With ``located`` in the index that was searched, evidence is
    what was visible of the passages that hold it, and rankings can be measured; without, evidence
    is the titles shown. ``verdicts`` are those of a judge, from 0 to 1. A question that failed or
    has no record scores what the measure says.
    """
    sets = {one.id: None if located is None else located.sets[one.id] for one in questions}
    found = {
        one.id: measure_question(
            one, records.get(one.id), measures, sets[one.id], (verdicts or {}).get(one.id)
        )
        for one in questions
    }
    rankings = [one for one in measures if one.kind.is_ranking]
    if rankings and located is not None:
        passages = located.passages
        judged = {one.id: judgements(one, located.sets[one.id], passages) for one in questions}
        ranked = {
            id: shown_documents(record, passages)
            for id, record in records.items()
            if record.status != "failed"
        }
        for id, values in ranking_values(rankings, judged, ranked).items():
            found[id].update(values)
    return found


def measure_question(
    question: Question,
    record: Record | None,
    measures: Sequence[Measure],
    sets: Sequence[Sequence[Piece]] | None = None,
    verdict: float | None = None,
) -> dict[str, float | None]:
    """The values of one question, None being a question without a record. Rankings are None: they
    are measured together."""
    score = score_question(question, record)
    kinds = {one.kind for one in measures}
    evidence: dict[str, float | None] = {}
    if kinds & set(_OF_EVIDENCE):
        evidence = _evidence(question, record, sets)

    def value(one: Measure) -> float | None:
        kind = one.kind
        if kind.is_ranking or ("answers" in kind.needs and not question.answers):
            return None
        if kind in _OF_EVIDENCE:
            return evidence[kind.name]
        if kind is names.JUDGE_ACC:
            return kind.missing if score.status in ("failed", "missing") else verdict
        return _OF_SCORE[kind.name](score)

    return {str(one): value(one) for one in measures}


def _evidence(
    question: Question, record: Record | None, sets: Sequence[Sequence[Piece]] | None
) -> dict[str, float | None]:
    names_any = bool(question.gold_titles if sets is None else sets)
    if not names_any:
        return dict.fromkeys([kind.name for kind in _OF_EVIDENCE])
    found = None
    if record is not None and record.status != "failed":
        found = evidence_values(question, record, sets)
    if found is None:
        return {kind.name: kind.missing for kind in _OF_EVIDENCE}
    values = (found.recall, found.full, found.tokens)
    return {kind.name: each for kind, each in zip(_OF_EVIDENCE, values, strict=True)}


def means_by_type(
    scores: Sequence[QuestionScore], values: Mapping[str, Values], measures: Sequence[Measure]
) -> tuple[Means, ...]:
    """Means over all questions, then over those of each type, as the rows of a score."""
    return tuple(
        _means(name, [values[one.id] for one in group], measures)
        for name, group in groups_of(scores)
    )


def _means(name: str, values: Sequence[Values], measures: Sequence[Measure]) -> Means:
    known = {
        str(one): [value for each in values if (value := each[str(one)]) is not None]
        for one in measures
    }
    return Means(
        type=name,
        questions=len(values),
        values={measure: fmean(each) if each else None for measure, each in known.items()},
        counted={measure: len(each) for measure, each in known.items()},
    )


def measures_json(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """What the names mean, for those who read the figures."""
    return [
        {
            "name": str(one),
            "unit": one.kind.unit,
            "higher_is_better": one.kind.higher_is_better,
            "meaning": one.kind.meaning,
        }
        for one in measures
    ]

"""Values of measures for the questions of a run, of the rankings of its documents, and their
means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import Judgement
from arag_search.evaluation.measures import JUDGE_ACC, Measure, Outcome
from arag_search.evaluation.question_score import QuestionScore, groups_of, score_question
from arag_search.evaluation.resolution import LocatedEvidence
from arag_search.questions.question import Question
from arag_search.system.extras import missing_extra

Grades = Mapping[str, int]
"""By document id; above 0 is relevant."""
_CITED = "Cited"
"""Begins the names of measures of cited documents; the rest names the measure of a ranking."""
_THEIR_NAMES = {"Recall": "R", "NDCG": "nDCG"}


def ranking_values(
    measures: Sequence[Measure],
    judged: Mapping[str, Grades],
    ranked: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """Return the measures of every question that has a relevant document, by question id and by the
    name of the measure. A question without a ranking scores 0.

    ``ranked`` are document ids, best first, each once. Raises MissingExtraError if ir-measures
    is not installed.
    """
    theirs = _import_ir_measures()
    wanted = {theirs.parse_measure(_their_name(measure)): str(measure) for measure in measures}
    qrels = {
        id: {document: max(grade, 0) for document, grade in grades.items()}
        for id, grades in judged.items()
        if any(grade > 0 for grade in grades.values())
    }
    values = {id: dict.fromkeys(wanted.values(), 0.0) for id in qrels}
    run = {
        id: {document: -float(rank) for rank, document in enumerate(documents)}
        for id, documents in ranked.items()
        if id in qrels and documents
    }
    if run:
        for metric in theirs.iter_calc(list(wanted), qrels, run):
            if metric.query_id in run:
                values[metric.query_id][wanted[metric.measure]] = float(metric.value)
    return values


def grades_of(question: Question, located: LocatedEvidence | None) -> dict[str, int]:
    """Return grades by document. They are the grades of the data set. If it has none and evidence
    is located, they are 1 for every document that holds a piece of the evidence."""
    if question.relevant_documents or located is None:
        return dict(question.relevant_documents)
    sets = located.sets[question.id]
    ids = [id for pieces in sets for piece in pieces for id in piece.chunk_ids]
    return dict.fromkeys(located.passages.document_ids(ids), 1)


def _their_name(measure: Measure) -> str:
    name = measure.kind.name.removeprefix(_CITED)
    return f"{_THEIR_NAMES.get(name, name)}@{measure.cutoff}"


def _import_ir_measures() -> Any:
    try:
        import ir_measures
    except ImportError as error:
        raise missing_extra("bench", "ir-measures") from error
    return ir_measures


Values = Mapping[str, float | None]
"""Values by the printed name of the measure; None could not be measured."""


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the questions of one type, or all, by measure; None if nothing was measured. A
    measure ``per_right`` is a sum over the number of right answers, and None without one.
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
    judgements: Mapping[str, Judgement] | None = None,
    factuality: Mapping[str, float | None] | None = None,
) -> tuple[list[Outcome], dict[str, dict[str, float | None]]]:
    """Return the outcome of every question, and the values of the measures by its id.

    ``records`` are by question id. ``located`` is the evidence in the index that was searched. With
    it, evidence counts if the text of its passages was visible. Rankings of the shown documents can
    then be measured. Without it, evidence counts if its titles were shown. ``judgements`` and
    ``factuality`` (from 0 to 1) come from judges. A question that failed or has no record scores
    the ``missing`` value of the measure.
    """
    outcomes: list[Outcome] = []
    values: dict[str, dict[str, float | None]] = {}
    for question in questions:
        id, record = question.id, records.get(question.id)
        sets = None if located is None else located.sets[id]
        score = score_question(question, record, sets)
        judgement, factual = (judgements or {}).get(id), (factuality or {}).get(id)
        outcome = Outcome(question, record, score, sets, judgement, factual)
        outcomes.append(outcome)
        values[id] = {str(measure): measure.value(outcome) for measure in measures}
    for id, of_rankings in _rankings(questions, records, measures, located).items():
        values[id].update(of_rankings)
    return outcomes, values


def _rankings(
    questions: Sequence[Question],
    records: Mapping[str, Record],
    measures: Sequence[Measure],
    located: LocatedEvidence | None,
) -> dict[str, dict[str, float]]:
    """Return the measures of rankings of the questions that have a relevant document, by id.
    Rankings of shown documents need an index; rankings of cited documents, and judgements in the
    data, do not."""
    of_shown = [measure for measure in measures if measure.kind.ranks == "shown"]
    of_cited = [measure for measure in measures if measure.kind.ranks == "cited"]
    shown: dict[str, list[str]] = {}
    cited: dict[str, list[str]] = {}
    for question in questions:
        record = records.get(question.id)
        if record is None or record.status == "failed":
            continue
        ranked = [document.doc_id for document in record.citations]
        cited[question.id] = question.ranked(ranked)
        if located is not None and of_shown:
            ids = dict.fromkeys(id for step in record.trajectory for id in step.hit_ids)
            shown[question.id] = question.ranked(located.passages.document_ids(ids))
    values: dict[str, dict[str, float]] = {question.id: {} for question in questions}
    wanted = ((of_shown if located else (), shown), (of_cited, cited))
    for ranking_measures, rankings in wanted:
        if ranking_measures:
            judged = {question.id: grades_of(question, located) for question in questions}
            for id, measured in ranking_values(ranking_measures, judged, rankings).items():
                values[id] |= measured
    return values


def means_by_type(
    scores: Sequence[QuestionScore], values: Mapping[str, Values], measures: Sequence[Measure]
) -> tuple[Means, ...]:
    """Return means over all questions, then over the questions of each type, as rows of a score."""
    return tuple(
        _means(name, [(score, values[score.id]) for score in group], measures)
        for name, group in groups_of(scores)
    )


def _means(
    name: str, group: Sequence[tuple[QuestionScore, Values]], measures: Sequence[Measure]
) -> Means:
    values: dict[str, float | None] = {}
    counted: dict[str, int] = {}
    for measure in measures:
        of = [(v, right_of(s, by)) for s, by in group if (v := by[str(measure)]) is not None]
        over = math.fsum(right for _, right in of) if measure.kind.per_right else len(of)
        values[str(measure)] = math.fsum(value for value, _ in of) / over if over else None
        counted[str(measure)] = len(of)
    return Means(name, len(group), values, counted)


def right_of(score: QuestionScore, values: Values) -> float:
    """Return how far an answer is right: by the judge's verdict if there is one, else by
    Contain-Acc."""
    verdict = values.get(str(JUDGE_ACC))
    return score.contain_accuracy if verdict is None else verdict


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

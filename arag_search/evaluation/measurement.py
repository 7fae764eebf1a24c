"""Values of measures for the questions of a run, of the rankings of its documents, and their
means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import evidence_values
from arag_search.evaluation.judging.judge import Judgement, Verdict
from arag_search.evaluation.measures import Measure, Need, Outcome
from arag_search.evaluation.question_score import (
    QuestionScore,
    Unsupported,
    groups_of,
    score_question,
)
from arag_search.evaluation.resolution import EvidencePiece, LocatedEvidence, Passages
from arag_search.questions.question import Question
from arag_search.system.extras import missing_extra

Grades = Mapping[str, int]
"""By document id; above 0 is relevant."""
_CITED = "Cited"
"""Begins the names of measures of cited documents; the rest names the measure of a ranking."""
_UNSUPPORTED: Mapping[Verdict, Unsupported] = {
    "abstained": "refusal",
    "incorrect": "hallucination",
    "correct": "gold leak",
}
_THEIR_NAMES = {"Recall": "R", "NDCG": "nDCG"}


def ranking_values(
    measures: Sequence[Measure],
    judged: Mapping[str, Grades],
    ranked: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """Return the measures of every question that has a relevant document, by question id and by the
    name of the measure; a question without a ranking scores 0.

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


def shown_documents(record: Record, passages: Passages) -> list[str]:
    """Return the documents whose passages the tools showed, in the order in which they first
    did."""
    ids = dict.fromkeys(id for step in record.trajectory for id in step.hit_ids)
    return list(dict.fromkeys(passages.document_ids(ids)))


def cited_documents(record: Record) -> list[str]:
    """Return the documents that the answer cites, best first."""
    return list(dict.fromkeys(cited.doc_id for cited in record.citations))


def grades_of(question: Question, located: LocatedEvidence | None) -> dict[str, int]:
    """Return grades by document: those of the data set, else, where it is known, 1 for every
    document that holds a piece of the evidence."""
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
    judgements: Mapping[str, Judgement] | None = None,
    factuality: Mapping[str, float | None] | None = None,
) -> dict[str, dict[str, float | None]]:
    """Return the values of every question by its id.

    ``records`` are by question id. ``located`` is the evidence in the index that was searched. With
    it, evidence counts when the text of its passages was visible, and rankings of the shown
    documents can be measured; without it, evidence counts when its titles were shown.
    ``judgements`` and ``factuality`` (from 0 to 1) are those of judges. A question that failed or
    has no record scores the ``missing`` value of the measure.
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
            (judgements or {}).get(question.id),
            (factuality or {}).get(question.id),
        )
        for question in questions
    }
    for id, values in _rankings(questions, records, measures, located).items():
        by_question[id].update(values)
    return by_question


def _rankings(
    questions: Sequence[Question],
    records: Mapping[str, Record],
    measures: Sequence[Measure],
    located: LocatedEvidence | None,
) -> dict[str, dict[str, float]]:
    """Return the measures of rankings of the questions that have a relevant document, by id.
    Rankings of shown documents need an index; rankings of cited documents, and judgements in the
    data, do not."""
    shown = [measure for measure in measures if measure.kind.ranks == "shown"]
    cited = [measure for measure in measures if measure.kind.ranks == "cited"]
    answered = {id: record for id, record in records.items() if record.status != "failed"}
    rankings: list[tuple[Sequence[Measure], Mapping[str, Sequence[str]]]] = []
    if shown and located is not None:
        passages = located.passages
        ranked = {id: shown_documents(record, passages) for id, record in answered.items()}
        rankings.append((shown, ranked))
    if cited:
        rankings.append((cited, {id: cited_documents(record) for id, record in answered.items()}))
    if not rankings:
        return {}
    judged = {question.id: grades_of(question, located) for question in questions}
    excluded = {
        question.id: set(question.excluded_documents)
        for question in questions
        if question.excluded_documents
    }
    values: dict[str, dict[str, float]] = {id: {} for id in judged}
    for ranking_measures, ranked in rankings:
        kept = {
            id: [document for document in documents if document not in excluded.get(id, ())]
            for id, documents in ranked.items()
        }
        for id, measured in ranking_values(ranking_measures, judged, kept).items():
            values[id] |= measured
    return values


def measure_question(
    question: Question,
    record: Record | None,
    measures: Sequence[Measure],
    sets: Sequence[Sequence[EvidencePiece]] | None = None,
    judgement: Judgement | None = None,
    factuality: float | None = None,
) -> dict[str, float | None]:
    """Return the values of one question; a record of None is a question without a record, a
    judgement of None an answer that no judge was asked about. Rankings are None: they are measured
    together."""
    score = score_question(question, record, sets)
    failed = score.status in ("failed", "missing")
    absent: set[Need] = set() if question.answers else {"answers"}
    if question.answerable:
        absent.add("no answer")
    if not (question.gold_titles if sets is None else sets):
        absent.add("evidence")
    if score.grounding is None:
        absent.add("grounding")
    evidence = None
    if (
        record is not None
        and not failed
        and any("evidence" in measure.kind.needs for measure in measures)
    ):
        evidence = evidence_values(question, record, sets)
    unsupported = score.unsupported
    if judgement is not None:
        verdict = judgement.verdict
        unsupported = None if verdict is None else _UNSUPPORTED[verdict]
    value_of_verdict = None if judgement is None else judgement.value(question)
    outcome = Outcome(score, record, evidence, value_of_verdict, factuality, unsupported)

    def value(measure: Measure) -> float | None:
        kind = measure.kind
        if kind.is_ranking or kind.needs & absent:
            return None
        return kind.missing if failed and kind.missing is not None else measure.value(outcome)

    return {str(measure): value(measure) for measure in measures}


def means_by_type(
    scores: Sequence[QuestionScore], values: Mapping[str, Values], measures: Sequence[Measure]
) -> tuple[Means, ...]:
    """Return means over all questions, then over those of each type, like the rows of a score."""
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

"""The questions of one run as a page shows them: scores, steps, evidence, and the answer with its
citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arag_search.agent.record import Record
from arag_search.agent.wording import citation_warning
from arag_search.evaluation import measures as names
from arag_search.evaluation.evidence import Sighting, sightings_by_passage, sightings_by_title
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.question_score import QuestionScore
from arag_search.evaluation.score import Score
from arag_search.query.fields import Schema
from arag_search.questions.question import Question
from arag_search.viewer.steps import Steps
from arag_search.viewer.texts import Texts


class Questions:
    """The questions of one scored run, converted for the page."""

    def __init__(self, run: LoadedRun, score: Score, texts: Texts, schema: Schema) -> None:
        self._run = run
        self._score = score
        self._scores = {question.id: question for question in score.questions}
        self._asked = {question.id: question for question in run.questions}
        self._steps = Steps(texts, schema)

    def of(self, id: str) -> dict[str, Any] | None:
        """Return the run's result on the question with this id, as the run had it; None if the run
        did not have the question."""
        question = self._asked.get(id)
        if question is None:
            return None
        score = self._scores[id]
        record = self._run.records.get(question.id)
        entry = _worth(question, score)
        entry["recall"] = self._score.values[question.id][names.EVIDENCE_RECALL.name]
        entry["failureKind"] = self._score.failures.get(question.id)
        entry["evidence"] = self._evidence(question, record)
        foreign = self._run.foreign.get(question.id)
        if foreign is not None and "question" in foreign.differences and record is None:
            entry["asked"] = foreign.record.question
        if record is not None:
            entry |= _answer(record)
            entry["steps"] = self._steps.of(record)
        return entry

    def _evidence(self, question: Question, record: Record | None) -> list[list[list[Any]]]:
        """Return, for every sufficient set of evidence, the name of each piece and the steps at
        which it was first shown, its text was first visible, and it was first read."""
        located = self._score.located
        if record is None:
            return []
        if located is None:
            met = sightings_by_title(question, record)
        else:
            met = sightings_by_passage(located.sets[question.id], record)
        return [_sightings(pieces) for pieces in met]


def _sightings(sightings: Sequence[Sighting]) -> list[list[Any]]:
    return [
        [sighting.name, sighting.shown, sighting.visible, sighting.read] for sighting in sightings
    ]


def _worth(question: Question, score: QuestionScore) -> dict[str, Any]:
    """Return whether an answer is right by Contain-Acc, as in lists of wrong answers; None without
    a gold answer."""
    has_answer = bool(question.answers) or not question.answerable
    return {
        "status": score.status,
        "right": score.contain_accuracy >= 1 if has_answer else None,
        "exact": score.exact_match >= 1 if has_answer else None,
        "refused": score.refused,
        "retrieved": score.retrieved_tokens,
        "stepCount": score.steps,
        "seconds": score.seconds,
        "cost": score.cost_usd,
        "answer": score.answer,
    }


def _answer(record: Record) -> dict[str, Any]:
    return {
        "reply": record.answer,
        "explanation": record.explanation,
        "cited": _cited(record),
        "warning": citation_warning(record) if record.status != "failed" else "",
        "failure": record.failure,
        "usage": [
            record.usage.prompt_tokens,
            record.usage.completion_tokens,
            record.usage.source == "counted",
        ],
    }


def _cited(record: Record) -> list[list[Any]]:
    """Return each id that an answer cites and the place of the step that first showed it. For a
    document, add its score and whether an earlier question showed it first; documents are in order
    of score."""
    if not record.citations:
        return [[id, _first_shown(id, record)] for id in record.cited_ids]
    cited: list[list[Any]] = []
    for document in record.citations:
        id = document.reference
        cited.append([id, _first_shown(id, record), document.score, id in record.reused])
    return [*cited, *([id, None] for id in record.wrong_ids)]


def _first_shown(id: str, record: Record) -> int | None:
    """Return the place of the step that first showed a passage or a document, or None."""
    for place, step in enumerate(record.trajectory):
        if id in step.hit_ids or any(shown.reference == id for shown in step.references):
            return place
    return None

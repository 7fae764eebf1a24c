"""The questions of one run as a page shows them: what each is worth, its steps, its evidence, its
answer with what it cites."""

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
    """Makes the questions of one scored run ready to be shown."""

    def __init__(self, run: LoadedRun, score: Score, texts: Texts, schema: Schema) -> None:
        self._run = run
        self._score = score
        self._scores = {one.id: one for one in score.questions}
        self._asked = {one.id: one for one in run.questions}
        self._steps = Steps(texts, schema)

    def of(self, id: str) -> dict[str, Any] | None:
        """What the run made of the question with this id, as it was given it; None where it was not
        to answer it."""
        question = self._asked.get(id)
        if question is None:
            return None
        score = self._scores[id]
        record = self._run.records.get(question.id)
        found = _worth(question, score)
        found["recall"] = self._score.values[question.id][names.EVIDENCE_RECALL.name]
        found["failureKind"] = self._score.failures.get(question.id)
        found["evidence"] = self._evidence(question, record)
        foreign = self._run.foreign.get(question.id)
        if foreign is not None and "question" in foreign.differences and record is None:
            found["asked"] = foreign.record.question
        if record is not None:
            found |= _answer(record)
            found["isReadFromText"] = record.is_read_from_text
            found["doubts"] = list(self._score.doubts.get(id, ()))
            found["steps"] = self._steps.of(record)
        return found

    def _evidence(self, question: Question, record: Record | None) -> list[list[list[Any]]]:
        """For every set of evidence that would do: of each piece its name, and the steps at which
        it was first shown, its text first visible, and it first read."""
        located = self._score.located
        if record is None:
            return []
        if located is None:
            met = sightings_by_title(question, record)
        else:
            met = sightings_by_passage(located.sets[question.id], record)
        return [_sightings(each) for each in met]


def _sightings(each: Sequence[Sighting]) -> list[list[Any]]:
    return [[one.name, one.shown, one.visible, one.read] for one in each]


def _worth(question: Question, score: QuestionScore) -> dict[str, Any]:
    """Whether an answer is right is what Contain-Acc says, as where answers are called wrong; None
    without a gold answer."""
    is_told = bool(question.answers) or not question.answerable
    return {
        "status": score.status,
        "right": score.contain_accuracy >= 1 if is_told else None,
        "exact": score.exact_match >= 1 if is_told else None,
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
        "cited": [[id, _first_shown(id, record)] for id in record.cited_ids],
        "warning": citation_warning(record) if record.status != "failed" else "",
        "failure": record.failure,
        "usage": [
            record.usage.prompt_tokens,
            record.usage.completion_tokens,
            record.usage.source == "counted",
        ],
    }


def _first_shown(chunk_id: str, record: Record) -> int | None:
    """The place of the step that showed a passage first; None where none did."""
    shown = (place for place, step in enumerate(record.trajectory) if chunk_id in step.hit_ids)
    return next(shown, None)

"""What a run is worth: measures of every question that it was to answer, overall and by type.

A question that failed or has no record counts as 0 in every measure of quality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from arag_search.agent.record import Record
from arag_search.agent.run_folder import (
    RUN_FILE,
    RunDescription,
    read_description,
    read_records,
)
from arag_search.errors import RunError
from arag_search.evaluation.evidence import shown_titles
from arag_search.evaluation.measures import contains, evidence_recall, exact_match, f1, is_refusal
from arag_search.evaluation.questions import Question, load_questions, questions_fingerprint

Status = Literal["answered", "forced", "failed", "missing"]

OVERALL = "all"


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """The measures of one question.

    ``contain_accuracy`` looks into short answer and explanation; a refusal has none unless it is
    the gold answer. ``evidence_recall`` is None where the question has no gold titles. Tokens,
    steps, seconds and cost are None where there is no record.
    """

    id: str
    type: str | None
    status: Status
    answer: str
    refused: bool
    exact_match: float
    f1: float
    contain_accuracy: float
    evidence_recall: float | None
    retrieved_tokens: int | None
    steps: int | None
    seconds: float | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """Means over the questions of one type, or all.

    Quality is over all ``questions``, evidence recall over those with gold titles; tokens, steps
    and seconds are over those with a record. None where there is nothing to average. ``failed`` and
    ``missing`` count questions, ``refused`` answers that say there is none.
    """

    type: str
    questions: int
    exact_match: float
    f1: float
    contain_accuracy: float
    evidence_recall: float | None
    refused: int
    failed: int
    missing: int
    retrieved_tokens: float | None
    steps: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """All measures of a run. ``rows`` begin with all questions; types follow in order of their
    names. ``notes`` are what a reader of the figures must know."""

    run: RunDescription
    rows: tuple[Row, ...]
    questions: tuple[QuestionScore, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The score as JSON knows it."""
        return {
            "run": self.run.model_dump(),
            "rows": [asdict(row) for row in self.rows],
            "questions": [asdict(one) for one in self.questions],
            "notes": list(self.notes),
        }


def score(folder: Path | str, questions_file: Path | str | None = None) -> Score:
    """Score the run in a folder against the questions that it was given, or those of another file
    with the same ids.

    Raises RunError where there is no run, or the questions are not its own or unknown;
    QuestionsError.
    """
    folder = Path(folder)
    description = read_description(folder)
    records = read_records(folder).by_id
    if not (questions_file or description.questions):
        raise RunError(
            "The run does not say which file its questions are from.",
            where=str(folder / RUN_FILE),
            do="Name the file to score against with --questions.",
        )
    questions = load_questions(questions_file or description.questions)
    notes: list[str] = []
    if questions_fingerprint(questions) != description.fingerprints.get("questions"):
        if questions_file is None:
            raise RunError(
                "The file of questions has changed since the run.",
                where=description.questions,
                do="Name the file to score against with --questions.",
            )
        notes.append("Scored against other questions or answers than the run was given.")
    asked = questions[: description.limit]
    _check_known(records, asked, folder)
    scores = tuple(score_question(one, records.get(one.id)) for one in asked)
    return Score(description, rows_of(scores), scores, (*notes, *_notes(scores, description)))


def score_question(question: Question, record: Record | None) -> QuestionScore:
    """The measures of one question; None is a question without a record."""
    if record is None:
        none = 0.0 if question.gold_titles else None
        return QuestionScore(
            question.id, question.type, "missing", "", False, 0.0, 0.0, 0.0, none, *[None] * 4
        )
    failed = record.status == "failed"
    answer = record.answer_short
    refused = not failed and is_refusal(answer)
    exact = 0.0 if failed else exact_match(answer, question.answers)
    contained = exact
    if not (failed or refused or exact):
        contained = contains(f"{answer} {record.explanation}", question.answers)
    recall = evidence_recall(question, () if failed else shown_titles(record))
    return QuestionScore(
        id=question.id,
        type=question.type,
        status=record.status,
        answer=answer,
        refused=refused,
        exact_match=exact,
        f1=0.0 if failed else f1(answer, question.answers),
        contain_accuracy=contained,
        evidence_recall=recall,
        retrieved_tokens=record.total_retrieved_tokens,
        steps=len(record.trajectory),
        seconds=record.seconds,
        cost_usd=record.total_cost,
    )


def rows_of(scores: Sequence[QuestionScore]) -> tuple[Row, ...]:
    """All questions, then each type where there are types."""
    types = sorted({one.type for one in scores if one.type is not None})
    rows = [_row(OVERALL, scores)]
    rows += [_row(name, [one for one in scores if one.type == name]) for name in types]
    return tuple(rows)


def _row(name: str, scores: Sequence[QuestionScore]) -> Row:
    def mean(value: Callable[[QuestionScore], float | None]) -> float | None:
        known = [found for one in scores if (found := value(one)) is not None]
        return fmean(known) if known else None

    return Row(
        type=name,
        questions=len(scores),
        exact_match=fmean(one.exact_match for one in scores),
        f1=fmean(one.f1 for one in scores),
        contain_accuracy=fmean(one.contain_accuracy for one in scores),
        evidence_recall=mean(lambda one: one.evidence_recall),
        refused=sum(one.refused for one in scores),
        failed=sum(one.status == "failed" for one in scores),
        missing=sum(one.status == "missing" for one in scores),
        retrieved_tokens=mean(lambda one: one.retrieved_tokens),
        steps=mean(lambda one: one.steps),
        seconds=mean(lambda one: one.seconds),
    )


def _check_known(records: dict[str, Record], questions: Sequence[Question], folder: Path) -> None:
    unknown = sorted(set(records) - {one.id for one in questions})
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise RunError(
            f"The questions lack some that have a record: {', '.join(unknown[:3])}{more}.",
            where=str(folder),
            allowed="the questions of the run, or others with the same ids",
        )


def _notes(scores: Sequence[QuestionScore], run: RunDescription) -> list[str]:
    notes: list[str] = []
    if len(scores) < run.count:
        notes.append(f"The run asked the first {len(scores)} of {run.count} questions.")
    for status, what in (("failed", "failed"), ("missing", "have no record yet")):
        count = sum(one.status == status for one in scores)
        if count == 1:
            what = what.replace("have", "has")
        if count:
            again = "counts" if count == 1 else "count"
            noun = "question" if count == 1 else "questions"
            notes.append(f"{count} {noun} {what} and {again} as 0: the same run asks again.")
    return notes

"""A run together with its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arag_search.agent.record import Record
from arag_search.errors import RunError
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.runs.folder import (
    RECORDS_FILE,
    RUN_FILE,
    Foreign,
    RunDescription,
    RunRecords,
    StoredRecords,
    read_description,
    read_records,
    shorten_names,
)
from arag_search.runs.predictions import read_predictions


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """The content of a run's folder: its description, the questions to answer, and the records by
    question id. ``notes`` tell readers of the figures about questions and files. ``foreign`` are
    records, by id, that another run wrote or that answer another question; they do not count."""

    description: RunDescription
    questions: tuple[Question, ...]
    records: Mapping[str, Record]
    notes: tuple[str, ...]
    foreign: Mapping[str, Foreign] = field(default_factory=dict[str, Foreign])


def load_run(folder: Path | str, questions_file: Path | str | None = None) -> LoadedRun:
    """Return the run in a folder with its questions, or with the questions of another file with the
    same ids.

    Raises RunError if there is no run, the questions are not its own, or a record belongs to no
    question. Raises QuestionsError for a file that cannot be read.
    """
    folder = Path(folder)
    description = read_description(folder)
    stored = read_records(folder)
    if not (questions_file or description.questions):
        raise RunError(
            "The run does not say which file its questions are from.",
            where=str(folder / RUN_FILE),
            do="Name the file to score against with `questions`.",
        )
    questions = load_questions(questions_file or description.questions)
    notes: list[str] = []
    if questions_fingerprint(questions) != description.fingerprints.get("questions"):
        if questions_file is None:
            raise RunError(
                "The file of questions has changed since the run.",
                where=description.questions,
                do="Name the file to score against with `questions`.",
            )
        notes.append("Scored against other questions or answers than the run was given.")
    asked = questions[: description.limit]
    _check_known(stored.by_id, asked, folder)
    records = stored.of_run(description, {question.id: question.text for question in asked})
    notes = [*_torn_note(stored), *notes, *_without_gold_note(asked), *_foreign_notes(records)]
    return LoadedRun(description, asked, records.own, tuple(notes), records.foreign)


def load_recorded_run(folder: Path | str) -> LoadedRun:
    """Return the run in a folder with the questions that have a record, as they were asked, without
    gold answers. Raises RunError if there is no run, or no record."""
    folder = Path(folder)
    description = read_description(folder)
    stored = read_records(folder)
    records = stored.of_run(description, {})
    if not records.own:
        raise RunError(
            "No question has a record of this run yet.",
            where=str(folder / RECORDS_FILE),
            do="Resume the run first.",
        )
    questions = tuple(Question(id, record.question, ()) for id, record in records.own.items())
    notes = [*_torn_note(stored), *_foreign_notes(records)]
    if len(questions) < description.asked:
        notes.append(f"{len(questions):,} of {description.asked:,} questions have a record.")
    return LoadedRun(description, questions, records.own, tuple(notes), records.foreign)


def load_predictions(file: Path, questions_file: Path | str | None = None) -> LoadedRun:
    """Return a file of predictions in A-RAG's form as a run. Its gold answers are in the file, or
    in another file with the same ids.

    Raises RunError for a prediction that cannot be read or whose question the file lacks;
    QuestionsError for files that are not JSON.
    """
    questions, records = read_predictions(file)
    notes = [
        "Predictions do not say which passages a search showed, nor the model's tokens and times: "
        "evidence is left out, and those figures are 0."
    ]
    if questions_file is not None:
        given = load_questions(questions_file)
        _check_known(records, given, file)
        questions = tuple(
            Question(item.id, item.text, item.answers, item.type, answerable=item.answerable)
            for item in given
            if item.id in records
        )
        if len(questions) < len(given):
            notes.append(f"{len(questions):,} of {len(given):,} questions have a prediction.")
    description = RunDescription(
        created="",
        preset="predictions",
        index="unknown",
        filter=None,
        model="unknown",
        questions=str(questions_file or file),
        count=len(questions),
        limit=None,
        fingerprints={},
    )
    return LoadedRun(description, questions, records, (*notes, *_without_gold_note(questions)))


def _without_gold_note(questions: Sequence[Question]) -> list[str]:
    without = sum(not question.answers for question in questions)
    if not without:
        return []
    return [f"{without:,} questions have no gold answer: EM, F1 and Contain-Acc are 0."]


def _foreign_notes(records: RunRecords) -> list[str]:
    if not records.foreign:
        return []
    return [
        f"Records of another run are left out: {records.foreign_text()}. Run the questions again "
        "into the folder: they are asked again."
    ]


def _torn_note(stored: StoredRecords) -> list[str]:
    if not stored.torn_bytes:
        return []
    return [
        "The last record is incomplete and is left out: the run was interrupted, or is still "
        "running."
    ]


def _check_known(
    records: Mapping[str, Record], questions: tuple[Question, ...], folder: Path
) -> None:
    unknown = sorted(set(records) - {question.id for question in questions})
    if unknown:
        raise RunError(
            f"The questions lack some that have a record: {shorten_names(unknown)}.",
            where=str(folder),
            allowed="the questions of the run, or others with the same ids",
        )

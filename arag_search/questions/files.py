"""Questions with their gold answers, from files in common formats.

Shapes of records are distinguished by the fields that only they have; each is read as it is
published. A file is JSON lines or one JSON array of such records; a folder of BEIR comes with
judgements."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import orjson

from arag_search.errors import QuestionsError
from arag_search.questions.beir import is_beir, read_beir
from arag_search.questions.question import (
    GoldPassage,
    GoldSentence,
    Hop,
    Question,
    Triple,
)
from arag_search.questions.record import ALLOWED, NO_ID, Shape, read_record
from arag_search.questions.record_fields import parsed, parsed_lines, read_bytes

__all__ = [
    "ALLOWED",
    "GoldPassage",
    "GoldSentence",
    "Hop",
    "Question",
    "QuestionFile",
    "Triple",
    "evidence_fingerprint",
    "load_questions",
    "questions_fingerprint",
    "read_questions",
]

UNANSWERABLE_SUFFIX = "__unanswerable"
"""What is added to the id of an unanswerable question whose answerable twin has the same one."""

_ASKED = ("id", "text", "answers", "type", "supporting_titles", "evidence")


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The content of a file of questions: its questions in order, the number of records of each
    shape, and notes on how it was read that its user may not expect."""

    path: Path
    questions: tuple[Question, ...]
    shapes: Mapping[Shape, int]
    notes: tuple[str, ...] = ()


def load_questions(path: Path | str) -> tuple[Question, ...]:
    """Return the questions of a file or of a folder of BEIR, in the order of the file.

    Raises QuestionsError naming file and line (in an array: the number of the record) for what
    cannot be read, for two questions with one id, and for a file without questions.
    """
    return read_questions(path).questions


def read_questions(path: Path | str) -> QuestionFile:
    """Return the questions of a file with notes on it. Raises the errors of ``load_questions``."""
    path = Path(path)
    if is_beir(path):
        questions, notes = read_beir(path)
        return QuestionFile(path, questions, {"BEIR": len(questions)}, notes)
    read = [(*read_record(value, where), where) for where, value in _records(path)]
    if not read:
        raise QuestionsError("There are no questions.", where=str(path), allowed=ALLOWED)
    named = _with_ids([question for _, question, _ in read])
    records: list[tuple[Shape, Question, str]] = [
        (shape, question, where) for (shape, _, where), question in zip(read, named, strict=True)
    ]
    answerable = {
        question.id for shape, question, _ in records if shape == "MuSiQue" and question.answerable
    }
    by_id: dict[str, Question] = {}
    places: dict[str, str] = {}
    twins = 0
    for shape, question, where in records:
        if shape == "MuSiQue" and not question.answerable and question.id in answerable:
            twins += 1
            question = replace(question, id=question.id + UNANSWERABLE_SUFFIX)
        if question.id in by_id:
            raise QuestionsError(
                f'The id "{question.id}" is duplicated.',
                where=f"{where}, and {places[question.id]}",
                do="Give each question a unique id.",
            )
        by_id[question.id] = question
        places[question.id] = where
    shapes = Counter[Shape](shape for shape, _, _ in records)
    unnamed = sum(question.id == NO_ID for _, question, _ in read)
    return QuestionFile(path, tuple(by_id.values()), shapes, _notes(twins, unnamed))


def questions_fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over questions, answers, types, titles and triples, independent of the file format. A
    run belongs to this fingerprint."""
    asked = [{name: getattr(question, name) for name in _ASKED} for question in questions]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()


def evidence_fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over everything known about the questions, including hops, passages and judgements.
    Measures of evidence belong to this fingerprint. Excluded documents count only where there are
    any, so that older fingerprints stay the same."""
    known = [asdict(question) for question in questions]
    for question in known:
        if not question["excluded_documents"]:
            del question["excluded_documents"]
    return hashlib.sha256(orjson.dumps(known)).hexdigest()


def _with_ids(questions: Sequence[Question]) -> list[Question]:
    """Name the questions without an id by their position, ``q1``, ``q2``, ...; if a record has that
    id, an underscore and a number follow. The same file gives the same ids."""
    used = {question.id for question in questions}
    named: list[Question] = []
    for position, question in enumerate(questions, 1):
        if question.id == NO_ID:
            id = f"q{position}"
            for number in itertools.count(2):
                if id not in used:
                    break
                id = f"q{position}_{number}"
            used.add(id)
            question = replace(question, id=id)
        named.append(question)
    return named


def _notes(twins: int, unnamed: int) -> tuple[str, ...]:
    notes: list[str] = []
    if twins:
        some = (
            "1 unanswerable question has"
            if twins == 1
            else f"{twins:,} unanswerable questions have"
        )
        notes.append(
            f'{some} the id of an answerable twin, to which "{UNANSWERABLE_SUFFIX}" was added.'
        )
    if unnamed:
        some = (
            "1 question has no id, and is"
            if unnamed == 1
            else f"{unnamed:,} questions have no id, and are"
        )
        notes.append(f"{some} named by position: q1, q2, ...")
    return tuple(notes)


def _records(path: Path) -> Iterator[tuple[str, object]]:
    """Yield every record with its place."""
    raw = read_bytes(
        path, "The questions cannot be read", "a file of JSON lines, or of one JSON array"
    )
    if raw.lstrip()[:1] == b"[":
        records = parsed(raw, "file", str(path), ALLOWED)
        for number, value in enumerate(cast(list[object], records), 1):
            yield f"{path}, record {number}", value
        return
    yield from parsed_lines(raw, path, ALLOWED)

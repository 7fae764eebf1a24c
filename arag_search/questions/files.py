"""Questions with their gold answers, from files in common formats.

Shapes of records are distinguished by the fields that only they have; each is read as it is
published. A file is JSON lines or one JSON array of such records; a folder of BEIR comes with
judgements.

Folders of BEIR and MTEB have queries with documents that were judged, instead of answers. The
judgements are ``qrels/*.tsv`` (BEIR), or JSON lines in ``qrels.jsonl`` (MTEB). A grade of 0 is
irrelevant; one below 0 says that the query excludes the document. A query may name documents that
are left out of its rankings, as the queries of BRIGHT do:
``{"_id", "text", "metadata": {"excluded_ids": [...]}}``.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.errors import QuestionsError
from arag_search.questions.fields import (
    ID_FIELDS,
    Fields,
    parsed,
    parsed_lines,
    read_bytes,
    shown,
)
from arag_search.questions.question import Question
from arag_search.questions.record import ALLOWED, NO_ID, read_record
from arag_search.system.progress import counted

QUERIES_FILE = "queries.jsonl"
QRELS_FOLDER = "qrels"
QRELS_LINES = "qrels.jsonl"
EXCLUDED = "excluded_ids"
"""The field, in the metadata of a query, of documents that are left out of its rankings."""

_USUAL_PART = "test"
QRELS_HEAD = ("query-id", "corpus-id", "score")
_ALLOWED = (
    f"a folder with {QUERIES_FILE} and {QRELS_FOLDER}/*.tsv or {QRELS_LINES}, or one of these .tsv "
    "files"
)
_QUERY = 'JSON lines of {"_id", "text"}'
_LINES = 'JSON lines of {"query-id", "corpus-id", "score"}'
_ROWS = "rows of query-id, corpus-id and score, with tabs between and these names above"


def is_beir(path: Path) -> bool:
    """Return whether the path is a folder, or the file of judgements in one."""
    return path.is_dir() or (path.suffix == ".tsv" and path.parent.name == QRELS_FOLDER)


def read_beir(path: Path) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Return the queries that were judged, in the order of their file, and notes for the reader.

    In a folder, the split ``test`` is taken if there is one, else the only split. Raises
    QuestionsError naming file and line.
    """
    qrels = _qrels_file(path) if path.is_dir() else path
    in_lines = qrels.name == QRELS_LINES
    judged = _judgements(qrels, in_lines=in_lines)
    queries = (qrels.parent if in_lines else qrels.parent.parent) / QUERIES_FILE
    questions: list[Question] = []
    ids: set[str] = set()
    raw = read_bytes(queries, "There are no queries", _ALLOWED)
    for where, value in parsed_lines(raw, queries, _QUERY):
        fields = Fields.of(value, where, _QUERY)
        fields.check((("_id", *ID_FIELDS), ("text",)), _QUERY)
        id = fields.id()
        if id in ids:
            raise QuestionsError(f'The id "{id}" is duplicated.', where=where, allowed=_QUERY)
        ids.add(id)
        if id in judged:
            documents = tuple(judged[id].items())
            questions.append(
                Question(
                    id,
                    fields.text("text"),
                    (),
                    relevant_documents=documents,
                    excluded_documents=_excluded(fields),
                )
            )
    unknown = [id for id in judged if id not in ids]
    if unknown:
        raise QuestionsError(
            f'The query "{unknown[0]}" has judgements, but does not exist'
            + (f", nor do {len(unknown) - 1:,} others." if len(unknown) > 1 else "."),
            where=f"{qrels}, and {queries}",
            allowed="judgements of queries of the same folder",
        )
    note = f"The judgements are {qrels.name} of {len(ids):,} queries; there are no answers."
    return tuple(questions), (note,)


def _excluded(fields: Fields) -> tuple[str, ...]:
    metadata = fields.fields.get("metadata")
    if not isinstance(metadata, dict):
        return ()
    return tuple(Fields(cast(dict[str, Any], metadata), fields.where).strings(EXCLUDED))


def _qrels_file(folder: Path) -> Path:
    files = sorted((folder / QRELS_FOLDER).glob("*.tsv"))
    if not files and (folder / QRELS_LINES).is_file():
        return folder / QRELS_LINES
    usual = [file for file in files if file.stem == _USUAL_PART]
    if not files:
        raise QuestionsError(
            "The folder holds no questions.", where=str(folder), allowed=f"a file, or {_ALLOWED}"
        )
    if len(files) > 1 and not usual:
        raise QuestionsError(
            f"The folder has several parts: {', '.join(file.name for file in files)}.",
            where=str(folder / QRELS_FOLDER),
            allowed=_ALLOWED,
            do="Name the file of one of them.",
        )
    return (usual or files)[0]


def _judgements(path: Path, *, in_lines: bool) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    raw = read_bytes(path, "There are no judgements", _ALLOWED)
    allowed = _LINES if in_lines else _ROWS
    for where, row, cells in (_json_rows if in_lines else _rows)(raw, path):
        grade = _grade(cells)
        if grade is None:
            raise QuestionsError(f"The row is {shown(row)}.", where=where, allowed=allowed)
        grades.setdefault(cells[0], {})[cells[1]] = grade
    if not grades:
        raise QuestionsError("There are no judgements.", where=str(path), allowed=allowed)
    return grades


def _rows(raw: bytes, path: Path) -> Iterator[tuple[str, object, list[str]]]:
    """Yield place, text and cells of the rows below the head. Raises QuestionsError."""
    try:
        lines = [line.removesuffix("\r") for line in raw.decode("utf-8").split("\n")]
    except UnicodeDecodeError as error:
        raise QuestionsError(
            f"The judgements are not UTF-8 ({error.reason}).", where=str(path), allowed=_ROWS
        ) from None
    if tuple(lines[0].split("\t")) != QRELS_HEAD:
        raise QuestionsError(
            f"The first line is {shown(lines[0])}.",
            where=f"{path}, line 1",
            allowed=_ROWS,
        )
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            yield f"{path}, line {number}", line, line.split("\t")


def _json_rows(raw: bytes, path: Path) -> Iterator[tuple[str, object, list[str]]]:
    """Yield place, fields and cells of JSON lines. Raises QuestionsError."""
    for where, value in parsed_lines(raw, path, _LINES):
        row = Fields.of(value, where, _LINES).fields
        yield where, row, [str(row.get(name, "")) for name in QRELS_HEAD]


def _grade(cells: list[str]) -> int | None:
    """Return the whole number in the third cell; None if the row is not a judgement."""
    if len(cells) != len(QRELS_HEAD) or not all(map(str.strip, cells)):
        return None
    try:
        return int(cells[2])
    except ValueError:
        return None


__all__ = [
    "ALLOWED",
    "Question",
    "QuestionFile",
    "load_questions",
    "questions_fingerprint",
    "read_needs",
    "read_questions",
]

UNANSWERABLE_SUFFIX = "__unanswerable"
"""The ending of an unanswerable question's id if its answerable twin has the same id."""

_TEXTS = ("query", "question", "text")
_NEEDS = f"queries in UTF-8, one a line; {ALLOWED}"

_ASKED = ("id", "text", "answers", "type", "supporting_titles", "evidence")


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The questions of a file in order, and notes on how it was read that its user may not
    expect."""

    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()


def load_questions(path: Path | str) -> tuple[Question, ...]:
    """Return the questions of a file or of a folder of BEIR, in the order of the file.

    Raises QuestionsError for text that cannot be read, for two questions with one id, and for a
    file without questions. The error names file and line (in an array: the number of the record).
    """
    return read_questions(path).questions


def read_needs(path: Path | str) -> tuple[Question, ...]:
    """Return the questions of a file as ``load_questions`` does, or queries without answers.
    Queries are lines of text, or JSON lines of ``{"query"}`` (also ``question`` or ``text``).
    Raises QuestionsError."""
    path = Path(path)
    if is_beir(path):
        return load_questions(path)
    raw = read_bytes(path, "The queries cannot be read", _NEEDS)
    texts: list[str | None] = []
    if raw.lstrip()[:1] in (b"{", b"["):
        for where, value in json_records(path):
            fields = Fields.of(value, where, _NEEDS)
            if not fields.fields.keys() <= {*ID_FIELDS, *_TEXTS}:
                return load_questions(path)
            texts.append(fields.optional_text(_TEXTS))
    else:
        try:
            texts += raw.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise QuestionsError(
                f"The queries are not UTF-8 ({error.reason}).", where=str(path), allowed=_NEEDS
            ) from None
    needs = [text for text in texts if text is not None and text.strip()]
    if not needs:
        raise QuestionsError("There are no queries.", where=str(path), allowed=_NEEDS)
    return tuple(Question(f"q{place}", text, ()) for place, text in enumerate(needs, 1))


def read_questions(path: Path | str) -> QuestionFile:
    """Return the questions of a file with notes on it. Raises the errors of ``load_questions``."""
    path = Path(path)
    if is_beir(path):
        return QuestionFile(*read_beir(path))
    records = list(json_records(path))
    if not records:
        raise QuestionsError("There are no questions.", where=str(path), allowed=ALLOWED)
    questions = [read_record(value, where) for where, value in records]
    unnamed = sum(question.id == NO_ID for question in questions)
    named = _with_ids(questions)
    answerable = {question.id for question in named if question.answerable}
    by_id: dict[str, Question] = {}
    places: dict[str, str] = {}
    twins = 0
    for question, (where, _) in zip(named, records, strict=True):
        if not question.answerable and question.id in answerable:
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
    return QuestionFile(tuple(by_id.values()), _notes(twins, unnamed))


def questions_fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over questions, answers, types, titles and triples, independent of the file format. A
    run belongs to this fingerprint."""
    asked = [{name: getattr(question, name) for name in _ASKED} for question in questions]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()


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
        have = counted(twins, "unanswerable question has", "unanswerable questions have")
        notes.append(
            f'{have} the id of an answerable twin, to which "{UNANSWERABLE_SUFFIX}" was added.'
        )
    if unnamed:
        have = counted(unnamed, "question has no id, and is", "questions have no id, and are")
        notes.append(f"{have} named by position: q1, q2, ...")
    return tuple(notes)


def json_records(
    path: Path, what: str = "The questions", allowed: str = ALLOWED
) -> Iterator[tuple[str, object]]:
    """Yield every record of JSON lines, or of a JSON array, with its place. ``what`` and
    ``allowed`` are for errors. Raises QuestionsError."""
    raw = read_bytes(path, f"{what} cannot be read", "a file of JSON lines, or of one JSON array")
    if raw.lstrip()[:1] == b"[":
        records = parsed(raw, "file", str(path), allowed)
        for number, value in enumerate(cast(list[object], records), 1):
            yield f"{path}, record {number}", value
        return
    yield from parsed_lines(raw, path, allowed)

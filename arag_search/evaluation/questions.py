"""Questions with their gold answers, from the files that people have.

Four shapes of record are told apart by the fields that only they have; each is read as it is
published. A file is JSON lines or one JSON array of such records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from arag_search.corpus import nfc
from arag_search.errors import QuestionsError

ALLOWED = (
    'JSON lines or one JSON array of {"id", "question", "answer"}, with "question_type", '
    '"answer_aliases", "supporting_titles" and "evidence" where known; question files of A-RAG, '
    "2WikiMultiHopQA, MuSiQue, HotpotQA and GraphRAG-Bench as they are"
)

Triple = tuple[str, str, str]
"""Subject, relation, object."""

_Item = TypeVar("_Item")

_IDS = ("id", "_id", "question_id")
_TYPES = ("question_type", "type")
_REQUIRED = (_IDS, ("question",), ("answer",))
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    ``answers`` are the gold answer and its aliases, in this order, at least one. ``type`` is None
    where the file has none. ``supporting_titles`` are those of the passages that hold the answer,
    ``evidence`` is the chain of facts, in hop order; both are empty where the file has none.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    type: str | None = None
    supporting_titles: tuple[str, ...] = ()
    evidence: tuple[Triple, ...] = ()

    @property
    def gold_titles(self) -> tuple[str, ...]:
        """What evidence recall looks for: the supporting titles, else the subjects of the evidence,
        each once."""
        subjects = (subject for subject, _, _ in self.evidence)
        return tuple(dict.fromkeys(self.supporting_titles or subjects))


def load_questions(path: Path | str) -> tuple[Question, ...]:
    """The questions of a file, in its order.

    Raises QuestionsError naming file and line (in an array: the number of the record) for what
    cannot be read, for two questions with one id, and for a file without questions.
    """
    path = Path(path)
    found: dict[str, Question] = {}
    places: dict[str, str] = {}
    for where, value in _records(path):
        question = _question(value, where)
        if question.id in found:
            raise QuestionsError(
                f'The id "{question.id}" stands twice.',
                where=f"{where}, and {places[question.id]}",
                do="Give each question an id of its own.",
            )
        found[question.id] = question
        places[question.id] = where
    if not found:
        raise QuestionsError("There are no questions.", where=str(path), allowed=ALLOWED)
    return tuple(found.values())


def questions_fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over all that is known of the questions, whatever the file looked like."""
    return hashlib.sha256(orjson.dumps(list(questions))).hexdigest()


# Files


def _records(path: Path) -> Iterator[tuple[str, object]]:
    """Every record with its place."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise QuestionsError(
            f"The questions cannot be read ({error.strerror}).",
            where=str(path),
            allowed="a file of JSON lines, or of one JSON array",
        ) from error
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw.lstrip()[:1] == b"[":
        records = _parsed(raw, "file", str(path))
        for number, value in enumerate(cast(list[object], records), 1):
            yield f"{path}, record {number}", value
        return
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, _parsed(line, "line", where)


def _parsed(text: bytes, what: str, where: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QuestionsError(
            f"The {what} is not JSON ({error}).", where=where, allowed=ALLOWED
        ) from None


# Records


def _question(value: object, where: str) -> Question:
    """One record of any shape."""
    if not isinstance(value, dict):
        raise QuestionsError(f"The record is {_shown(value)}.", where=where, allowed=ALLOWED)
    record = _Fields(cast(dict[str, Any], value), where)
    record.check()
    answers = [*record.answers(), *record.strings("answer_aliases")]
    return Question(
        id=record.id(),
        text=record.text("question"),
        answers=tuple(dict.fromkeys(answers)),
        type=record.type(),
        supporting_titles=tuple(dict.fromkeys(_supporting_titles(record))),
        evidence=record.triples("evidence") or record.triples("evidences"),
    )


def _supporting_titles(record: _Fields) -> list[str]:
    if "decomposition_support" in record.fields:  # MuSiQue, a title a hop
        return record.strings("decomposition_support")
    if "supporting_facts" in record.fields:  # HotpotQA, [title, sentence]
        return record.facts("supporting_facts")
    return record.strings("supporting_titles")


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one record, read strictly; an absent one and null are the same."""

    fields: Mapping[str, Any]
    where: str

    def check(self) -> None:
        """Raise QuestionsError where a field is absent that every question has."""
        missing = [
            f'"{names[0]}"' for names in _REQUIRED if all(self.fields.get(n) is None for n in names)
        ]
        if missing:
            raise QuestionsError(
                f"The record has no {', no '.join(missing)}.",
                where=f"{self.where}, with the fields {_shown(list(self.fields))}",
                allowed=ALLOWED,
            )

    def id(self) -> str:
        name = self._first(_IDS)
        value = self.fields[name]
        if isinstance(value, bool) or not isinstance(value, str | int) or str(value).strip() == "":
            raise self._wrong(name, "a string or a whole number")
        return str(value)

    def text(self, name: str) -> str:
        value = self.fields[name]
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(name, "a string that is not empty")
        return nfc(value)

    def answers(self) -> list[str]:
        """The gold answer; several are aliases of one another."""
        value = self.fields["answer"]
        if isinstance(value, str) and value.strip():
            return [nfc(value)]
        if isinstance(value, list) and value:
            return self.strings("answer")
        raise self._wrong("answer", "a string that is not empty, or a list of them")

    def type(self) -> str | None:
        if all(self.fields.get(name) is None for name in _TYPES):
            return None
        return self.text(self._first(_TYPES))

    def strings(self, name: str) -> list[str]:
        return self._list(name, "a list of strings that are not empty", _text)

    def facts(self, name: str) -> list[str]:
        """The titles of facts that are a title and the number of a sentence."""
        return self._list(name, "a list of [title, sentence number]", _title_of_fact)

    def triples(self, name: str) -> tuple[Triple, ...]:
        """A chain of facts; evidence that is text (A-RAG has such) is none."""
        value = self.fields.get(name)
        if not isinstance(value, list) or all(
            isinstance(one, str) for one in cast(list[object], value)
        ):
            return ()
        return tuple(self._list(name, "a list of [subject, relation, object]", _triple))

    def _first(self, names: Sequence[str]) -> str:
        """The first of these fields that the record has."""
        return next(name for name in names if self.fields.get(name) is not None)

    def _list(self, name: str, allowed: str, read: Callable[[object], _Item | None]) -> list[_Item]:
        value = self.fields.get(name)
        if value is None:
            return []
        items = cast(list[object], value) if isinstance(value, list) else [None]
        read_items = [read(one) for one in items]
        good = [one for one in read_items if one is not None]
        if len(good) != len(items):
            raise self._wrong(name, allowed)
        return good

    def _wrong(self, name: str, allowed: str) -> QuestionsError:
        return QuestionsError(
            f'The field "{name}" is {_shown(self.fields[name])}.',
            where=self.where,
            allowed=allowed,
            do="Mend the record.",
        )


def _text(value: object) -> str | None:
    return nfc(value) if isinstance(value, str) and value.strip() else None


def _title_of_fact(value: object) -> str | None:
    if not isinstance(value, list):
        return None
    items = cast(list[object], value)
    return _text(items[0]) if len(items) == 2 and isinstance(items[1], int) else None


def _triple(value: object) -> Triple | None:
    if not isinstance(value, list):
        return None
    items = [_text(one) for one in cast(list[object], value)]
    texts = [one for one in items if one is not None]
    return (texts[0], texts[1], texts[2]) if len(texts) == len(items) == 3 else None


def _shown(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."

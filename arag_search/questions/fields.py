"""The fields of one JSON record, read strictly; bytes and lines of a file of such records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from arag_search.corpus import nfc
from arag_search.errors import QuestionsError
from arag_search.questions.question import GoldPassage, Triple

_Item = TypeVar("_Item")

ID_FIELDS = ("id", "_id", "question_id", "qid", "query_id")
"""The names of the id of a question or query in the files of various projects."""
_SHOWN_CHARACTERS = 60


def first_field(fields: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Return the first of the names whose value is neither absent nor null, or None."""
    return next((name for name in names if fields.get(name) is not None), None)


def read_bytes(path: Path, what: str, allowed: str) -> bytes:
    """Return the bytes of a file without a byte order mark. Raises QuestionsError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise QuestionsError(
            f"{what} ({error.strerror}).", where=str(path), allowed=allowed
        ) from error
    return raw.removeprefix(b"\xef\xbb\xbf")


def parsed(text: bytes, what: str, where: str, allowed: str) -> object:
    """Parse JSON. Raises QuestionsError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QuestionsError(
            f"The {what} is not JSON ({error}).", where=where, allowed=allowed
        ) from None


def parsed_lines(raw: bytes, path: Path, allowed: str) -> Iterator[tuple[str, object]]:
    """Yield the place and the value of each JSON line of a file. Raises QuestionsError."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, parsed(line, "line", where, allowed)


def shown(value: object) -> str:
    """Return a JSON value in short, for messages."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one record, read strictly; an absent one and null are the same.

    Every reader raises QuestionsError for a value that is not of its kind.
    """

    fields: Mapping[str, Any]
    where: str

    @staticmethod
    def of(value: object, where: str, allowed: str) -> Fields:
        """Return the fields of an object; raises QuestionsError for anything else."""
        if not isinstance(value, dict):
            raise QuestionsError(f"The record is {shown(value)}.", where=where, allowed=allowed)
        return Fields(cast(dict[str, Any], value), where)

    def has(self, *names: str) -> bool:
        """Return whether the record has all of these fields."""
        return all(self.fields.get(name) is not None for name in names)

    def check(self, required: Sequence[Sequence[str]], allowed: str) -> None:
        """Raise QuestionsError unless the record has a field of each group."""
        missing = [f'"{names[0]}"' for names in required if not any(map(self.has, names))]
        if missing:
            raise QuestionsError(
                f"The record has no {', no '.join(missing)}.",
                where=f"{self.where}, with the fields {shown(list(self.fields))}",
                allowed=allowed,
            )

    def first(self, names: Sequence[str]) -> str:
        """Return the name of the first of these fields that the record has; it must have one."""
        return next(name for name in names if self.has(name))

    def id(self, names: Sequence[str] = ID_FIELDS) -> str:
        """Return the first of these fields that the record has, as a string; it must have one."""
        name = self.first(names)
        value = self.fields[name]
        if isinstance(value, bool) or not isinstance(value, str | int) or str(value).strip() == "":
            raise self.wrong(name, "a string or a whole number")
        return str(value)

    def optional_id(self) -> str | None:
        """Return the id of the record, None if it has none."""
        return None if first_field(self.fields, ID_FIELDS) is None else self.id()

    def text(self, name: str) -> str:
        value = self.fields[name]
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(name, "a string that is not empty")
        return nfc(value)

    def optional_text(self, names: Sequence[str]) -> str | None:
        """Return the first of these fields that the record has, None if it has none."""
        return self.text(self.first(names)) if any(map(self.has, names)) else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text_or_texts(self, name: str) -> list[str]:
        """Return the strings of a field that is one string, or a list with at least one."""
        value = self.fields[name]
        if isinstance(value, str) and value.strip():
            return [nfc(value)]
        if isinstance(value, list) and value:
            return self.strings(name)
        raise self.wrong(name, "a string that is not empty, or a list of them")

    def strings(self, name: str) -> list[str]:
        return self.items(name, "a list of strings that are not empty", text_of)

    def texts_in(self, name: str) -> list[str]:
        """Return the texts of a field that is a string or a list of strings, without blank ones and
        values that are not strings."""
        value = self.fields.get(name)
        items = cast(list[object], value) if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            return []
        return [text for item in items if (text := text_of(item)) is not None]

    def rows(self, name: str, columns: tuple[str, str], allowed: str) -> Fields:
        """Return the record with a field of pairs as a list, where it is in two columns."""
        value = self.fields.get(name)
        if not isinstance(value, dict):
            return self
        first, second = (cast(dict[str, object], value).get(column) for column in columns)
        if not (isinstance(first, list) and isinstance(second, list)) or (
            len(cast(list[object], first)) != len(cast(list[object], second))
        ):
            raise self.wrong(name, f'{allowed}, or {{"{columns[0]}": [], "{columns[1]}": []}}')
        pairs = zip(cast(list[object], first), cast(list[object], second), strict=True)
        return Fields({**self.fields, name: [list(pair) for pair in pairs]}, self.where)

    def triples(self, name: str) -> tuple[Triple, ...]:
        """Return a chain of facts; evidence that is text, as in A-RAG's files, gives none."""
        value = self.fields.get(name)
        if not isinstance(value, list) or all(
            isinstance(item, str) for item in cast(list[object], value)
        ):
            return ()
        return tuple(self.items(name, "a list of [subject, relation, object]", _triple))

    def passages(self, name: str) -> list[GoldPassage]:
        return self.items(name, 'a list of {"title", "text"}', _passage)

    def objects(self, name: str) -> list[Fields]:
        """Return the fields of each object of a list."""
        objects = self.items(name, "a list of objects", _object)
        return [
            Fields(fields, f"{self.where}, {name} {number}")
            for number, fields in enumerate(objects, 1)
        ]

    def items(self, name: str, allowed: str, read: Callable[[object], _Item | None]) -> list[_Item]:
        """Return ``read`` of each item of a list; ``read`` returns None for an item that it does
        not understand."""
        value = self.fields.get(name)
        if value is None:
            return []
        items = cast(list[object], value) if isinstance(value, list) else [None]
        read_items = [read(item) for item in items]
        good = [item for item in read_items if item is not None]
        if len(good) != len(items):
            raise self.wrong(name, allowed)
        return good

    def wrong(self, name: str, allowed: str) -> QuestionsError:
        return QuestionsError(
            f'The field "{name}" is {shown(self.fields[name])}.',
            where=self.where,
            allowed=allowed,
            do="Fix the record.",
        )


def text_of(value: object) -> str | None:
    """Return a text that is not blank; None for anything else."""
    return nfc(value) if isinstance(value, str) and value.strip() else None


def _triple(value: object) -> Triple | None:
    match cast(list[object], value):
        case [str(subject), str(relation), str(answer)] if all(
            map(str.strip, (subject, relation, answer))
        ):
            return nfc(subject), nfc(relation), nfc(answer)
        case _:
            return None


def _object(value: object) -> dict[str, Any] | None:
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _passage(value: object) -> GoldPassage | None:
    fields = _object(value) or {}
    title, text = fields.get("title"), text_of(fields.get("text"))
    if text is None or not (title is None or isinstance(title, str)):
        return None
    return GoldPassage(text_of(title), text)

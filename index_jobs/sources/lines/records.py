"""Records that a program gives, as a source with a name: they are read once, as they come."""

from __future__ import annotations

import math
import reprlib
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from itertools import tee
from typing import TYPE_CHECKING, Any, cast

from arag_search.corpus import Document
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.lines.formats import SENTENCE_ENDS, converted
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import DOCUMENTS, RECORDS, Format
from index_jobs.sources.source import RecordSource, SourcePart

if TYPE_CHECKING:
    Given = Sequence[str] | Iterable[Document | Mapping[str, Any]]
    """The sources of a job: the names of folders and files, or records."""
else:
    Given = Any  # ``named`` checks it: it must not look at all records

RAISED = "Raised by the records of "
"""The beginning of a note at an error of the program that gives records, which passes through."""

RECORDS_MARK = "records:"
"""The beginning of the name of a source of records where an index keeps its sources."""
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class Records:
    """Records that a program gives, and the name of their source."""

    items: Iterable[Any]
    name: str


def named(given: Any, source: str | None) -> list[str] | Records:
    """Return the names of files, or the records of a source, by default "records". Raises
    ArgumentError for what is neither, for a name that cannot be shown, and for one of files."""
    items = cast("Iterable[Any]", given)
    first: Any = next(iter(items), None) if isinstance(given, Sequence) else {}
    are_files = not isinstance(first, Document | Mapping)
    is_one = isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)
    if is_one or (are_files and not all(isinstance(file, str) for file in items)):
        raise ArgumentError(
            f"sources is {reprlib.repr(items)}.",
            allowed="a list of folders and files, or an iterable of documents or dicts",
            do=f"Write [{reprlib.repr(items)}]." if is_one else "",
        )
    name = "records" if source is None else source
    is_shown = name.isprintable() and name.strip() == name and 0 < len(name) <= _MAX_NAME
    if (are_files and source is not None) or not is_shown:
        raise ArgumentError(
            f"source is {name[:_MAX_NAME]!r}.",
            allowed=f"with records, 1 to {_MAX_NAME} printable characters, no blank around",
        )
    return list(items) if are_files else Records(items, name)


class RecordStream(RecordSource):
    """The source of records that a program gives. Their format is ``documents``, unless another is
    named. A record needs an id of its own."""

    size = bytes_read = 0
    recognised = False

    def __init__(
        self, records: Records, format: Format | None, fields: Fields, metadata: MetadataReader
    ) -> None:
        """Raises SourceError for a format that records do not have."""
        self.name = records.name
        self._metadata = metadata
        self._items = self._read(records.items, fields)
        self.format: Format = format or DOCUMENTS
        if self.format not in RECORDS:
            what, allowed = f"Records cannot be read as {format}.", ", ".join(RECORDS)
            raise SourceError(what, where=self.name, allowed=allowed)
        self._fields = replace(
            fields, id_field=fields.id_field or RECORDS[self.format].usual.id_field or "id"
        )
        self._signature = {"source": f"{RECORDS_MARK}{self.name}", "read": secrets.token_hex(8)}

    def signature(self) -> dict[str, Any]:
        """Return a value that no other reading has: nobody knows whether records are the same."""
        return self._signature

    def prose(self) -> RecordStream:
        """Return a source whose reading leaves this one all records."""
        sample = copy(self)
        self._items, sample._items = tee(self._items)
        return sample

    def documents(self, skip: int = 0) -> Iterator[tuple[int, Document | SourceError]]:
        """Yield the documents, once."""
        format = RECORDS[self.format]("", self._fields, self._metadata)
        return converted(self._items, format, f"{self.name}, record")

    def parts(self, position: int, entries: int, most_bytes: int) -> Iterator[SourcePart]:
        """Raise an error: no other process can read the records."""
        raise NotImplementedError

    def _read(self, items: Iterable[Any], fields: Fields) -> Iterator[tuple[int, Any]]:
        """Yield the records as JSON has them, by their numbers."""
        try:
            for number, item in enumerate(items, 1):
                yield number, _as_json(item, fields)
        except Exception as error:
            error.add_note(f"{RAISED}{self.name}.")
            raise


def _as_json(item: Any, fields: Fields) -> Any:
    """Return a document or a mapping as an object of JSON, which the caller cannot change; another
    value as it is."""
    if isinstance(item, Document):
        keys = (
            fields.id_field or "id",
            fields.title_field or "title",
            fields.text_field or "text",
            SENTENCE_ENDS,
        )
        values = item.id, item.title, item.text, item.sentence_ends
        item = {**item.metadata, **dict(zip(keys, values, strict=True))}
    if not isinstance(item, Mapping):
        return item
    members = cast("Mapping[Any, Any]", item).items()
    return {str(key).encode("utf-8", "replace").decode(): _value(own) for key, own in members}


def _value(value: Any) -> Any:
    """Return a tuple as a list, a date as text, and an integer that JSON rounds as infinite."""
    if isinstance(value, list | tuple):
        return [_value(part) for part in cast("Sequence[Any]", value)]
    if isinstance(value, int) and abs(value) >> 64:
        return math.inf
    return value.isoformat() if isinstance(value, date) else value

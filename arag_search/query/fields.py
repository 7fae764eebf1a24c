"""The fields that a query may name, and their kinds."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from arag_search.corpus import MetadataScalar
from arag_search.errors import ArgumentError

MetadataType = Literal["keyword", "number", "date"]
FieldKind = Literal["text", "keyword", "number", "date"]

METADATA_TYPES: tuple[MetadataType, ...] = ("keyword", "number", "date")
TITLE: Final = "title"
CONTENT: Final = "content"
TEXT_FIELDS = (TITLE, CONTENT)
"""The fields that BM25 scores, and in which a word without a field is searched."""
FORMS = {TITLE: "title_forms", CONTENT: "content_forms"}
"""The fields with the normal forms of the words of each."""
DOC_ID = "doc_id"
"""The only metadata field that every index has."""
RESERVED_FIELDS = frozenset(
    {TITLE, CONTENT, DOC_ID, "id", "text", "sentences", "part", "parts"}
    | {"sentence_ends", "pre_chunked"}
)
"""Names that a build cannot declare as metadata."""

_NAME = re.compile(r"[^\W\d][\w.-]*")


def is_field_name(name: str) -> bool:
    """Return whether a field may have this name: a letter, then letters, digits and ``_.-``."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index. ``metadata`` maps each declared field to its type.

    ``language`` is that of the normal forms of words; if it is empty, words match as written. An
    ``open`` schema stands for an unknown index: any other name is taken for a metadata field,
    and its type is guessed from the value. A ``metadata_only`` schema is for filters: its
    description leaves out the text fields.
    """

    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    open: bool = False
    metadata_only: bool = False
    language: str = ""

    def kind(self, name: str) -> FieldKind | None:
        """Return the kind of a field, or None if there is no such field."""
        if name in TEXT_FIELDS:
            return "text"
        if name == DOC_ID:
            return "keyword"
        return self.metadata.get(name)

    def named(self, name: str) -> str | None:
        """Return the name of the field that is meant by ``name``, whose case does not matter unless
        several fields differ only in it; None if there is no such field."""
        if self.kind(name) is not None:
            return name
        folded = name.casefold()
        fields = (*TEXT_FIELDS, DOC_ID, *self.metadata)
        meant = [field for field in fields if field.casefold() == folded]
        return meant[0] if len(meant) == 1 else None

    def describe(self) -> str:
        """Return the fields in words: ``title, content, doc_id, year (number)``."""
        declared = [f"{name} ({kind})" for name, kind in self.metadata.items()]
        return ", ".join([*(() if self.metadata_only else TEXT_FIELDS), DOC_ID, *declared])


ANY_SCHEMA = Schema(open=True)


def typed(value: MetadataScalar, kind: MetadataType, where: str) -> str | float:
    """Return a value as its field compares it; a date becomes its first millisecond since 1970.

    Raises ArgumentError, with ``where``, for a value that is not of the type.
    """
    try:
        if kind == "number":
            return float(value)
        return str(value) if kind == "keyword" else period_ms(str(value))[0]
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"The value {value!r}.", where=where, allowed=str(error)) from None


# Dates in queries and metadata: a year, a month, a day or a moment, in UTC


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_DATE = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?)?)?)?"
)

ALLOWED = "a year, month, day or moment, such as 2001, 2001-05, 2001-05-31 or 2001-05-31T12:00"


def period_ms(text: str) -> tuple[int, int]:
    """Return the first millisecond of the period that ``text`` names, and the first one after it.

    Milliseconds count from 1970 in UTC, negative before. A moment without a zone is in UTC. A
    year, month, day, minute or second is a period of its usual length; a moment with a fraction of
    a second is 1 ms long. Raises ValueError, which says what is allowed, for text that is no date.
    """
    match = _DATE.fullmatch(text) if text.isascii() else None
    if match is None:
        raise ValueError(ALLOWED)
    year = int(match["year"])
    month = int(match["month"] or 1)
    day = int(match["day"] or 1)
    try:
        start = datetime(
            year,
            month,
            day,
            int(match["hour"] or 0),
            int(match["minute"] or 0),
            int(match["second"] or 0),
            tzinfo=UTC,
        )
    except ValueError as error:
        raise ValueError(f"{ALLOWED} ({error})") from None
    first = (start - _EPOCH) // _MILLISECOND
    if match["month"] is None:
        return first, first + (366 if isleap(year) else 365) * _DAY_MS
    if match["day"] is None:
        return first, first + monthrange(year, month)[1] * _DAY_MS
    zone = match["zone"]
    if zone and zone != "Z":
        minutes = int(zone[1:3]) * 60 + int(zone[4:6])
        first -= (minutes if zone[0] == "+" else -minutes) * 60_000
    if match["fraction"]:
        first += int(match["fraction"].ljust(3, "0")[:3])
        return first, first + 1
    if match["second"]:
        return first, first + 1_000
    return first, first + (60_000 if match["hour"] else _DAY_MS)


def date_text(first_ms: int) -> str:
    """Return the shortest date whose period begins at a millisecond: a year, a day or a moment.

    Milliseconds outside of the years 1 to 9999, which a zone can cause, become the nearest year.
    """
    try:
        moment = _EPOCH + first_ms * _MILLISECOND
    except OverflowError:
        return "0001" if first_ms < 0 else "9999"
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    if moment.microsecond:
        return f"{day}T{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"
    if moment.second or moment.minute or moment.hour:
        return f"{day}T{moment:%H:%M:%S}".removesuffix(":00")
    return f"{moment.year:04}" if day.endswith("-01-01") else day

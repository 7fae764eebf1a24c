"""The fields that a query may name, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from arag_search.corpus import MetadataScalar
from arag_search.errors import ArgumentError
from arag_search.query.dates import period_ms

MetadataType = Literal["keyword", "number", "date"]
FieldKind = Literal["text", "keyword", "number", "date"]

METADATA_TYPES: tuple[MetadataType, ...] = ("keyword", "number", "date")
TITLE = "title"
CONTENT = "content"
TEXT_FIELDS = (TITLE, CONTENT)
"""The fields that BM25 scores, and in which a word without a field is searched."""
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

    An ``open`` schema stands for an unknown index: any other name is taken for a metadata field,
    and its type is guessed from the value. A ``metadata_only`` schema is for filters: its
    description leaves out the text fields.
    """

    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    open: bool = False
    metadata_only: bool = False

    def kind(self, name: str) -> FieldKind | None:
        """Return the kind of a field, or None if there is no such field."""
        if name in TEXT_FIELDS:
            return "text"
        if name == DOC_ID:
            return "keyword"
        return self.metadata.get(name)

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
